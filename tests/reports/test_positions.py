"""Positions are told in units that make sense, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.errors import InputError
from subchain.reports.positions import Positions


@pytest.mark.parametrize(
    ("settings", "digits", "told"),
    [
        ({}, 0, "12.3 positions"),
        ({"step": 200, "unit": "bp"}, 0, "12.3 positions (2.47\xa0kb)"),
        ({"step": np.float32(0.5), "unit": " h ", "offset": 6}, 1, "12.3 positions (6.17\xa0h)"),
        ({"step": 1, "offset": 0.25}, 1, "12.3 positions (12.3)"),
        ({"step": 1 / 360, "unit": "s"}, 4, "12.3 positions (0.0343\xa0s)"),
        ({"step": 50_000, "unit": "s"}, 0, "12.3 positions (7.14\xa0d)"),
        ({"step": 1e6, "unit": "years"}, 0, "12.3 positions (12,345,600\xa0years)"),
    ],
)
def test_lengths_and_decimals_follow_the_step(settings, digits, told) -> None:
    positions = Positions.read(**settings)
    assert positions.digits == digits
    assert positions.several(12.3456) == told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", value) for value in (0, -1, "200", True, None, float("nan"), float("inf"), 10**400, [200], 1e-30)),
        *(("offset", value) for value in ("0", float("nan"), -float("inf"), None, False)),
        *(("unit", value) for value in ("", "  ", 5, "a\nb", "x" * 17, b"bp")),
    ],
)
def test_anything_else_is_refused_in_one_sentence(name, value) -> None:
    with pytest.raises(InputError, match=f"^{name} must be") as found:
        Positions.read(**{name: value})
    assert "\n" not in str(found.value)
