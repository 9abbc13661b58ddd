"""Alignment error rates on the Hansards (10,000 sentence pairs and the 484 hand-aligned ones)."""

from __future__ import annotations

import itertools
import lzma
from pathlib import Path
from typing import Any

import pytest

from subchain import CVI
from subchain.alignment import ParallelText, WordAligner, alignment_report, read_gold

HANSARDS = Path(__file__).resolve().parents[2] / "shared" / "data" / "hansards"
N_DEV, N_TEST, N_TRAIN = 37, 447, 10_000

pytestmark = pytest.mark.skipif(not HANSARDS.exists(), reason="needs ../shared/data/hansards")


@pytest.fixture(scope="module")
def text() -> ParallelText:
    sides = []
    for side in "ef":
        lines: list[str] = []
        for name in ("dev37", "test447"):
            lines += (HANSARDS / f"{name}.{side}").read_text("latin1").splitlines()
        with lzma.open(HANSARDS / f"train.{side}.xz", "rt", encoding="latin1") as train:
            lines += [line.strip() for line in itertools.islice(train, N_TRAIN)]
        sides.append(lines)
    return ParallelText.from_sentences(*sides, lowercase=True)


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"symmetrize": "product"}, 8.6),
        ({"symmetrize": "grow-product"}, 8.6),
        ({}, 10.0),
        ({"agreement": False}, 12.7),
        ({"inference": CVI(cluster="state"), "agreement": False, "concentration": 0.01, "iterations": 3}, 13.8),
        ({"inference": "em"}, 10.2),
        ({"inference": "em", "agreement": False}, 19.8),
    ],
)
def test_error_rates_are_low(text: ParallelText, settings: dict[str, Any], most: float) -> None:
    aligner = WordAligner(progress=False, **({"symmetrize": "grow-diag-final-and"} | settings)).fit(text)
    links = aligner.links().between(N_DEV, N_DEV + N_TEST)
    report = alignment_report(links, *read_gold(HANSARDS / "test447.a", swap=True), n_resamples=1)
    assert 100.0 * report.scores.aer <= most
