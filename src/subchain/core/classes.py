"""Names of classes in files: a short name, and the module for classes that were defined outside this package.

Two modules of a user may define classes of the same name; the module distinguishes them. The short name alone is enough
if only one such class is known, so that files without modules load, and files whose class has moved to another module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from subchain.errors import FileFormatError

Class = TypeVar("Class", bound=type)

PACKAGE = __name__.partition(".")[0]


def user_module(kind: type) -> str | None:
    """Return the module of a class that was defined outside this package, None for a class of this package."""
    return None if kind.__module__.partition(".")[0] == PACKAGE else kind.__module__


def find_class(name: str, module: str | None, known: Iterable[Class]) -> Class | None:
    """Return the class with that name among `known`, or None if there is none.

    Parameters
    ----------
    name : short name
    module : the `user_module` that the file gives, or None
    known : candidates; the last one wins if a module defines a name twice

    Raises
    ------
    FileFormatError
        If several modules define the name, and `module` is none of them.
    """
    found = {user_module(kind): kind for kind in known if kind.__name__ == name}
    if module in found:
        return found[module]
    outside = sorted(filter(None, found))
    if len(outside) > 1:
        raise FileFormatError(
            f"the file needs the class {name!r}, which several modules define: {', '.join(outside)}. Import only the "
            "module with which the file was written."
        )
    return found[outside[0]] if outside else None
