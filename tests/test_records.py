import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest

import subchain
from subchain.core.records import _CLASSES, Record, Sums, build_record, states_on
from subchain.core.statistics import Statistics as StatisticsOfPackage
from subchain.errors import FileFormatError


@dataclasses.dataclass
class Pair(Sums):
    by_state: np.ndarray
    by_symbol: np.ndarray = states_on(1)
    shared: np.ndarray = states_on()


@dataclasses.dataclass
class Nested(Sums):
    inner: Pair
    parts: dict
    count: float


def nested(rng):
    def pair():
        return Pair(rng.random((3, 2)), rng.random((4, 3)), rng.random(2))

    return Nested(pair(), {"a": pair(), "b": pair()}, 2.5)


def equal(one, other):
    first, second = one.arrays(), other.arrays()
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


def test_names_of_the_package_s_record_classes_are_unique():
    """Files name the class of a record; two classes of one name would be mistaken for each other."""
    for module in pkgutil.walk_packages(subchain.__path__, "subchain."):
        if not module.name.startswith("subchain.neural") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    own = {name: [module for module in found if module.startswith("subchain.")] for name, found in _CLASSES.items()}
    assert len(own) > 30
    assert {name: modules for name, modules in own.items() if len(modules) > 1} == {}


def test_sums_are_a_commutative_monoid_with_subtraction(rng):
    a, b = nested(rng), nested(rng)
    assert equal(a + b, b + a)
    assert equal(a + a, a.scale(2.0))
    assert all(np.allclose(x, y) for x, y in zip((a + b - b).arrays().values(), a.arrays().values(), strict=True))


def test_absorbing_equals_adding(rng):
    a, b = nested(rng), nested(rng)
    expected = a + b
    a.absorb(b)
    assert equal(a, expected)


def test_taking_states_permutes_the_axes_that_run_over_states(rng):
    record, order = nested(rng), np.array([2, 0, 1])
    taken = record.take(order)
    assert np.array_equal(taken.inner.by_state, record.inner.by_state[order])
    assert np.array_equal(taken.parts["b"].by_symbol, record.parts["b"].by_symbol[:, order])
    assert np.array_equal(taken.inner.shared, record.inner.shared)
    assert equal(taken.take(np.argsort(order)), record)


def test_keeping_states_copies_those_alone(rng):
    a, b = nested(rng), nested(rng)
    mixed = a.keep_states(np.array([False, True, False]), b)
    assert np.array_equal(mixed.inner.by_symbol[:, 1], b.inner.by_symbol[:, 1])
    assert np.array_equal(mixed.inner.by_symbol[:, [0, 2]], a.inner.by_symbol[:, [0, 2]])


def test_a_record_comes_back_from_its_schema_and_arrays(rng):
    record = nested(rng)
    back = build_record(record.schema(), record.arrays())
    assert isinstance(back, Nested)
    assert isinstance(back.count, float)
    assert equal(back, record)


def test_a_schema_cannot_name_anything_but_records():
    with pytest.raises(KeyError):
        build_record({"record": "Popen", "fields": {}}, {})


def test_values_that_are_not_finite_are_found_with_their_state(rng):
    record = nested(rng)
    assert record.not_finite() is None
    record.parts["a"].by_state[2, 1] = np.nan
    assert record.not_finite() == ("parts.a.by_state", 2)


def test_plain_records_do_not_add():
    assert not hasattr(Record(), "__add__")


def record_of(module: str) -> type[Record]:
    """A record class of the name Twin, as a module of a user would define it."""
    plain = type("Twin", (Sums,), {"__module__": module, "__annotations__": {"values": np.ndarray}})
    return dataclasses.dataclass(plain)


def test_records_of_the_same_name_in_two_modules_come_back_as_what_they_were():
    kinds = [record_of("twins.first"), record_of("twins.second")]
    for kind in kinds:
        record = kind(np.ones(3))
        assert type(build_record(record.schema(), record.arrays())) is kind


def test_a_short_name_finds_the_only_class_that_has_it(rng):
    record = nested(rng)
    schema = record.schema()
    assert schema.pop("module") == __name__
    assert isinstance(build_record(schema, record.arrays()), Nested)
    assert isinstance(build_record(schema | {"module": "moved"}, record.arrays()), Nested)


def test_a_short_name_that_two_modules_define_is_refused():
    for module in ("twins.first", "twins.second"):
        record_of(module)
    with pytest.raises(FileFormatError, match="'Twin', which several modules define: twins.first, twins.second"):
        build_record({"record": "Twin", "fields": {"values": "array"}}, {"values": np.ones(2)})


def test_a_namesake_does_not_hide_a_record_of_the_package():
    @dataclasses.dataclass
    class Statistics(Sums):
        values: np.ndarray

    own, theirs = StatisticsOfPackage(), Statistics(np.ones(2))
    assert "module" not in own.schema()
    assert type(build_record(own.schema(), own.arrays())) is StatisticsOfPackage
    assert type(build_record(theirs.schema(), theirs.arrays())) is Statistics
