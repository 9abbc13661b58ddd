"""A few hundred damaged and forged files; `python -m fuzz.files` runs any number of others."""

import json

import numpy as np
import pytest

from fuzz.children import PASSED, REFUSED, VIOLATION, verdicts
from fuzz.files import ATTACKS, damaged, forged, packed, subjects, unpacked, verdict

N = 150


@pytest.mark.parametrize("kind", ATTACKS)
def test_files_are_refused_or_behave(kind):
    found = list(verdicts(range(N), ATTACKS[kind], given=subjects()))
    assert not [verdict for verdict in found if verdict.kind == VIOLATION]
    assert sum(verdict.kind == REFUSED for verdict in found) > N // 2


def test_untouched_files_behave(tmp_path):
    for subject in subjects():
        arrays, header = unpacked(subject)
        assert packed(arrays, json.dumps(header)) == subject.content
        assert verdict(subject, subject.content, tmp_path / "file").kind == PASSED, subject.name


def test_cases_are_functions_of_their_seeds():
    for case in (damaged, forged):
        assert case(7) == case(7)
        assert case(7) != case(8)


def test_results_out_of_range_and_foreign_errors_are_violations(tmp_path, monkeypatch):
    subject = subjects()[0]

    def what():
        found = verdict(subject, subject.content, tmp_path / "file")
        return found.kind, found.what.removeprefix(f"{subject.name}: ")

    monkeypatch.setattr("subchain.HMM.score", lambda self, x, **known: np.nan)
    assert what() == (VIOLATION, "the score is nan")
    monkeypatch.setattr("subchain.HMM.load", lambda path: {}["missing"])
    assert what() == (VIOLATION, "KeyError: 'missing'")
