"""Collapsed variational inference against its slow version, pass by pass from the same local posteriors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import naive_bounds
import naive_collapsed as naive
import naive_cvi
import numpy as np
import pytest
from naive_collapsed import Chain, Marginals
from numpy.typing import NDArray

from subchain import HMM, VI, Categorical, Dirichlet
from subchain.data import Sequences
from subchain.inference import Algorithm
from subchain.inference.cvi import CVI
from subchain.structures.chain.collapsed import sharding
from subchain.structures.chain.collapsed.ledger import ChainLedger

Array = NDArray[np.float64]

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

N_SYMBOLS = 6
LENGTHS = [5, 1, 8, 3, 2, 6]
PASSES = 3


class Run(NamedTuple):
    """A fit, what it started with, what it kept, and its seed."""

    model: HMM
    start: Marginals
    ledger: Any
    seed: int

    @property
    def marginals(self) -> Array:
        """(N, K) marginals at the end."""
        return np.asarray(self.ledger.shares.table(0, self.ledger.data.n_observations).T)


Fit = Callable[..., Run]


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch) -> Fit:
    """Fits that remember the local posteriors they began with."""
    kept: list[tuple[Marginals, ChainLedger, int]] = []
    draw = ChainLedger.draw

    def remember(ledger: ChainLedger, kind: str, seed: int) -> None:
        draw(ledger, kind, seed)
        kept.append((shares_of(ledger), ledger, seed))

    monkeypatch.setattr(ChainLedger, "draw", remember)

    def run(
        algorithm: CVI, problem: naive.Problem, init: str = "posteriors", mask: Any = None, **knowledge: Any
    ) -> Run:
        kept.clear()
        model = model_of(problem, algorithm, init, mask).fit(as_sequences(problem.data), **knowledge)
        return Run(model, *kept[0])

    return run


def model_of(problem: naive.Problem, algorithm: Algorithm, init: str = "posteriors", mask: Any = None) -> HMM:
    rows = np.where(problem.alpha_rows > 0, problem.alpha_rows, 1.0)
    transition = Dirichlet(rows, initial_concentration=problem.alpha_initial, mask=mask)
    emission = Categorical(problem.beta[:, 0], n_categories=len(problem.beta))
    n_states = len(problem.alpha_initial)
    return HMM(n_states, emission, transition, inference=algorithm, init=init, random_state=1)


def as_sequences(data: naive.Data) -> Sequences:
    return Sequences(np.concatenate([np.asarray(symbols) for symbols in data]), np.cumsum([0, *map(len, data)]))


def shares_of(ledger: ChainLedger) -> Marginals:
    """The ledger's marginals as clusters.

    Pieces that are visited together share one table of moves, which the first of them is given here.
    """
    layout, shares = ledger.clusters, ledger.shares
    nothing = np.zeros((0, ledger.n_states, ledger.n_states))
    marginals: Marginals = [[] for _ in range(len(ledger.data.offsets) - 1)]
    given: set[int] = {0}
    for piece, sequence in enumerate(layout.sequences):
        first, last = int(layout.starts[piece]), int(layout.starts[piece] + layout.lengths[piece])
        row = int(layout.share_of[piece])
        if len(shares.moves):
            pairs = shares.listed_pairs(first, last)[None] if last - first > 1 else nothing
        else:
            pairs = nothing if row in given else shares.pairs[row : row + 1].copy()
        given.add(row)
        marginals[sequence].append(Chain(shares.table(first, last).T.copy(), pairs))
    return marginals


def marginals(q: Marginals) -> Array:
    return np.concatenate([chain.marginals for clusters in q for chain in clusters])


def problem_of(n_states: int, seed: int = 0, lengths: list[int] = LENGTHS) -> naive.Problem:
    """Unequal concentrations of moves and symbols, and some symbols missing."""
    rng = np.random.default_rng(seed)
    data = [[int(symbol) for symbol in rng.integers(-1, N_SYMBOLS, length)] for length in lengths]
    beta = np.repeat(rng.gamma(2.0, 0.3, N_SYMBOLS)[:, None] + 0.02, n_states, axis=1)
    return naive.Problem(
        data, rng.gamma(2.0, 0.5, n_states) + 0.05, rng.gamma(2.0, 0.5, (n_states, n_states)) + 0.05, beta
    )


def follow(run: Run, problem: naive.Problem, step: Callable[..., Marginals], **settings: Any) -> Marginals:
    """As many passes of the slow version."""
    q = run.start
    for _ in range(PASSES):
        q = step(q, problem, **settings)
    return q


def assert_same(run: Run, q: Marginals, problem: naive.Problem, tolerance: float = 1e-11) -> None:
    """Marginals, counts and objective are those of the slow version."""
    assert run.marginals == pytest.approx(marginals(q), abs=tolerance)
    counts, found = naive_cvi.expected_counts(q, problem), run.ledger.statistics
    assert found.initial == pytest.approx(counts.initial, abs=tolerance)
    assert found.pairs == pytest.approx(counts.rows, abs=tolerance)
    assert emitted(run) == pytest.approx(counts.emission, abs=tolerance)
    assert run.model.trace_.objective[-1] == pytest.approx(naive_bounds.expected_bound(q, problem), abs=1e-8)


def emitted(run: Run) -> Array:
    """(W, K) expected symbols of each state."""
    (table,) = run.ledger.statistics.emission.arrays().values()
    return np.asarray(table)


def collapsed(**settings: Any) -> CVI:
    return CVI(**({"cluster": "sequence"} | settings), max_iter=PASSES, tolerance=0.0)


SEQUENCES: list[dict[str, Any]] = [
    {},
    {"exclude": False},
    {"order": "batch"},
    {"order": "batch", "exclude": False},
    {"cluster_size": 2},
    {"cluster_size": 5},
    {"cluster_size": 2, "exclude": False},
]
SUBCHAINS: list[dict[str, Any]] = [
    {"neighbour_weighting": "counts"},
    {"neighbour_weighting": "probabilities"},
    {"neighbour_weighting": "probabilities", "exclude": False},
    {"neighbour_weighting": "counts", "exclude": False},
    {"neighbour_weighting": "probabilities", "order": "batch"},
    {"neighbour_weighting": "counts", "order": "batch"},
    {"neighbour_weighting": "probabilities", "cluster_size": 2},
    {"neighbour_weighting": "counts", "cluster_size": 3},
]


@pytest.mark.parametrize("n_states", [2, 5, 9])
@pytest.mark.parametrize("settings", SEQUENCES, ids=str)
def test_passes_over_sequences(fit: Fit, settings: dict[str, Any], n_states: int) -> None:
    problem = problem_of(n_states)
    run = fit(collapsed(**settings), problem)
    assert_same(run, follow(run, problem, naive_cvi.cvi_sequence_pass, **settings), problem)


@pytest.mark.parametrize("n_states", [2, 5, 9])
@pytest.mark.parametrize("length", [1, 2, 3, 8])
@pytest.mark.parametrize("settings", SUBCHAINS, ids=str)
def test_passes_over_subchains(fit: Fit, settings: dict[str, Any], length: int, n_states: int) -> None:
    problem = problem_of(n_states)
    run = fit(collapsed(cluster="subchain", length=length, **settings), problem)
    assert_same(run, follow(run, problem, naive_cvi.cvi_subchain_pass, **settings), problem)


@pytest.mark.parametrize("n_states", [2, 5, 9])
@pytest.mark.parametrize("order", ["incremental", "batch"])
def test_passes_over_states(fit: Fit, order: str, n_states: int) -> None:
    problem = problem_of(n_states)
    run = fit(collapsed(cluster="state", order=order), problem)
    assert_same(run, follow(run, problem, naive_cvi.cvi_state_pass, order=order), problem)


@pytest.mark.parametrize("neighbour_weighting", ["counts", "probabilities"])
def test_passes_over_states_without_corrections(fit: Fit, neighbour_weighting: str) -> None:
    problem = problem_of(5)
    run = fit(collapsed(cluster="state", corrections=False, neighbour_weighting=neighbour_weighting), problem)
    assert_same(
        run,
        follow(run, problem, naive_cvi.cvi_state_pass, corrections=False, neighbour_weighting=neighbour_weighting),
        problem,
    )


def test_states_that_see_themselves_need_no_corrections(fit: Fit) -> None:
    problem = problem_of(5)
    run = fit(collapsed(cluster="state", exclude=False), problem)
    assert_same(
        run, follow(run, problem, naive_cvi.cvi_subchain_pass, neighbour_weighting="counts", exclude=False), problem
    )


# ---- knowledge of the states -----------------------------------------------------------------------------------------

CLUSTERS: dict[str, tuple[dict[str, Any], Callable[..., Marginals], dict[str, Any]]] = {
    "sequence": ({}, naive_cvi.cvi_sequence_pass, {}),
    "cluster_size": ({"cluster_size": 2}, naive_cvi.cvi_sequence_pass, {"cluster_size": 2}),
    "state": ({"cluster": "state"}, naive_cvi.cvi_state_pass, {}),
    "subchain": (
        {"cluster": "subchain", "length": 2},
        naive_cvi.cvi_subchain_pass,
        {"neighbour_weighting": "probabilities"},
    ),
}


def table_of(problem: naive.Problem, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Legal states of all positions; the first state always is."""
    n_positions = sum(len(symbols) for symbols in problem.data)
    legal = rng.random((n_positions, len(problem.alpha_initial))) < 0.5
    legal[:, 0] = True
    return legal


