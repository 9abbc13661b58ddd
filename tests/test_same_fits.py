"""Fits with fixed seeds find what an earlier version of the package found, to ten digits.

`golden/fits.json` holds the results. Its first version was written by commit f400e5b; samplers included, that commit
finds the same bits in every run and with any number of threads. A case that was changed on purpose carries its reason
in the table of `fit_cases.py`, and `golden/make_fits.py` writes its new result.
"""

import math
from pathlib import Path

import pytest
from fit_cases import BY_NAME, CASES, result
from fit_data import fingerprint
from stored_results import differences, read_results

STORED = read_results(Path(__file__).parent / "golden" / "fits.json")
HEADER = ("commit", "changed", "data")


@pytest.mark.parametrize("name", BY_NAME)
def test_a_fit_is_what_it_was(name):
    case, expected = BY_NAME[name], dict(STORED[name])
    assert expected["changed"] == case.changed, "the stored result belongs to another reason; run golden/make_fits.py"
    assert expected["data"] == fingerprint(case.family, case.shape), "the data differ, before anything was fitted"
    numbers = {key: value for key, value in expected.items() if key not in HEADER}
    if case.rounded:
        wrong = differences(result(case, case.fit()), {key: numbers[key] for key in ("runs", "score")}, 1e-6)
    else:
        wrong = differences(result(case, case.fit()), numbers)
    assert not wrong, "\n".join([f"{name} is not what {expected['commit']} found:", *wrong])


def test_every_case_is_stored_once():
    assert list(STORED) == [case.name for case in CASES]


def test_stored_results_are_numbers():
    for name, entry in STORED.items():
        assert math.isfinite(entry["score"]), name


def test_a_difference_in_the_tenth_digit_is_seen():
    before = {"score": -100.0, "transition": [[0.5, 0.5], [1e-200, 1.0]], "objective": [math.nan, 1.0]}
    assert not differences(before, before)
    assert differences(before | {"score": -100.0 * (1.0 + 1e-9)}, before)
    assert differences(before | {"transition": [[0.5, 0.5]]}, before)
    assert differences(before | {"objective": [0.0, 1.0]}, before)
    assert differences({}, before)
