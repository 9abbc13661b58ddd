"""Checks of the settings of a word aligner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from subchain.errors import InputError, unknown_name
from subchain.inference import Algorithm
from subchain.models.alignment_stages import STAGES
from subchain.tasks.linking import PRODUCTS
from subchain.tasks.symmetrization import METHODS

#: Settings that a fitted posterior is read with.
READ_WITH = ("agreement", "end_jumps", "max_jump", "null_probability", "prefix", "rare")
#: Settings that an aligner and the one whose counts it begins with have in common.
IN_COMMON = ("max_jump", "end_jumps", "prefix", "rare")


def check_settings(given: dict[str, Any]) -> None:
    """Raise an `InputError` if a setting has a wrong type or is out of range."""
    _check_stages(given["stages"])
    methods, method = (*PRODUCTS, *METHODS), given["symmetrize"]
    if not isinstance(method, str) or method not in methods:
        raise unknown_name("method of symmetrisation", str(method), methods)
    if not isinstance(given["inference"], (str, Algorithm)):
        raise InputError(f"inference must be a name such as 'cvi', or an algorithm, not {given['inference']!r}.")
    _check_fraction("threshold", given["threshold"])
    if given["null_probability"] is not None:
        _check_fraction("null_probability", given["null_probability"])
    if not _is_number(given["concentration"]) or not 0.0 < given["concentration"] < np.inf:
        raise InputError(f"concentration must be a positive and finite number, not {given['concentration']!r}.")
    _check_counts(given)
    for name in ("agreement", "end_jumps"):
        if not isinstance(given[name], (bool, np.bool_)):
            raise InputError(f"{name} must be True or False, not {given[name]!r}.")
    if given["n_jobs"] is not None and not is_whole(given["n_jobs"]):
        raise InputError(f"n_jobs must be a whole number, or None for all cores, not {given['n_jobs']!r}.")
    _check_iterations(given["iterations"], len(given["stages"]))


def check_same(prior: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise an `InputError` if an aligner cannot take over the counts of another one."""
    if any(prior[name] != given[name] for name in IN_COMMON):
        one, other = (", ".join(f"{name}={of[name]}" for name in IN_COMMON) for of in (prior, given))
        raise InputError(f"the prior has {one}, this aligner {other}; give both the same.")


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, and not a truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return is_whole(value) or isinstance(value, (float, np.floating))


def _check_fraction(name: str, given: Any) -> None:
    if not _is_number(given) or not 0.0 <= given < 1.0:
        raise InputError(f"{name} must be a number of at least 0 and below 1, not {given!r}.")


def _check_counts(given: Mapping[str, Any]) -> None:
    for name in ("max_jump", "prefix", "rare"):
        if (name == "max_jump" or given[name] is not None) and (not is_whole(given[name]) or given[name] < 1):
            raise InputError(f"{name} must be a whole number of at least 1, not {given[name]!r}.")
    if given["rare"] is not None and given["prefix"] is None:
        raise InputError("rare= says which words are cut, but there is no prefix= to cut them to; give it, too.")


def _check_stages(given: Any) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InputError(f"stages must be names such as ('ibm1', 'hmm'), not {given!r}.")
    for stage in given:
        if not isinstance(stage, str) or stage not in STAGES:
            raise unknown_name("stage", str(stage), STAGES)


def _check_iterations(given: Any, n_stages: int) -> None:
    several = [given] if given is None or is_whole(given) else given
    if isinstance(several, str) or not isinstance(several, (Sequence, np.ndarray)):
        raise InputError(f"iterations must be a whole number, or one for each stage, not {given!r}.")
    if several is given and len(several) != n_stages:
        raise InputError(f"iterations has {len(several)} numbers for {n_stages} stages.")
    for n in several:
        if n is not None and (not is_whole(n) or n < 1):
            raise InputError(f"iterations must be whole numbers of at least 1, not {n!r}.")