def split(table: NDArray[Any], problem: naive.Problem) -> list[Array]:
    return np.split(table.astype(np.float64), np.cumsum([len(symbols) for symbols in problem.data])[:-1])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_legal_states_of_positions(fit: Fit, cluster: str) -> None:
    settings, step, slow = CLUSTERS[cluster]
    problem = problem_of(5)
    legal = table_of(problem, np.random.default_rng(4))
    problem = problem._replace(legal=split(legal, problem))
    run = fit(collapsed(**settings), problem, allowed=legal)
    assert_same(run, follow(run, problem, step, **slow), problem)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_weights_of_states(fit: Fit, cluster: str) -> None:
    settings, step, slow = CLUSTERS[cluster]
    problem, rng = problem_of(5), np.random.default_rng(4)
    legal = table_of(problem, rng)
    weights = np.where(legal, np.exp(rng.normal(size=legal.shape)), 0.0)
    problem = problem._replace(legal=split(weights, problem))
    with np.errstate(divide="ignore"):
        run = fit(collapsed(**settings), problem, evidence=np.log(weights))
    assert_same(run, follow(run, problem, step, **slow), problem)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_start_with_one_state_a_position(fit: Fit, cluster: str) -> None:
    settings, step, slow = CLUSTERS[cluster]
    problem = problem_of(5)
    run = fit(collapsed(**settings), problem, init="states")
    assert set(np.unique(marginals(run.start))) == {0.0, 1.0}
    assert_same(run, follow(run, problem, step, **slow), problem)


