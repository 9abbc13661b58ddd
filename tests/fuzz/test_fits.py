"""A few hundred random fits, and some random kills; `python -m fuzz.fits` and `fuzz.kills` run any number of them."""

import sys

import pytest

from fuzz import fits, kills, mishaps
from fuzz.cases import draw_case
from fuzz.children import PASSED, VIOLATION, judge, verdicts
from subchain.engines import Cpu

#: Seeds that found a defect: pieces in log space with the wrong matrix, known states that contradict a mask or an
#: initial distribution, a lane in log space whose filtered marginals are nan, large counts in log space, counts that
#: rounding takes below zero, objectives whose large terms cancel, rows of weights that all underflow,
#: drawn marginals of impossible first states, expected counts that are lost in rounding,
#: messages from both sides that nearly contradict each other, large counts, a search among weights that underflow,
#: a mean of observations that cancel, a search that begins by rounding, a likelihood that is flat,
#: weights of transitions that underflow to zero, nearly equal states that amplify rounding, sums of a tile that
#: underflowed and is run again.
FOUND = [
    82,
    666,
    2395,
    3001,
    5846,
    12262,
    13535,
    25660,
    29235,
    55837,
    205899,
    401242,
    408083,
    416759,
    603363,
    701547,
    708823,
    1015089,
    1212291,
    1502670,
    2006261,
    1616043,
]
#: And of kills: sums whose terms cancel, a measure that only some iterations have,
#: an adaptive rate of data that want no change.
KILLED = [59, 112, 1530, 1705, 3133, 20971]
#: Seeds of one test: few enough that the tests spread over workers.
BLOCK = 10


def violations(found):
    return [f"{draw_case(verdict.seed)}\n{verdict.what}" for verdict in found if verdict.kind == VIOLATION]


@pytest.mark.parametrize("first", range(0, 200, BLOCK))
def test_random_fits(first):
    found = [judge(fits.run, seed) for seed in range(first, first + BLOCK)]
    assert not violations(found)
    assert sum(verdict.kind == PASSED for verdict in found) >= BLOCK // 2


def test_fits_that_found_a_defect():
    assert not violations([judge(fits.run, seed) for seed in FOUND])


def test_an_engine_that_is_slightly_wrong_is_noticed(monkeypatch):
    """Counts that are off by one part in 10,000: more than the check allows, and more than rounding explains."""

    def wrong(engine, surrogate, part, statistics=Cpu.statistics):
        found = statistics(engine, surrogate, part)
        found.chain.pairs[:, 0] *= 1.0 + 1e-4
        return found

    case = draw_case(507)  # VI of three states, each of whose transitions occurs
    fits.the_naive_engine_agrees(case, fits.fit(case))
    monkeypatch.setattr(Cpu, "statistics", wrong)
    with pytest.raises(fits.Violation, match=r"differs by .* by rounding only by"):
        fits.the_naive_engine_agrees(case, fits.fit(case))


@pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")
@pytest.mark.parametrize("seeds", [range(10), range(10, 20), range(20, 30), KILLED])
def test_random_kills(seeds):
    assert not violations([judge(kills.run, seed) for seed in seeds])


def test_a_crash_or_a_hang_is_the_verdict_of_its_case_alone():
    found = {verdict.seed: verdict for verdict in verdicts(range(6), mishaps.run, limit=1.0)}
    assert {seed for seed, verdict in found.items() if verdict.kind == VIOLATION} == {
        mishaps.CRASHES,
        mishaps.RAISES,
        mishaps.HANGS,
    }
    assert "exit code 3" in found[mishaps.CRASHES].what
    assert "ZeroDivisionError" in found[mishaps.RAISES].what
    assert "no end" in found[mishaps.HANGS].what
    assert len(found) == 6
