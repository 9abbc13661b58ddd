"""A few hundred random fits, and some random kills; `python -m fuzz.fits` and `fuzz.kills` run any number of them."""

import sys

import pytest

from fuzz import fits, kills, mishaps
from fuzz.cases import draw_case
from fuzz.children import PASSED, VIOLATION, judge, verdicts

#: Seeds of one test: few enough that the tests spread over workers.
BLOCK = 10


def violations(found):
    return [f"{draw_case(verdict.seed)}\n{verdict.what}" for verdict in found if verdict.kind == VIOLATION]


@pytest.mark.parametrize("first", range(0, 200, BLOCK))
def test_random_fits(first):
    found = [judge(fits.run, seed) for seed in range(first, first + BLOCK)]
    assert not violations(found)
    assert sum(verdict.kind == PASSED for verdict in found) >= BLOCK // 2


@pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")
@pytest.mark.parametrize("first", range(0, 40, BLOCK))
def test_random_kills(first):
    assert not violations([judge(kills.run, seed) for seed in range(first, first + BLOCK)])


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
