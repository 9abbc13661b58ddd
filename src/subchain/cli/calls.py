"""Python calls that can be both made and printed, so that what is printed is what was done.

A call is a name of the package with arguments; arguments are plain values or calls. The same form is read from options:
`--inference "CVI(max_iter=50)"` is such a call, of names that the package exports and of nothing else.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import subchain
from subchain.errors import InputError, unknown_name


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of something that `subchain` exports."""

    name: str
    arguments: tuple[Any, ...] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        given = [_source(value) for value in self.arguments]
        named = [f"{key}={_source(value)}" for key, value in self.settings.items()]
        return f"{self.name}({', '.join([*given, *named])})"

    def make(self) -> Any:
        """Do it."""
        settings = {key: _value(value) for key, value in self.settings.items()}
        function = getattr(subchain, self.name)
        try:
            return function(*map(_value, self.arguments), **settings)
        except TypeError as error:
            raise InputError(f"{self} cannot be called: {error}.") from None

    def names(self) -> set[str]:
        """Everything that has to be imported."""
        inner = [*self.arguments, *self.settings.values()]
        return {self.name}.union(*(value.names() for value in inner if isinstance(value, Call)))

    def having(self, **settings: Any) -> Call:
        """The same call with further settings; those that are None are left out."""
        given = {key: value for key, value in settings.items() if value is not None}
        return Call(self.name, self.arguments, dict(self.settings) | given)


def _value(value: Any) -> Any:
    return value.make() if isinstance(value, Call) else value


def _source(value: Any) -> str:
    return str(value) if isinstance(value, Call) else repr(value)


def script(data: Call, model: Call, fit: Mapping[str, Any], path: str, marginals: bool = True) -> str:
    """The program that reads data, fits a model and saves it, with or without what it believes of the data."""
    knowledge = "".join(f", {key}={_source(value)}" for key, value in fit.items())
    calls = [data, model, *(value for value in fit.values() if isinstance(value, Call))]
    names = ", ".join(sorted(set().union(*(call.names() for call in calls))))
    lines = [
        f"from subchain import {names}", "", f"data = {data}", f"model = {model}", f"model.fit(data{knowledge})",
        f"model.save({path!r}{'' if marginals else ', marginals=False'})",
    ]  # fmt: skip
    return "\n".join(lines)


def parse(text: str, option: str, kinds: Mapping[str, str], inner: Iterable[str] = ()) -> Call:
    """Understand the value of an option: a name (`cvi`), or a call (`CVI(max_iter=50)`).

    Parameters
    ----------
    text : what the user wrote
    option : the option, for messages
    kinds : names of classes by the short names that users write
    inner : names that may also be called among the arguments
    """
    if text.lower() in kinds:
        return Call(kinds[text.lower()])
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    outer = set(kinds.values())
    if isinstance(tree, ast.Name) and tree.id in outer:
        return Call(tree.id)
    if not isinstance(tree, ast.Call):
        raise unknown_name(f"value of {option}:", text, kinds)
    return _call(tree, option, outer, set(inner))


def _call(tree: ast.Call, option: str, outer: set[str], inner: set[str]) -> Call:
    if not isinstance(tree.func, ast.Name) or tree.func.id not in outer:
        raise unknown_name(f"value of {option}:", ast.unparse(tree.func), outer)

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return _call(node, option, inner, inner)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise InputError(
                f"{option}: {ast.unparse(node)} is neither a number nor a string; put strings in quotes."
            ) from None

    if any(keyword.arg is None for keyword in tree.keywords):
        raise InputError(f"{option}: write the settings out, as in {tree.func.id}(name=value).")
    settings = {str(keyword.arg): value(keyword.value) for keyword in tree.keywords}
    return Call(tree.func.id, tuple(map(value, tree.args)), settings)