@pytest.mark.parametrize("cluster", ["sequence", "cluster_size", "subchain"])
def test_masked_moves_stay_impossible(fit: Fit, cluster: str) -> None:
    settings, step, slow = CLUSTERS[cluster]
    problem = problem_of(3)
    mask = np.triu(np.ones((3, 3), dtype=bool))
    problem = problem._replace(alpha_rows=problem.alpha_rows * mask)
    run = fit(collapsed(**settings), problem, mask=mask)
    assert run.marginals == pytest.approx(marginals(follow(run, problem, step, **slow)), abs=1e-11)
    assert (run.model.transition_[~mask] == 0).all()
    assert len(run.model.trace_.objective) == PASSES


@pytest.mark.parametrize("cluster_size", [1, 2])
def test_masked_moves_leave_the_objective_finite(fit: Fit, cluster_size: int) -> None:
    problem = problem_of(3)
    mask = np.triu(np.ones((3, 3), dtype=bool))
    problem = problem._replace(alpha_rows=problem.alpha_rows * mask)
    run = fit(collapsed(cluster_size=cluster_size), problem, mask=mask)
    assert_same(run, follow(run, problem, naive_cvi.cvi_sequence_pass, cluster_size=cluster_size), problem)


# ---- sequences that count more often ---------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SEQUENCES, ids=str)
def test_weights_of_one_change_nothing(fit: Fit, settings: dict[str, Any]) -> None:
    problem = problem_of(5)
    run = fit(collapsed(**settings), problem, sample_weight=np.ones(len(LENGTHS)))
    assert_same(run, follow(run, problem, naive_cvi.cvi_sequence_pass, **settings), problem)


@pytest.mark.parametrize("neighbour_weighting", ["counts", "probabilities"])
def test_weights_of_one_change_nothing_for_subchains(fit: Fit, neighbour_weighting: str) -> None:
    problem = problem_of(5)
    run = fit(
        collapsed(cluster="subchain", length=2, neighbour_weighting=neighbour_weighting),
        problem,
        sample_weight=np.ones(len(LENGTHS)),
    )
    assert_same(
        run, follow(run, problem, naive_cvi.cvi_subchain_pass, neighbour_weighting=neighbour_weighting), problem
    )


