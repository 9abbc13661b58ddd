"""Python calls that can be evaluated and printed, so that the printed code is the code that ran.

A call is a name that the package exports, with arguments, which are plain values or calls. Options are parsed to calls:
`--inference "CVI(max_iter=50)"`. Nothing else is evaluated.
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
    """Call of a name that `subchain` exports."""

    name: str
    arguments: tuple[Any, ...] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        given = [_source(value) for value in self.arguments]
        named = [f"{key}={_source(value)}" for key, value in self.settings.items()]
        return f"{self.name}({', '.join([*given, *named])})"

    def evaluate(self) -> Any:
        """Return the result of the call."""
        settings = {key: _value(value) for key, value in self.settings.items()}
        function = getattr(subchain, self.name)
        try:
            return function(*map(_value, self.arguments), **settings)
        except TypeError as error:
            raise InputError(f"{self} cannot be called: {error}.") from None

    def names(self) -> set[str]:
        """Return the names to import for this call."""
        inner = [*self.arguments, *self.settings.values()]
        return {self.name}.union(*(value.names() for value in inner if isinstance(value, Call)))

    def has(self, setting: str) -> bool:
        """Return whether a setting is given by name, or something by position."""
        return bool(self.arguments) or setting in dict(self.settings)

    def with_settings(self, **settings: Any) -> Call:
        """Return the call with further keyword arguments; those that are None are left out."""
        given = {key: value for key, value in settings.items() if value is not None}
        return Call(self.name, self.arguments, dict(self.settings) | given)


def _value(value: Any) -> Any:
    return value.evaluate() if isinstance(value, Call) else value


def _source(value: Any) -> str:
    return str(value) if isinstance(value, Call) else repr(value)


def imports(*calls: Call) -> str:
    """Return the import statement for these calls."""
    return f"from subchain import {', '.join(sorted(set().union(*(call.names() for call in calls))))}"


def script(data: Call, model: Call, fit: Mapping[str, Any], path: str, marginals: bool = True) -> str:
    """Return the Python code that reads data, fits a model and saves it, with or without training marginals."""
    settings = "".join(f", {key}={_source(value)}" for key, value in fit.items())
    lines = [
        imports(data, model, *(value for value in fit.values() if isinstance(value, Call))), "", f"data = {data}",
        f"model = {model}", f"model.fit(data{settings})",
        f"model.save({path!r}{'' if marginals else ', marginals=False'})",
    ]  # fmt: skip
    return "\n".join(lines)


def parse(text: str, option: str, kinds: Mapping[str, str], inner: Iterable[str] = ()) -> Call:
    """Parse the value of an option, a name (`cvi`) or a call (`CVI(max_iter=50)`), to a call.

    Parameters
    ----------
    text : the value of the option
    option : name of the option, for messages
    kinds : names of classes by their short names
    inner : further names that may be called among the arguments
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
        raise InputError(f"{option}: settings must have names, as in {tree.func.id}(name=value).")
    settings = {str(keyword.arg): value(keyword.value) for keyword in tree.keywords}
    return Call(tree.func.id, tuple(map(value, tree.args)), settings)
