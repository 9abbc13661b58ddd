"""Scores of word alignments."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.alignment import Links, alignment_report
from subchain.errors import InputError
from subchain.metrics.alignment import bootstrap_scores, link_counts

#: Two pairs. Found: 3 + 1. Sure: 2 + 1, of which found 1 + 0. Sure or possible: 3 + 2, of which found 2 + 1.
FOUND = [{(0, 0), (1, 1), (2, 0)}, {(0, 1)}]
SURE = [{(0, 0), (2, 2)}, {(0, 0)}]
POSSIBLE = [{(1, 1)}, {(0, 1)}]


def test_scores_are_those_by_hand() -> None:
    report = alignment_report(FOUND, SURE, POSSIBLE)
    assert (report.n_pairs, report.n_links, report.n_sure, report.n_possible) == (2, 4, 3, 5)
    assert report.scores.precision == pytest.approx(3 / 4)
    assert report.scores.recall == pytest.approx(1 / 3)
    assert report.scores.f1 == pytest.approx(2 * (3 / 4) * (1 / 3) / (3 / 4 + 1 / 3))
    assert report.scores.aer == pytest.approx(1 - (1 + 3) / (4 + 3))


def test_sure_links_are_possible_whether_repeated_or_not() -> None:
    repeated = [sure | possible for sure, possible in zip(SURE, POSSIBLE, strict=True)]
    assert alignment_report(FOUND, SURE, repeated) == alignment_report(FOUND, SURE, POSSIBLE)


def test_without_possible_links_the_error_rate_is_one_minus_f1() -> None:
    scores = alignment_report(FOUND, SURE).scores
    assert scores.aer == pytest.approx(1 - scores.f1)


def test_arrays_and_links_count_as_sets_do() -> None:
    tables = [np.array(sorted(pair)) for pair in FOUND]
    expected = alignment_report(FOUND, SURE, POSSIBLE)
    assert alignment_report(tables, SURE, POSSIBLE) == expected
    assert alignment_report(*(Links.from_pairs(side) for side in (FOUND, SURE, POSSIBLE))) == expected


def test_a_link_that_is_repeated_counts_once() -> None:
    assert alignment_report([np.array([[0, 0], [0, 0]])], [{(0, 0)}]).n_links == 1


def test_the_gold_itself_has_no_errors_and_nothing_has_all() -> None:
    assert alignment_report(SURE, SURE, POSSIBLE).scores == (1.0, 1.0, 1.0, 0.0)
    assert alignment_report([[], []], SURE, POSSIBLE).scores == (0.0, 0.0, 0.0, 1.0)


def test_intervals_are_quantiles_over_resampled_pairs() -> None:
    rng = np.random.default_rng(0)
    sure = [{(i, i) for i in range(10)} for _ in range(200)]
    found = [{(i, i) if rng.random() < 0.8 else (i, i + 1) for i in range(10)} for _ in range(200)]
    report = alignment_report(found, sure, level=0.9)
    spread = np.sqrt(0.2 * 0.8 / 2000)  # every link is an independent draw
    assert report.low.aer < report.scores.aer < report.high.aer
    assert report.high.aer - report.low.aer == pytest.approx(2 * 1.645 * spread, rel=0.15)
    wider = alignment_report(found, sure, level=0.99)
    assert wider.low.aer < report.low.aer
    assert alignment_report(found, sure, level=0.9) == report  # the same seed


def test_draws_are_the_same_for_all_aligners() -> None:
    counts = link_counts(FOUND, SURE, POSSIBLE)
    scores = bootstrap_scores(counts, 50)
    assert (scores.aer == bootstrap_scores(counts.copy(), 50).aer).all()
    assert not (scores.aer == bootstrap_scores(counts, 50, random_state=1).aer).all()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((FOUND[:1], SURE), "links of 1 sentence pairs, but gold links of 2"),
        ((FOUND, SURE, POSSIBLE[:1]), "and 1 .possible."),
        ((FOUND, [[], []], POSSIBLE), "no sure links"),
        (([(0, 0)], [[(0, 0)]]), "pairs of whole numbers"),
        ((FOUND, SURE, POSSIBLE, 1.5), "level must be between 0 and 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments: tuple[object, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        alignment_report(*arguments)  # type: ignore[arg-type]
