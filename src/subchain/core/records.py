"""Records: dataclasses of arrays that declare their axes and the range of their entries.

Statistics, parameters and conjugate distributions are records. A record can permute its states, check for values that
are not finite, and convert itself to and from a flat dictionary of arrays, the form that model files and checkpoints
store. What comes from a file is checked against the declarations before anything is built from it
(`core/stored_records.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.classes import find_class, user_module
from subchain.core.ranges import ANYTHING, FINITE, Range

STATE_AXES, CONSTANT, AXES, HOLDS = "state_axes", "constant", "axes", "holds"

#: All record classes by name and module: files name their records, and reading one builds no other classes.
_CLASSES: dict[str, dict[str, type[Record]]] = {}
#: Order that keeps the first state only: what is then left of a record does not depend on the number of states.
FIRST = np.zeros(1, dtype=np.int64)
NUMBERS: dict[str, type] = {"float": float, "int": int, "bool": bool}


def states_on(*axes: int, holds: Range = ANYTHING) -> Any:
    """Declare a field whose given axes run over the states; without axes the states share the field.

    `holds` is the range of its entries, for records that are read from files.
    """
    return dataclasses.field(metadata={STATE_AXES: axes, HOLDS: holds})


def array(axes: str, holds: Range = FINITE, *, is_constant: bool = False) -> Any:
    """Declare a field by the names of its axes, such as "KD", and the range of its entries.

    K is the number of states and R is K + 1. Another letter stands for a length that all arrays of a component share:
    parameters, prior and sums; a digit stands for itself. A field of sums that is constant is not summed.
    """
    over_states = tuple(axis for axis, letter in enumerate(axes) if letter == "K")
    return dataclasses.field(metadata={STATE_AXES: over_states, AXES: axes, HOLDS: holds, CONSTANT: is_constant})


def number(holds: Range, default: Any = dataclasses.MISSING) -> Any:
    """Declare a field that holds one number within a range."""
    return dataclasses.field(default=default, metadata={HOLDS: holds})


class Field(NamedTuple):
    """One field of a record class: its name and what was declared of it."""

    name: str
    axes: tuple[int, ...]
    is_constant: bool
    letters: str | None
    holds: Range


#: Fields of the record classes that were used so far: statistics are added up too often to ask `dataclasses` each time.
_FIELDS: dict[type, tuple[Field, ...]] = {}


def fields_of(kind: type[Record]) -> tuple[Field, ...]:
    """Return the fields of a record class with what was declared of them."""
    if kind not in _FIELDS:
        declared = ((item.name, item.metadata) for item in dataclasses.fields(kind))
        _FIELDS[kind] = tuple(
            Field(name, of.get(STATE_AXES, (0,)), of.get(CONSTANT, False), of.get(AXES), of.get(HOLDS, ANYTHING))
            for name, of in declared
        )
    return _FIELDS[kind]


def record_class(schema: Mapping[str, Any]) -> type[Record]:
    """Return the record class that a schema names; raise a KeyError if there is none."""
    name = schema["record"]
    kind = find_class(name, schema.get("module"), _CLASSES.get(name, {}).values())
    if kind is None:
        raise KeyError(f"unknown record class {name}")
    return kind


@dataclasses.dataclass
class Record:
    """Base of dataclasses whose fields are arrays, numbers, records or dictionaries of records.

    Axis 0 of an array runs over the states unless the field is declared with `states_on`.
    """

    #: Whether K is the same number of states in all fields.
    shares_states: ClassVar[bool] = True
    #: New names of fields by the old names that older files use.
    renamed_fields: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        _CLASSES.setdefault(cls.__name__, {})[cls.__module__] = cls

    def _entries(self) -> Iterator[tuple[str, Any, tuple[int, ...]]]:
        """Yield name, value and state axes of each field."""
        for item in fields_of(type(self)):
            yield item.name, getattr(self, item.name), item.axes

    def _values(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields_of(type(self))}

    def _rebuild(self, values: Mapping[str, Any]) -> Self:
        return type(self)(**{**self._values(), **values})

    def take(self, order: NDArray[np.int64]) -> Self:
        """Return the record with permuted states: state k of the result is state ``order[k]`` of this one."""
        changed: dict[str, Any] = {}
        for name, value, axes in self._entries():
            if isinstance(value, Record):
                changed[name] = value.take(order)
            elif isinstance(value, dict):
                changed[name] = {key: part.take(order) for key, part in value.items()}
            elif isinstance(value, np.ndarray):
                for axis in axes:
                    value = np.take(value, order, axis=axis)
                changed[name] = value
        return self._rebuild(changed)

    def keep_states(self, keep: NDArray[np.bool_], other: Self) -> Self:
        """Return this record with the states where `keep`, (K,), is true copied from `other`."""
        changed: dict[str, Any] = {}
        for name, value, axes in self._entries():
            theirs = getattr(other, name)
            if isinstance(value, Record):
                changed[name] = value.keep_states(keep, theirs)
            elif isinstance(value, dict):
                changed[name] = {key: part.keep_states(keep, theirs[key]) for key, part in value.items()}
            elif isinstance(value, np.ndarray) and axes:
                value = value.copy()
                index = (slice(None),) * axes[0] + (keep,)
                value[index] = theirs[index]
                changed[name] = value
        return self._rebuild(changed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays under dotted names; numbers become arrays of shape ()."""
        flat: dict[str, NDArray[Any]] = {}
        for name, value, _ in self._entries():
            if isinstance(value, Record):
                flat.update({f"{name}.{key}": array for key, array in value.arrays().items()})
            elif isinstance(value, dict):
                for part_name, part in value.items():
                    flat.update({f"{name}.{part_name}.{key}": array for key, array in part.arrays().items()})
            else:
                flat[name] = np.asarray(value)
        return flat

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all arrays under dotted names."""
        return {name: array.shape for name, array in self.arrays().items()}

    def schema(self) -> dict[str, Any]:
        """Return the classes and field types, as JSON values, that `build_record` needs besides `arrays`."""
        fields: dict[str, Any] = {}
        for name, value, _ in self._entries():
            if isinstance(value, Record):
                fields[name] = value.schema()
            elif isinstance(value, dict):
                fields[name] = {"parts": {key: part.schema() for key, part in value.items()}}
            else:
                fields[name] = "array" if isinstance(value, np.ndarray) else type(value).__name__
        module = user_module(type(self))
        return {"record": type(self).__name__, "fields": fields} | ({} if module is None else {"module": module})

    def check_states(self, n_states: int) -> None:
        """Raise a ValueError unless every axis that runs over states has length `n_states`."""
        for name, value, axes in self._entries():
            for part in value.values() if isinstance(value, dict) else (value,):
                if isinstance(part, Record):
                    part.check_states(n_states)
                elif isinstance(part, np.ndarray) and any(part.ndim <= a or part.shape[a] != n_states for a in axes):
                    raise ValueError(f"{name} has shape {part.shape}, which does not fit {n_states} states")

    def check_fields(self) -> None:
        """Raise a ValueError if fields from a file contradict each other; each of them is within its range."""

    def not_finite(self) -> tuple[str, int] | None:
        """Return the name of the first array with an infinite or nan entry, and the state of the entry (−1 if none).

        The result is None if all entries are finite.
        """
        for name, value, axes in self._entries():
            parts = value if isinstance(value, dict) else {"": value}
            for key, part in parts.items():
                if isinstance(part, Record):
                    culprit = part.not_finite()
                    if culprit is not None:
                        return ".".join(filter(None, (name, key, culprit[0]))), culprit[1]
                elif not np.isfinite(part).all():
                    place = np.argwhere(~np.isfinite(part))[0]
                    return name, int(place[axes[0]]) if axes and len(place) else -1
        return None


def build_record(schema: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Record:
    """Return the record that has this `Record.schema` and these `Record.arrays`, whose names begin with `prefix`.

    Raises
    ------
    KeyError or TypeError
        If the schema does not fit the arrays or names an unknown record class.
    FileFormatError
        If several modules define a record class of the given name, and none of them is the given one.
    """
    values: dict[str, Any] = {}
    for name, kind in schema["fields"].items():
        if isinstance(kind, str):
            array = arrays[prefix + name]
            values[name] = array if kind == "array" else NUMBERS[kind](array)
        elif "parts" in kind:
            values[name] = {
                key: build_record(part, arrays, f"{prefix}{name}.{key}.") for key, part in kind["parts"].items()
            }
        else:
            values[name] = build_record(kind, arrays, f"{prefix}{name}.")
    kind = record_class(schema)
    return kind(**{kind.renamed_fields.get(name, name): value for name, value in values.items()})


@dataclasses.dataclass
class Sums(Record):
    """Base of sufficient statistics: records that form a commutative monoid under addition."""

    def _summed(self) -> Iterator[tuple[str, Any, tuple[int, ...]]]:
        for item in fields_of(type(self)):
            if not item.is_constant:
                yield item.name, getattr(self, item.name), item.axes

    def summed_arrays(self) -> Iterator[NDArray[np.float64]]:
        """Yield the arrays that are summed, in the order of the fields, those of parts in their places."""
        for _, value, _ in self._summed():
            for part in value.values() if isinstance(value, dict) else [value]:
                if isinstance(part, Sums):
                    yield from part.summed_arrays()
                else:
                    yield part

    def _combine(self, other: Self, sign: float) -> Self:
        """Return self + sign · other."""
        changed: dict[str, Any] = {}
        for name, value, _ in self._summed():
            theirs = getattr(other, name)
            if isinstance(value, Sums):
                changed[name] = value._combine(theirs, sign)
            elif isinstance(value, dict):
                changed[name] = {key: part._combine(theirs[key], sign) for key, part in value.items()}
            else:
                changed[name] = value + sign * theirs
        return self._rebuild(changed)

    def __add__(self, other: Self) -> Self:
        return self._combine(other, 1.0)

    def __sub__(self, other: Self) -> Self:
        return self._combine(other, -1.0)

    def scale(self, factor: float) -> Self:
        """Return the statistics multiplied by `factor`: those of data that are counted `factor` times."""
        changed: dict[str, Any] = {}
        for name, value, _ in self._summed():
            if isinstance(value, Sums):
                changed[name] = value.scale(factor)
            elif isinstance(value, dict):
                changed[name] = {key: part.scale(factor) for key, part in value.items()}
            else:
                changed[name] = value * factor
        return self._rebuild(changed)

    def is_close(self, other: Self, tolerance: float) -> bool:
        """Return whether all sums are those of `other`, up to a share `tolerance` of the magnitude of each array."""
        magnitudes, nothing = self.magnitudes(), (self - self).arrays()  # zero but for fields that are not summed
        return all(
            np.abs(array - nothing[name]).max(initial=0.0) <= tolerance * max(1.0, magnitudes[name])
            for name, array in (self - other).arrays().items()
        )

    def magnitudes(self) -> dict[str, float]:
        """Return how large the terms of each sum are, by the names of `arrays`; terms that cancel are larger."""
        found: dict[str, float] = {}
        for name, value, _ in self._entries():
            for prefix, part in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(part, Sums):
                    inner = f"{name}.{prefix}" if prefix else name
                    found |= {f"{inner}.{key}": size for key, size in part.magnitudes().items()}
                else:
                    found[name] = float(np.abs(part).max(initial=0.0))
        return found

    def fold(self, into: int, gone: int) -> Self:
        """Return the statistics after merging state `gone` into state `into`; state `gone` is left with zeros."""
        changed: dict[str, Any] = {}
        for name, value, axes in self._summed():
            if isinstance(value, Sums):
                changed[name] = value.fold(into, gone)
            elif isinstance(value, dict):
                changed[name] = {key: part.fold(into, gone) for key, part in value.items()}
            elif isinstance(value, np.ndarray) and axes:
                value = value.copy()
                for axis in axes:
                    moved = np.moveaxis(value, axis, 0)
                    moved[into] += moved[gone]
                    moved[gone] = 0.0
                changed[name] = value
        return self._rebuild(changed)

    def absorb(self, other: Self) -> None:
        """Add `other` in place."""
        for name, value, _ in self._summed():
            theirs = getattr(other, name)
            if isinstance(value, Sums):
                value.absorb(theirs)
            elif isinstance(value, dict):
                for key, part in value.items():
                    part.absorb(theirs[key])
            elif isinstance(value, np.ndarray):
                value += theirs
            else:
                setattr(self, name, value + theirs)
