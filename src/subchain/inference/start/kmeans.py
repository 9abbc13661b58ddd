"""Clusters of points, for starts: k-means with well-spread first centres, the best of a few runs on a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Points that centres are looked for among; the others are only assigned.
SAMPLE = 8192
RUNS, ROUNDS = 4, 30
#: Share of the spread by which a round has to improve for another to follow.
WORTHWHILE = 1e-4


def cluster(points: Array, n_clusters: int, rng: np.random.Generator) -> Index:
    """Assign each of (n, D) points to one of so many clusters, numbered at random; equal points share a cluster.

    The points are moved in place so that their mean is zero: far from the origin, distances would lose digits.
    """
    points -= points.mean(axis=0)
    sample = points if len(points) <= SAMPLE else points[rng.choice(len(points), SAMPLE, replace=False)]
    runs = [_run(sample, n_clusters, rng) for _ in range(RUNS)]
    centres = min(runs, key=lambda run: run[0])[1]
    return rng.permutation(n_clusters)[_nearest(points, centres)[0]]


def _nearest(points: Array, centres: Array) -> tuple[Index, Array]:
    """The nearest centre of each point, and the square of its distance."""
    distance = points @ (-2.0 * centres.T)
    distance += (centres**2).sum(axis=1)
    labels = distance.argmin(axis=1)
    nearest = distance[np.arange(len(points)), labels] + (points**2).sum(axis=1)
    return labels, np.maximum(nearest, 0.0)


def _run(points: Array, n_clusters: int, rng: np.random.Generator) -> tuple[float, Array]:
    """Spread and centres of one run."""
    centres = _spread_out(points, n_clusters, rng)
    before = np.inf
    for _ in range(ROUNDS):
        labels, distance = _nearest(points, centres)
        spread = float(distance.sum())
        if not spread < before * (1.0 - WORTHWHILE):
            break
        before = spread
        counts = np.bincount(labels, minlength=len(centres))
        sums = np.stack([np.bincount(labels, column, len(centres)) for column in points.T], axis=1)
        moved = sums / np.maximum(counts, 1)[:, None]
        centres = np.where(counts[:, None] > 0, moved, centres)
    return before, centres


def _spread_out(points: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """First centres among the points, each chosen the more probably the farther it is from those before it.

    Fewer of them if there are not so many different points.
    """
    centres = [points[rng.integers(len(points))]]
    distance = ((points - centres[0]) ** 2).sum(axis=1)
    while len(centres) < n_clusters and distance.any():
        trials = rng.choice(len(points), 2 + int(np.log(n_clusters)), p=distance / distance.sum())
        tried = [np.minimum(distance, ((points - points[trial]) ** 2).sum(axis=1)) for trial in trials]
        best = int(np.argmin([left.sum() for left in tried]))
        centres.append(points[trials[best]])
        distance = tried[best]
    return np.array(centres)
