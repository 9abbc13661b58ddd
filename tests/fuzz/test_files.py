"""A few hundred damaged and forged files; `python -m fuzz.files` runs any number of others."""

import json
from collections import Counter

import numpy as np
import pytest

from fuzz.files import damaged, forged, judged, packed, subjects, unpacked, verdict

N = 150


@pytest.mark.parametrize("kind", ["damaged", "forged"])
def test_files_are_refused_or_behave(kind):
    found = judged(kind, range(N))
    assert not {seed: text for seed, text in found.items() if text.startswith("violation")}
    assert Counter(found.values())["refused"] > N // 2


def test_untouched_files_behave(tmp_path):
    for subject in subjects():
        arrays, header = unpacked(subject)
        assert packed(arrays, json.dumps(header)) == subject.content
        assert verdict(subject, subject.content, tmp_path / "file") == "behaves", subject.name


def test_cases_are_functions_of_their_seeds():
    for case in (damaged, forged):
        assert case(7) == case(7)
        assert case(7) != case(8)


def test_results_out_of_range_and_foreign_errors_are_violations(tmp_path, monkeypatch):
    subject = subjects()[0]
    monkeypatch.setattr("subchain.HMM.score", lambda self, x, **known: np.nan)
    assert verdict(subject, subject.content, tmp_path / "file") == "violation: the score is nan"
    monkeypatch.setattr("subchain.HMM.load", lambda path: {}["missing"])
    assert verdict(subject, subject.content, tmp_path / "file") == "violation: KeyError: 'missing'"


def test_the_end_of_a_child_is_a_violation(monkeypatch):
    monkeypatch.setattr("fuzz.files.subjects", lambda: ())  # a child without files cannot draw a case
    assert judged("forged", range(2)) == dict.fromkeys(range(2), "violation: the process ended with exit code 1")
