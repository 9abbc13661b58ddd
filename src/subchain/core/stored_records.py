"""Records from files: every array is checked against what its class declares before the record is built.

A file names the classes of its records. Only classes that a field's annotation admits are built, and lengths of axes
must agree between all records that share a `RecordReader`, such as parameters, prior and sums of one model.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import NUMBERS, Field, Record, fields_of, record_class
from subchain.errors import FileFormatError

#: Types of the numbers in files, and which of them a field of each type may hold.
_DTYPES = {"float": "float64", "int": "int64", "bool": "bool"}
_ADMITTED: dict[Any, tuple[str, ...]] = {float: ("float", "int"), int: ("int",), bool: ("bool",)}


def _annotations(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; none if a name in them is not known where the class is defined."""
    try:
        return typing.get_type_hints(kind)
    except (NameError, AttributeError, TypeError):
        return {}


class Scope(NamedTuple):
    """The records between which lengths of axes agree: numbers of states, and within a part of a product all others."""

    states: str
    part: str


class RecordReader:
    """Reads records from the arrays of one file.

    Parameters
    ----------
    arrays : all arrays of the file by name

    Attributes
    ----------
    sizes : lengths of axes that are known so far, by their letter after the `Scope` that they belong to
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self.sizes: dict[str, int] = {}

    def read(self, schema: Mapping[str, Any], name: str, kind: Any = Any) -> Any:
        """Return the record with this schema whose arrays are called `name` and a dot and their own names.

        Raises a `FileFormatError` if it is no record of the class `kind` or if an array is out of its range.
        """
        record = self._record(schema, name, Scope("", ""))
        _demand_kind(record, kind, name)
        return record

    def _record(self, schema: Mapping[str, Any], name: str, scope: Scope) -> Any:
        kind, fields = record_class(schema), schema["fields"]
        known = {kind.renamed_fields.get(given, given): given for given in fields}
        values, annotations = {}, _annotations(kind)
        for field in fields_of(kind):
            if field.name in known:
                given = known.pop(field.name)
                annotation = annotations.get(field.name, Any)
                inner = scope if kind.shares_states else Scope(f"{scope.states}{field.name}.", "")
                values[field.name] = self._value(field, annotation, fields[given], f"{name}.{given}", inner)
        if known:
            raise FileFormatError(f"{name} has the entry {next(iter(known.values()))!r}, which {kind.__name__} has not")
        try:
            record = kind(**values)
            record.check_fields()
        except (TypeError, ValueError) as error:
            raise FileFormatError(f"{name} is no {kind.__name__}: {error}") from None
        return record

    def _value(self, field: Field, annotation: Any, plain: Any, name: str, scope: Scope) -> Any:
        if isinstance(plain, str):
            if plain in NUMBERS:
                return self._number(field, annotation, plain, name)
            return self._array(field, annotation, name, scope)
        if "parts" in plain:
            of_parts = typing.get_args(annotation)
            inner = {
                key: self._record(part, f"{name}.{key}", scope._replace(part=f"{scope.part}{key}."))
                for key, part in plain["parts"].items()
            }
            for key, part in inner.items():
                _demand_kind(part, of_parts[1] if len(of_parts) == 2 else Any, f"{name}.{key}")
            return inner
        record = self._record(plain, name, scope)
        _demand_kind(record, annotation, name)
        return record

    def _number(self, field: Field, annotation: Any, kind: str, name: str) -> Any:
        array = self._entry(name)
        if array.shape != () or array.dtype != _DTYPES[kind] or kind not in _ADMITTED.get(annotation, NUMBERS):
            raise FileFormatError(f"{name} holds {array.dtype} numbers of shape {array.shape}, not one number")
        fault = dataclasses.replace(field.holds, dtype=None).fault(array, {})
        if fault is not None:
            raise FileFormatError(f"{name} {fault}")
        return NUMBERS[kind](array)

    def _array(self, field: Field, annotation: Any, name: str, scope: Scope) -> NDArray[Any]:
        array = self._entry(name)
        if annotation in _ADMITTED:
            raise FileFormatError(f"{name} is an array, not one number")
        letters = field.letters
        if letters is None:
            letters = "".join("K" if axis in field.axes else "?" for axis in range(array.ndim))
        if array.ndim != len(letters) or array.ndim <= max(field.axes, default=-1):
            expected = letters if field.letters else f"states on {field.axes}"
            raise FileFormatError(f"{name} has {array.ndim} axes, but must have {expected}")
        for letter, size in zip(letters, array.shape, strict=True):
            if letter != "?" and size != self._size(letter, size, scope):
                expected = ", ".join(str(self._size(axis, 0, scope)) if axis != "?" else "any" for axis in letters)
                raise FileFormatError(f"{name} has the shape {array.shape}, but other entries need ({expected})")
        fault = field.holds.fault(array, {letter: self._size(letter, 0, scope) for letter in letters if letter != "?"})
        if fault is not None:
            raise FileFormatError(f"{name} {fault}")
        return array

    def _size(self, letter: str, found: int, scope: Scope) -> int:
        """Return the length of an axis; what was `found` if none is known yet."""
        if letter.isdigit():
            return int(letter)
        if letter == "R" and scope.states + "K" in self.sizes:
            return self.sizes[scope.states + "K"] + 1
        return self.sizes.setdefault(scope.states + ("" if letter in "KR" else scope.part) + letter, found)

    def _entry(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            raise FileFormatError(f"the entry {name} is missing")
        return np.asarray(self.arrays[name])


def read_like(memory: Mapping[str, NDArray[Any]], name: str, like: Record) -> Any:
    """Return a record that a run has stored under a name; it must have the classes and shapes of `like`."""
    record = RecordReader(memory).read(like.schema(), name)
    if record.shapes() != like.shapes():
        raise FileFormatError(f"{name} has arrays of other shapes than the run")
    return record


def _demand_kind(record: Record, annotation: Any, name: str) -> None:
    """Raise a `FileFormatError` unless a record is of the class, or has the methods, that a field is annotated with."""
    try:
        fits = annotation is Any or isinstance(record, annotation)
    except TypeError:  # an annotation that instances cannot be compared with
        return
    if not fits:
        expected = getattr(annotation, "__name__", str(annotation))
        raise FileFormatError(f"{name} is a {type(record).__name__}, but must be a {expected}")
