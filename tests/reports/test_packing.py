"""Arrays come out of a page as they went in."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from subchain.reports.packing import Packing, as_bytes, as_roots


def test_arrays_come_out_as_they_went_in() -> None:
    rng = np.random.default_rng(0)
    given = {
        "odd": rng.integers(0, 256, (3, 5)).astype(np.uint8),
        "wide": rng.integers(0, 60_000, 7).astype(np.uint16),
        "none": np.zeros(0, dtype=np.uint8),
    }
    packing = Packing()
    for name, array in given.items():
        packing.add(name, array)
    block = zlib.decompress(base64.b64decode(packing.block()))
    for name, array in given.items():
        place = packing.index[name]
        assert place["offset"] % 4 == 0
        found = np.frombuffer(block, array.dtype, array.size, place["offset"]).reshape(place["shape"])
        np.testing.assert_array_equal(found, array)


def test_probabilities_are_kept_to_one_part_in_ten_thousand_of_their_root() -> None:
    given = np.geomspace(1e-8, 1.0, 200)
    found = (as_roots(given) / 65_535.0) ** 2
    assert (np.abs(found - given) <= 2e-5 * np.sqrt(given) + 1e-9).all()


def test_shares_are_kept_to_half_a_byte() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(7), 100)
    assert np.abs(as_bytes(shares) / 255.0 - shares).max() <= 0.5 / 255.0 + 1e-12
