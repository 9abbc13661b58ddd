"""Random problems for the slow versions of collapsed inference, and their paths."""

from __future__ import annotations

import itertools

import naive_bounds
import naive_cvi
import numpy as np
from hypothesis import strategies as st
from naive_collapsed import Marginals, Problem, cut
from numpy.typing import NDArray

Array = NDArray[np.float64]


def random_problem(rng: np.random.Generator, lengths: list[int], n_states: int, n_symbols: int, gaps: float) -> Problem:
    """Unequal concentrations and missing symbols; a share `gaps` of moves, symbols and states is forbidden.

    State 0 may always be visited, so there is a path.
    """

    def positive(*shape: int) -> Array:
        return rng.gamma(2.0, 0.5, shape) + 0.05

    def open_entries(*shape: int) -> Array:
        kept = rng.random(shape) >= gaps
        kept[..., 0] = True
        return kept.astype(np.float64)

    data = [[int(symbol) for symbol in rng.integers(-1, n_symbols, length)] for length in lengths]
    initial = positive(n_states) * open_entries(n_states)
    rows = positive(n_states, n_states) * open_entries(n_states, n_states)
    beta = positive(n_symbols, n_states) * open_entries(n_symbols, n_states)
    legal = [open_entries(length, n_states) for length in lengths] if gaps else None
    return Problem(data, initial, rows, beta, legal)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, np.random.Generator]:
    """Problems of a few hundred joint paths at most."""
    n_states = draw(st.integers(2, 3))
    lengths = draw(st.sampled_from([[1], [4], [1, 2], [2, 3], [1, 1, 3]] + ([[3, 4], [6, 2]] if n_states == 2 else [])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_problem(rng, lengths, n_states, draw(st.integers(2, 3)), draw(st.sampled_from([0.0, 0.3]))), rng


def same_marginals(a: Marginals, b: Marginals, tolerance: float) -> bool:
    """The marginals and pairs of all clusters are equal."""
    clusters = zip(itertools.chain(*a), itertools.chain(*b), strict=True)
    tables = (pair for left, right in clusters for pair in zip(left, right, strict=True))
    return all(float(np.abs(x - y).max(initial=0.0)) <= tolerance for x, y in tables)


def split(flat: NDArray[np.int64], problem: Problem) -> list[list[int]]:
    """The path of each sequence out of the states of all positions in a row."""
    ends = np.cumsum([len(symbols) for symbols in problem.data])
    return [[int(k) for k in path] for path in np.split(flat, ends[:-1])]


def weighted_paths(q: Marginals, problem: Problem) -> list[tuple[float, list[list[int]]]]:
    """Every joint path with its probability under q."""
    n_positions = sum(len(symbols) for symbols in problem.data)
    flat = np.array(list(itertools.product(range(len(problem.alpha_initial)), repeat=n_positions)))
    probability = np.exp(naive_bounds.log_probability(q, flat))
    return [(p, split(path, problem)) for p, path in zip(probability, flat, strict=True) if p > 0]


#: Every approximation, one pass.
PASSES = {
    "state": lambda q, problem: naive_cvi.cvi_state_pass(cut(q, 1), problem),
    "state, probabilities": lambda q, problem: naive_cvi.cvi_state_pass(
        cut(q, 1), problem, neighbour_weighting="probabilities"
    ),
    "sequence": naive_cvi.cvi_sequence_pass,
    "subchain": lambda q, problem: naive_cvi.cvi_subchain_pass(cut(q, 2), problem),
    "vi": naive_cvi.vi_pass,
}
