"""Low-rank transitions: the same as the product matrix, learned by counts of features, in O(K f)."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

from subchain import CVI, EM, HMM, SCVI, SVI, VI, Beam, BlockSparse, Categorical, Dirichlet, Gibbs, LowRank
from subchain.data import Sequences
from subchain.engines import Cpu, Part
from subchain.errors import InputError
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.low_rank import LowRankChain, LowRankDirichlet
from subchain.transitions.operators import Factored
from subchain.transitions.stationary import stationary_of
from subchain.transitions.sums import ChainSums, FactoredSums

STATES, FEATURES, WORDS = 7, 3, 11


def pair(seed: int = 0, n_states: int = STATES, table: Any = None, evenness: float = 1.0) -> tuple[HMM, HMM]:
    """A model with factors, and the same with the product matrix."""
    rng = np.random.default_rng(seed)
    left = rng.dirichlet(np.full(FEATURES, evenness), n_states)
    right = rng.dirichlet(np.full(n_states, evenness), FEATURES)
    table = rng.dirichlet(np.ones(WORDS), n_states) if table is None else table
    initial, emission = rng.dirichlet(np.ones(n_states)), Categorical.from_parameters(table)
    low = HMM.from_parameters(initial, LowRank.from_parameters(left, right), emission)
    return low, HMM.from_parameters(initial, left @ right, emission)


def data(seed: int = 0, lengths: Any = (5, 9, 1, 30, 2)) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, WORDS, n) for n in lengths]


def fit(inference: Any, x: Any, transition: Any = None, n_states: int = STATES, **settings: Any) -> HMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMM(n_states, "categorical", transition or LowRank(FEATURES), inference, random_state=0, **settings)
        return model.fit(x)


# ---- the same as the product matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(5, 9, 1, 30, 2), (6000, 3)], ids=["short", "cut"])
def test_the_same_as_the_product_matrix(lengths: Any) -> None:
    (low, dense), x = pair(), data(lengths=lengths)
    x[0][2] = -1
    np.testing.assert_allclose(low.score_sequences(x), dense.score_sequences(x), rtol=1e-12)
    for method in ("predict_proba", "filter", "score_samples", "score_steps"):
        for one, other in zip(getattr(low, method)(x), getattr(dense, method)(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    for one, other in zip(low.predict(x, "viterbi"), dense.predict(x, "viterbi"), strict=True):
        np.testing.assert_array_equal(one, other)
    ours, theirs = low.expected_statistics(x), dense.expected_statistics(x)
    np.testing.assert_allclose(ours.emission.counts, theirs.emission.counts, rtol=1e-9)
    np.testing.assert_allclose(ours.chain.pairs[:, 0].sum(axis=1), theirs.pairs.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(ours.chain.pairs[:, 1].sum(axis=1), theirs.pairs.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ours.visits, theirs.visits, rtol=1e-9)


def test_what_follows_from_the_model_is_that_of_the_product_matrix() -> None:
    low, dense = pair()
    x = data()[0]
    np.testing.assert_allclose(low.transition_, dense.transition_, rtol=1e-12)
    np.testing.assert_allclose(low.state_occupancy_, dense.state_occupancy_, rtol=1e-9)
    np.testing.assert_allclose(low.dwell_times_, dense.dwell_times_, rtol=1e-12)
    np.testing.assert_allclose(low.forecast(x, 3).states, dense.forecast(x, 3).states, rtol=1e-12)
    np.testing.assert_array_equal(low.sample_paths(x, 3, random_state=1), dense.sample_paths(x, 3, random_state=1))
    one, other = low.stream(lag=2), dense.stream(lag=2)
    for symbol in x:
        np.testing.assert_allclose(one.update(symbol), other.update(symbol), rtol=1e-12)
    np.testing.assert_allclose(one.smoothed, other.smoothed, rtol=1e-12)


def test_sequences_that_underflow_are_run_in_log_space() -> None:
    table = np.full((STATES, WORDS), 1e-250)
    table[np.arange(STATES), np.arange(STATES)] = 1.0
    table /= table.sum(axis=1, keepdims=True)
    low, dense = pair(table=table)
    x = [np.array([0, 1, 9, 10, 9, 2, 8, 3]), np.array([1, 2, 2])]
    np.testing.assert_allclose(low.score_sequences(x), dense.score_sequences(x), rtol=1e-12)
    ours, theirs = low.expected_statistics(x), dense.expected_statistics(x)
    np.testing.assert_allclose(ours.chain.pairs[:, 0].sum(axis=1), theirs.pairs.sum(axis=1), rtol=1e-9)
    for one, other in zip(low.predict_proba(x), dense.predict_proba(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_paths_of_many_states_are_those_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    (low, dense), x = pair(1), data(1, (8, 1, 20, 20))
    monkeypatch.setattr("subchain.engines.cpu.engine.MOST_DENSE", 2)
    monkeypatch.setattr("subchain.engines.cpu.factored_paths.BLOCK_BYTES", 8 * STATES * 3)
    monkeypatch.setattr("subchain.engines.cpu.factored_paths.MOST_LANES", 3)
    for one, other in zip(low.predict(x, "viterbi"), dense.predict(x, "viterbi"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_paths_that_need_too_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    low, _ = pair()
    monkeypatch.setattr("subchain.engines.cpu.engine.MOST_DENSE", 2)
    monkeypatch.setattr("subchain.engines.cpu.factored_paths.MOST_BYTES", 100)
    with pytest.raises(InputError, match="a sequence of 30 positions through 7 states needs"):
        low.predict(data(), "viterbi")


def test_operators_agree_with_their_matrix() -> None:
    rng = np.random.default_rng(0)
    moves = Factored(rng.random((5, 2, 3)))
    matrix, table, logs = moves.dense(), rng.random((5, 4)), -300.0 * rng.random(5)
    np.testing.assert_allclose(moves.apply(table), matrix.T @ table)
    np.testing.assert_allclose(moves.apply_transposed(table), matrix @ table)
    np.testing.assert_allclose(moves.log_apply(logs), np.log(np.exp(logs) @ matrix))
    np.testing.assert_allclose(moves.log_apply_transposed(logs), np.log(matrix @ np.exp(logs)))
    np.testing.assert_allclose(moves.diagonal(), np.diagonal(matrix))
    np.testing.assert_allclose(moves.totals(), matrix.sum(axis=1))
    assert np.isclose(moves.weight(1, 3), matrix[1, 3])
    stochastic = moves.stochastic(0.0)
    np.testing.assert_allclose(stochastic.dense(), matrix / matrix.sum(axis=1, keepdims=True))
    found = stationary_of(stochastic)
    np.testing.assert_allclose(found @ stochastic.dense(), found)
    np.testing.assert_allclose(moves.mapped(np.log).dense(), np.log(matrix))


def test_counts_are_those_of_all_paths_of_states_and_features() -> None:
    low, _ = pair(2, n_states=3)
    chain, x = low.point_.chain, np.array([3, 0, 5, 3])
    left, right = chain.operator.factors
    likelihood, expected, total = low.emission_.probabilities[:, x].T, np.zeros((3, 2, FEATURES)), 0.0
    for states in product(range(3), repeat=len(x)):
        for features in product(range(FEATURES), repeat=len(x) - 1):
            weight = chain.initial[states[0]] * np.prod(likelihood[np.arange(len(x)), states])
            for j, h, k in zip(states, features, states[1:], strict=False):
                weight *= left[j, h] * right[h, k]
            total += weight
            for j, h, k in zip(states, features, states[1:], strict=False):
                expected[j, 0, h] += weight
                expected[k, 1, h] += weight
    statistics = low.expected_statistics(x)
    np.testing.assert_allclose(statistics.chain.pairs, expected / total, rtol=1e-10)
    assert np.isclose(low.score(x), np.log(total), rtol=1e-12)
    statistics = pair(2, n_states=3)[0].expected_statistics([x, x])
    np.testing.assert_allclose(statistics.chain.pairs, 2.0 * expected / total, rtol=1e-10)


# ---- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", [EM(max_iter=25, tolerance=0.0), VI(max_iter=25, tolerance=0.0)])
@pytest.mark.parametrize("init", ["auto", "exponential", "posteriors"])
def test_the_objective_never_falls(inference: Any, init: str) -> None:
    x = pair()[0].sample(400, random_state=1).observations
    model = fit(inference, [x[:250], x[250:]], LowRank(FEATURES, 1.2, 1.1, initial_concentration=1.3), init=init)
    objective = np.array(model.trace_.objective)
    assert np.diff(objective).min() >= -1e-9 * abs(objective[-1])
    assert objective[-1] > objective[0]
    assert np.isclose(model.transition_.sum(axis=1), 1.0).all()


def test_the_bound_is_the_log_evidence_of_counts_at_its_best_with_known_states() -> None:
    """With one state and one feature nothing is hidden but the features, which are known too."""
    x = data()[3]
    model = fit(VI(max_iter=3, tolerance=0.0), x, LowRank(1), n_states=1)
    statistics, prior = model.statistics_, model.prior_
    evidence = prior.chain.log_evidence(statistics.chain) + prior.emission.log_evidence(statistics.emission)
    assert np.isclose(model.trace_.objective[-1], evidence, rtol=1e-12)


@pytest.mark.parametrize(
    "inference",
    [
        EM(max_iter=60), VI(max_iter=60), EM(batch=4, length=50, max_passes=40),
        SVI(batch=4, length=50, max_passes=40), SCVI(batch=4, length=50, max_passes=40),
    ],
    ids=["em", "vi", "online em", "svi", "scvi"],
)  # fmt: skip
def test_a_low_rank_chain_is_recovered_as_well_as_its_likelihood_shows(inference: Any) -> None:
    table = np.full((STATES, WORDS), 0.01)
    table[np.arange(STATES), np.arange(STATES)] = 1.0
    truth, _ = pair(1, table=table / table.sum(axis=1, keepdims=True), evenness=0.2)
    x, held_out = (truth.sample(4000, random_state=seed).observations for seed in (1, 2))
    model = fit(inference, x, n_init=2)
    unigram = float(np.log(np.bincount(x, minlength=WORDS) / len(x))[held_out].mean())
    best, found = truth.score(held_out) / len(held_out), model.score(held_out) / len(held_out)
    assert found > best - 0.1 * (best - unigram)
    assert type(model.point_.chain) is LowRankChain


def test_a_wide_chain_has_no_table_of_all_transitions() -> None:
    n_states, n_features, rng = 20_000, 64, np.random.default_rng(0)
    chain = LowRankDirichlet(
        LowRank(n_features).prior(n_states, flat=False).initial, rng.random((n_states, 2, 64))
    ).mean()
    emission = Categorical.from_parameters(rng.dirichlet(np.ones(50), n_states))
    point, part = HMMPoint(chain, emission), Part(Sequences(rng.integers(0, 50, 60), np.arange(0, 61, 20)))
    tracemalloc.start()
    statistics = Cpu(1).statistics(point.surrogate(), part)
    mode = LowRank(n_features).prior(n_states, flat=True).update(statistics.chain).mode()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isclose(statistics.visits.sum(), 60.0)
    assert mode.weights.shape == (n_states, 2, n_features)
    assert peak < 0.1 * 8 * n_states**2


@pytest.mark.parametrize("init", ["random", "exponential", "context", "stochastic", "states"])
def test_every_start_gives_features_that_differ(init: str) -> None:
    model = fit(EM(max_iter=1, tolerance=0.0), data(lengths=(300, 200)), init=init)
    left, right = model.point_.chain.operator.factors
    assert np.ptp(left, axis=0).max() > 1e-3
    assert np.ptp(right, axis=0).max() > 1e-3


def test_counts_of_a_matrix_keep_their_sums() -> None:
    pairs = np.random.default_rng(0).random((4, 4))
    found = FactoredSums.of_matrix(ChainSums(np.ones(4), pairs), 3)
    np.testing.assert_allclose(found.pairs[:, 0].sum(axis=1), pairs.sum(axis=1))
    np.testing.assert_allclose(found.pairs[:, 1].sum(axis=1), pairs.sum(axis=0))
    np.testing.assert_allclose(found.pairs[:, 0].sum(axis=0), found.pairs[:, 1].sum(axis=0))
    np.testing.assert_allclose(found.matrix().sum(axis=1), pairs.sum(axis=1))


def test_counts_of_a_matrix_are_not_taken_for_those_of_features() -> None:
    prior = LowRank(FEATURES).prior(4, flat=False)
    with pytest.raises(InputError, match="learned from the expected counts of both of their halves"):
        prior.update(ChainSums(np.ones(4), np.ones((4, 4))))
    with pytest.raises(InputError, match="cannot be merged"):
        FactoredSums(np.ones(4), np.ones((4, 2, 3))).fold(0, 1)


def test_groups_of_words_and_low_rank_transitions_go_together() -> None:
    x, groups = data(lengths=(200, 100)), np.arange(WORDS) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMM(9, BlockSparse(groups), LowRank(4), EM(max_iter=5, tolerance=0.0), random_state=0).fit(x)
    dense = HMM.from_parameters(model.initial_, model.transition_, model.emission_)
    assert np.isclose(model.score(x), dense.score(x), rtol=1e-10)


# ---- a fitted model --------------------------------------------------------------------------------------------------


def test_samples_follow_the_factors() -> None:
    low, _ = pair()
    states = low.sample(20_000, random_state=0).states
    counted = np.zeros((STATES, STATES))
    np.add.at(counted, (states[:-1], states[1:]), 1.0)
    counted /= counted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(counted, low.transition_, atol=0.06)


def test_models_come_back_from_files_and_can_be_ordered(tmp_path: Any) -> None:
    x = data(lengths=(200, 100))
    model = fit(VI(max_iter=5, tolerance=0.0), x)
    model.save(tmp_path / "model.safetensors")
    again, before = HMM.load(tmp_path / "model.safetensors"), model.transition_
    assert again.score(x) == model.score(x)
    assert again.transition.features == FEATURES
    order = np.argsort(-model.state_occupancy_, kind="stable")
    model.order_states()
    np.testing.assert_allclose(model.transition_, before[np.ix_(order, order)], rtol=1e-12)
    assert np.isclose(model.score(x), again.score(x), rtol=1e-12)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path: Any) -> None:
    x, path = data(lengths=(200, 100)), tmp_path / "run"
    fitted = fit(EM(max_iter=6, tolerance=0.0), x)
    fit(EM(max_iter=3, tolerance=0.0), x).save(path)
    onward = fit(EM(max_iter=3, tolerance=0.0), x, init=HMM.load(path))
    np.testing.assert_allclose(onward.transition_, fitted.transition_, rtol=1e-7)


def test_frozen_chains_stay() -> None:
    start = fit(EM(max_iter=3, tolerance=0.0), data())
    found = fit(EM(max_iter=3, tolerance=0.0), data(1), LowRank(FEATURES, frozen=True), init=start)
    np.testing.assert_array_equal(found.transition_, start.transition_)


# ---- what does not apply ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", [CVI(), Gibbs(), Beam(), VI(cluster="state")])
def test_algorithms_that_need_the_matrix_are_refused(inference: Any) -> None:
    with pytest.raises(InputError, match="needs a prior over whole transition matrices|does not"):
        fit(inference, data())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"features": 0}, "features must be a whole number"),
        ({"concentration": 0.5}, "below 1 the prior density is unbounded"),
        ({"concentration": 0}, r"^concentration must be positive and finite; got 0\.$"),
        ({"feature_concentration": -1.0}, "feature_concentration must be positive"),
        ({"initial": "stationary"}, "initial='learned' or"),
        ({"initial": [0.5, 0.5]}, "7 probabilities"),
        ({"frozen": [1]}, "frozen must be True or False"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], says: str) -> None:
    start = fit(EM(max_iter=1, tolerance=0.0), data())
    with pytest.raises(InputError, match=says):
        fit(EM(max_iter=1), data(), LowRank(**({"features": 3} | settings)), init=start)


def test_a_matrix_has_a_mask_to_forbid_transitions() -> None:
    with pytest.raises(InputError, match=r"got 0\. Use mask= to forbid transitions\.$"):
        Dirichlet(concentration=0).prior(2, flat=False)


def test_starts_and_parameters_of_another_form() -> None:
    low, dense = pair()
    with pytest.raises(InputError, match="low-rank transitions, but Dirichlet needs a transition matrix"):
        fit("em", data(), Dirichlet(), init=low)
    with pytest.raises(InputError, match="a transition matrix, but LowRank needs a start with factors"):
        fit("em", data(), init=dense)
    with pytest.raises(InputError, match="init has 3 features, but LowRank has features=2"):
        fit("em", data(), LowRank(2), init=low)
    factors = low.point_.chain.operator.factors
    with pytest.raises(InputError, match="row 1 of the left factor sums to"):
        LowRank.from_parameters(factors.left * np.array([1, 2, 1, 1, 1, 1, 1])[:, None], factors.right)
    with pytest.raises(InputError, match=r"row 0 of the left factor holds -0\.5 for feature 1; probabilities"):
        LowRank.from_parameters([[1.5, -0.5]], [[1.0], [1.0]])
    with pytest.raises(InputError, match=r"row 0 of the right factor holds -0\.5 for state 1; probabilities"):
        LowRank.from_parameters([[1.0], [1.0]], [[1.5, -0.5]])
    with pytest.raises(InputError, match=r"expected \(K, f\) and \(f, K\)"):
        LowRank.from_parameters(factors.left, factors.right.T)
    moves = LowRank.from_parameters(*factors)
    with pytest.raises(InputError, match="final= needs a transition matrix"):
        HMM.from_parameters(low.initial_, moves, low.emission_, final=[0])
    with pytest.raises(InputError, match="the factors have 7 states"):
        HMM.from_parameters([1.0], moves, low.emission_)


def test_questions_that_need_the_matrix_say_so_for_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    low, _ = pair()
    monkeypatch.setattr("subchain.transitions.sums.MOST_DENSE", 4)
    with pytest.raises(InputError, match="a path that is drawn given observations needs the whole transition matrix"):
        low.sample_paths(data()[0], 2)
