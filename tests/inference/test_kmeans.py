"""Clusters for starts."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.inference.start.kmeans import cluster


@pytest.mark.parametrize("n_points", [60, 30_000])
def test_blobs_are_found_whatever_the_seed(n_points: int) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(n_points) % 6
    points = 10.0 * rng.permutation(6)[truth][:, None] + rng.normal(size=(n_points, 2))
    for seed in range(5):
        labels = cluster(points, 6, np.random.default_rng(seed))
        pairs = set(zip(truth.tolist(), labels.tolist(), strict=True))
        assert len(pairs) == len({label for _, label in pairs}) == 6


def test_numbers_of_clusters_come_in_any_order() -> None:
    points = np.repeat([[0.0], [50.0]], 20, axis=0)
    firsts = {int(cluster(points, 4, np.random.default_rng(seed))[0]) for seed in range(40)}
    assert firsts == {0, 1, 2, 3}


def test_fewer_points_than_clusters() -> None:
    labels = cluster(np.array([[1.0], [1.0], [2.0]]), 5, np.random.default_rng(0))
    assert labels[0] == labels[1] != labels[2]


def test_all_points_alike() -> None:
    assert len(set(cluster(np.ones((9, 3)), 3, np.random.default_rng(0)).tolist())) == 1
