"""Deprecated names of functions, arguments and attributes: they work as before and give a `DeprecationWarning`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(f"{old} was renamed; use {new}.", DeprecationWarning, stacklevel=stacklevel)


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """Return a decorator that lets a function accept deprecated keyword arguments, given as `old="new"`.

    Examples
    --------
    >>> import warnings
    >>> @renamed_arguments(together="cluster_size")
    ... def visit(cluster_size=1):
    ...     return cluster_size
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     visit(together=4)
    4
    >>> str(caught[0].message)
    'together= was renamed; use cluster_size=.'
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for old in names.keys() & given.keys():
                new = names[old]
                if new in given:
                    raise TypeError(f"{old}= is the deprecated name of {new}=; give only {new}=.")
                _warn(f"{old}=", f"{new}=", stacklevel=3)
                given[new] = given.pop(old)
            return function(*args, **given)

        return call  # type: ignore[return-value]

    return decorate


def renamed_function(old: str, function: Function) -> Function:
    """Return a function that warns that `old` is deprecated and calls `function`.

    Examples
    --------
    >>> import warnings
    >>> length = renamed_function("length", len)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     length([1, 2])
    2
    >>> str(caught[0].message)
    'length was renamed; use len.'
    """

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        _warn(old, function.__name__, stacklevel=3)
        return function(*args, **given)

    call.__doc__ = f"Deprecated name of `{function.__name__}`."
    return call  # type: ignore[return-value]


def renamed_attribute(old: str, new: str) -> Any:
    """Return a read-only property that warns and returns the attribute `new`."""

    def get(self: Any) -> Any:
        _warn(old, new, stacklevel=3)
        return getattr(self, new)

    return property(get, doc=f"Deprecated name of `{new}`.")