def test_a_sequence_that_counts_twice_is_two_sequences_visited_together(fit: Fit) -> None:
    problem = problem_of(4)
    weights = [2, 1, 3, 1, 1, 2]
    run = fit(collapsed(), problem, sample_weight=weights)
    data = [symbols for symbols, weight in zip(problem.data, weights, strict=True) for _ in range(weight)]
    number = iter(range(len(data)))
    visits = [[(next(number), 0) for _ in range(weight)] for weight in weights]
    q = [[Chain(own.marginals, own.pairs / w)] for (own,), w in zip(run.start, weights, strict=True) for _ in range(w)]
    for _ in range(PASSES):
        q = naive_cvi.cvi_sequence_pass(q, problem._replace(data=data), visits=visits)
    assert run.marginals == pytest.approx(marginals([q[group[0][0]] for group in visits]), abs=1e-11)
    counts = naive_cvi.expected_counts(q, problem._replace(data=data))
    assert run.ledger.statistics.pairs == pytest.approx(counts.rows, abs=1e-11)
    assert emitted(run) == pytest.approx(counts.emission, abs=1e-11)
    assert run.model.trace_.objective[-1] == pytest.approx(
        naive_bounds.expected_bound(q, problem._replace(data=data)), abs=1e-8
    )


# ---- whatever the slow version says ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_random_order_visits_every_cluster_once(fit: Fit, cluster: str) -> None:
    settings, step, slow = CLUSTERS[cluster]
    problem = problem_of(4)
    run = fit(collapsed(order="shuffled", **settings), problem)
    ledger = run.ledger
    q = run.start
    everyone = naive.places(q)
    for iteration in range(PASSES):
        order = np.random.default_rng([run.seed, iteration]).permutation(ledger.size)
        visits = [[everyone[piece] for piece in ledger.clusters.pieces(int(number))] for number in order]
        q = step(q, problem, visits=visits, **slow)
    assert_same(run, q, problem)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_shards_see_what_others_did_in_earlier_rounds(fit: Fit, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LEAST_WORK": 1.0, "MOST_SHARDS": 2, "FEWEST_ROUNDS": 3, "MOST_ROUNDS": 3}.items():
        monkeypatch.setattr(sharding, name, value)
    settings, step, slow = CLUSTERS[cluster]
    problem = problem_of(4, lengths=[*LENGTHS, 7, 4, 6, 5, 3, 6, 4, 5, 2, 6, 5, 4] * 3)
    run = fit(collapsed(order="shards", **settings), problem)
    blocks, q = run.ledger.sharding.blocks, run.start
    everyone = naive.places(q)

    def groups(number: int, shard: int) -> list[list[naive.Place]]:
        pieces = [run.ledger.clusters.pieces(int(cluster)) for cluster in blocks.of(shard, number)]
        return [[everyone[piece] for piece in some] for some in pieces]

    assert (blocks.n_shards, blocks.n_rounds) == (2, 3)
    rounds = [[groups(number, shard) for shard in range(2)] for number in range(3)]
    for _ in range(PASSES):
        q = naive_cvi.shards_pass(q, rounds, lambda q, visits: step(q, problem, visits=visits, **slow))
    assert_same(run, q, problem)


def test_one_subchain_for_a_sequence_is_a_sequence(fit: Fit) -> None:
    problem = problem_of(5)
    whole = fit(collapsed(), problem)
    parts = fit(collapsed(cluster="subchain", length=max(LENGTHS)), problem)
    assert parts.marginals == pytest.approx(whole.marginals, abs=1e-12)


@pytest.mark.parametrize("neighbour_weighting", ["counts", "probabilities"])
def test_subchains_of_one_state_are_states_without_corrections(fit: Fit, neighbour_weighting: str) -> None:
    problem = problem_of(5)
    states = fit(collapsed(cluster="state", corrections=False, neighbour_weighting=neighbour_weighting), problem)
    parts = fit(collapsed(cluster="subchain", length=1, neighbour_weighting=neighbour_weighting), problem)
    assert parts.marginals == pytest.approx(states.marginals, abs=1e-12)


def test_variational_inference_begins_with_the_same_local_posteriors(fit: Fit) -> None:
    problem = problem_of(4)
    q = fit(collapsed(), problem).start
    model = model_of(problem, VI(max_iter=PASSES, tolerance=0.0)).fit(as_sequences(problem.data))
    for _ in range(PASSES):
        q = naive_cvi.vi_pass(q, problem)
    mean = naive_cvi.predictive(naive_cvi.expected_counts(q, problem), problem)
    assert model.transition_ == pytest.approx(mean.rows, abs=1e-12)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_statistics_are_the_sum_of_all_shares(fit: Fit, cluster: str) -> None:
    settings, _, _ = CLUSTERS[cluster]
    problem = problem_of(5)
    run = fit(CVI(**({"cluster": "sequence"} | settings), max_iter=27, tolerance=0.0), problem)
    counts = naive_cvi.expected_counts(shares_of(run.ledger), problem)
    found = run.ledger.statistics
    assert found.initial == pytest.approx(counts.initial, abs=1e-9)
    assert found.pairs == pytest.approx(counts.rows, abs=1e-9)
