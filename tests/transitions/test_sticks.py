"""Two levels of sticks: shares of moves, steps that never lower the objective, and the one that may."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from subchain import HDP, HMM, SVI, VI, Categorical
from subchain.datasets import four_state
from subchain.engines import CpuEngine, Part
from subchain.errors import ConvergenceWarning
from subchain.structures.chain.model import HMMPosterior
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.stick_kernels import share_transitions, update_pointers, weigh_transitions
from subchain.transitions.hdp.sticks import MOST_BYTES, SticksChain

K = 5


def counted(seed: int, scale: float = 30.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sparse = rng.random((1 + K, K)) < 0.6
    counts = rng.exponential(scale, (1 + K, K)) * sparse
    return counts[0], counts[1:]


def learned(seed: int, *, steps: int = 2, **hierarchy: Any) -> tuple[SticksChain, np.ndarray]:
    """Sticks after a few renewals under changing counts, and the last counts."""
    chain: Any = HDP(construction="sticks", **hierarchy).prior(K, flat=False)
    for step in range(steps):
        initial, pairs = counted(seed + step)
        chain = chain.update_hyperparameters(ChainSums(initial, pairs))
    return chain, np.vstack(counted(seed + steps - 1))


def worth(chain: SticksChain, counts: np.ndarray) -> float:
    """What the objective has of the chain: a lower bound of its change, exact where the counts are those of `chain`."""
    surrogate = chain.expected_log()
    weights = np.vstack([surrogate.initial, surrogate.transition])
    return float((counts * np.log(weights)).sum() - chain.kl(None))


def test_weights_are_what_sticks_give_and_what_is_left() -> None:
    chain, _ = learned(0)
    surrogate = chain.expected_log()
    for row in range(1 + K):
        left, expected = 0.0, np.zeros(K)
        for stick in range(chain.used[row]):
            a, b = chain.a[row, stick], chain.b[row, stick]
            expected += chain.points[row, stick] * np.exp(digamma(a) - digamma(a + b) + left)
            left += digamma(b) - digamma(a + b)
        expected += np.exp(left + chain._log_top)
        found = surrogate.initial if row == 0 else surrogate.transition[row - 1]
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("stickiness", [0.0, 4.0])
def test_every_move_is_shared_out_among_sticks_and_rest(stickiness: float) -> None:
    chain, counts = learned(1, stickiness=stickiness)
    shares, rest, stays = chain._shared(counts)
    found = shares.sum(axis=1) + rest.sum(axis=1) + np.append(0.0, stays)
    assert found == pytest.approx(counts.sum(axis=1), rel=1e-12)
    posterior = chain.update(ChainSums(counts[0], counts[1:]))
    assert posterior.a[chain._active] == pytest.approx(1.0 + shares[chain._active])


@settings(max_examples=60, deadline=None)
@example(1770, 1.0, 7.0, 0.0)  # where sticks in the order of their use would be less probable
@given(st.integers(0, 10_000), st.floats(0.2, 10.0), st.floats(0.2, 10.0), st.sampled_from([0.0, 0.5, 40.0]))
def test_breaks_and_top_level_never_lower_the_objective(
    seed: int, concentration: float, top: float, stickiness: float
) -> None:
    chain, _ = learned(seed, concentration=concentration, top_concentration=top, stickiness=stickiness)
    counts = np.vstack(counted(seed + 77))
    for step in (
        lambda chain: chain.update(ChainSums(counts[0], counts[1:])),
        lambda chain: chain.ordered(counts),
        lambda chain: chain.topped(counts),
    ):
        before, chain = worth(chain, counts), step(chain)
        assert worth(chain, counts) >= before - 1e-6 * abs(before) * (chain.used.max() < 2) - 1e-7


@pytest.mark.parametrize("stickiness", [0.0, 0.5, 40.0])
def test_the_concentration_that_is_learned_is_the_best_one(stickiness: float) -> None:
    chain, counts = learned(3, concentration=2.0, stickiness=stickiness)

    def with_concentration(value: float) -> SticksChain:
        return dataclasses.replace(chain, hierarchy=dataclasses.replace(chain.hierarchy, concentration=value))

    value = 2.0
    for _ in range(200):
        value = with_concentration(value)._best_concentration()
    best, less, more = (worth(with_concentration(factor * value), counts) for factor in (1.0, 0.98, 1.02))
    assert best > less
    assert best > more


@pytest.mark.parametrize(("concentration", "stickiness"), [(1e-3, 0.0), (None, 20.0), (None, 1e4)])
def test_rows_that_leave_next_to_nothing_stay_finite(concentration: float | None, stickiness: float) -> None:
    x = four_state("positive", n_sequences=10, random_state=0).observations
    prior = HDP(concentration, construction="sticks", stickiness=stickiness)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HMM(6, Categorical(1.0), prior, VI(max_iter=30), random_state=0).fit(x)
    assert np.isfinite(model.score(x))


def test_a_stick_points_where_counted_moves_gain_most() -> None:
    chain, counts = learned(3)
    found, expected = chain.pointed(counts), chain.points.copy()
    sizes, rest, log_top = np.exp(chain._sizes.size), chain._rest, chain._log_top
    for row in range(1 + K):
        for stick in range(chain.used[row]):
            others = rest[row] + sum(expected[row, m] * sizes[row, m] for m in range(chain.used[row]) if m != stick)
            gains = counts[row] * np.log1p(sizes[row, stick] / others)
            gains[gains <= 0.01] = 0.0
            logs = log_top + gains
            expected[row, stick] = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    active = chain._active
    assert found.points[active] == pytest.approx(expected[active], abs=1e-12)
    entropy = np.where(expected > 0.0, expected * np.log(np.maximum(expected, 1e-300)), 0.0).sum(axis=2)
    assert found.negentropy[active] == pytest.approx(entropy[active], abs=1e-9)


class TestInARun:
    """A tiny model, every step of an iteration followed by a pass."""

    @pytest.mark.filterwarnings("ignore:all n_states")
    def test_only_pointing_anew_may_lower_the_objective(self) -> None:
        data = four_state("positive", n_sequences=8, length=40, random_state=0).observations
        model = HMM(K, Categorical(1.0), HDP(construction="sticks", merges=False, splits=False), VI(max_iter=2),
                    init="exponential", random_state=1)  # fmt: skip
        with pytest.warns(ConvergenceWarning, match="before it settled"):
            model.fit(data)
        engine, falls = CpuEngine(1), {"breaks": 0, "top": 0, "emissions": 0}
        prior, statistics = model.prior_, model.statistics_

        def measured(posterior: HMMPosterior) -> tuple[float, Any]:
            found = engine.statistics(posterior.expected_log().surrogate(), Part(data))
            return found.log_normalizer - posterior.kl(prior), found

        chain, emission = (
            prior.chain.update(ChainSums(statistics.initial, statistics.pairs)),
            prior.emission.update(statistics.emission),
        )
        before, seen = measured(HMMPosterior(chain, emission))
        for _ in range(12):
            for name in ("emissions", "breaks", "top", "points"):
                counts = np.vstack([seen.initial, seen.pairs])
                if name == "emissions":
                    emission = prior.emission.update(seen.emission)
                elif name == "breaks":
                    chain = chain.ordered(counts)
                elif name == "top":
                    chain = chain.topped(counts)
                else:
                    chain = chain.pointed(counts)
                after, seen = measured(HMMPosterior(chain, emission))
                if name != "points":
                    falls[name] += after < before - 1e-7
                before = after
        assert falls == {"breaks": 0, "top": 0, "emissions": 0}

    def test_falls_are_told(self) -> None:
        data = four_state("positive", n_sequences=20, length=50, random_state=2).observations
        model = HMM(8, Categorical(1.0), HDP(construction="sticks", merges=False, splits=False),
                    VI(max_iter=40, tolerance=0.0), init="exponential", random_state=2).fit(data)  # fmt: skip
        steps = np.diff(model.trace_.objective)
        told = [event.message for event in model.trace_.events if "fell by" in event.message]
        assert len(told) == np.count_nonzero(steps < -1e-9 * np.abs(model.trace_.objective[1:]))


def test_sticks_are_found_by_updates_too() -> None:
    data = four_state("negative", random_state=0).observations
    inference = SVI(length=None, batch=20, max_updates=1200, delay=10.0)
    model = HMM(10, Categorical(1.0), HDP(construction="sticks"), inference, init="exponential", random_state=0)
    assert model.fit(data).effective_states() == 4


def test_states_can_be_put_in_another_order() -> None:
    chain, _ = learned(5)
    order = np.array([3, 0, 4, 1, 2])
    moved, before, after = chain.take(order), chain.mean(), chain.take(order).mean()
    assert after.initial == pytest.approx(before.initial[order])
    assert after.transition == pytest.approx(before.transition[np.ix_(order, order)])
    assert moved.kl(None) == pytest.approx(chain.kl(None))


def test_staying_for_its_own_sake_takes_no_sticks() -> None:
    """A row is a process whose base has the stickiness for an atom: its mean without data is that of its base."""
    chain, _ = learned(5, concentration=2.0, stickiness=6.0)
    nothing: Any = chain.update(ChainSums(np.zeros(K), np.zeros((K, K))))
    assert nothing.stay / (nothing.stay + nothing.go) == pytest.approx(0.75)
    assert (np.diagonal(nothing.mean().transition) >= 0.75).all()


@pytest.mark.parametrize("stickiness", [5.0, 50.0])
def test_four_states_that_last_are_found_to_be_four(stickiness: float) -> None:
    x = four_state("positive", random_state=0).observations
    prior = HDP(1.0, 1.0, "sticks", stickiness=stickiness)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HMM(10, Categorical(1.0), prior, VI(max_iter=60), random_state=0, n_jobs=1).fit(x)
    assert model.effective_states() == 4
    assert model.score(x) / x.n_observations > -1.17


def test_draws_are_distributions_whose_mean_is_the_mean() -> None:
    chain, _ = learned(6)
    rng = np.random.default_rng(0)
    draws = np.array([chain.sample(rng).transition for _ in range(2000)])
    assert draws.sum(axis=2) == pytest.approx(1.0)
    assert draws.mean(axis=0) == pytest.approx(chain.mean().transition, abs=0.05)


def test_five_hundred_states_fit_into_memory() -> None:
    rng = np.random.default_rng(0)
    chain: Any = HDP(construction="sticks").prior(500, flat=False)
    begun = chain.begin(ChainSums(rng.exponential(3.0, 500), rng.exponential(3.0, (500, 500))))
    assert begun.points.nbytes <= MOST_BYTES
    renewed = begun.update_hyperparameters(ChainSums(rng.exponential(3.0, 500), rng.exponential(3.0, (500, 500))))
    assert renewed.points.nbytes <= MOST_BYTES
    assert renewed.mean().transition.sum(axis=1) == pytest.approx(1.0)


def packed(arrays: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Copies that lie close together in one piece of memory, in a random order and with small gaps."""
    room, at = np.zeros(sum(array.nbytes for array in arrays) + 32 * len(arrays), np.uint8), 0
    found: list[Any] = [None] * len(arrays)
    for number in rng.permutation(len(arrays)):
        array = arrays[number]
        found[number] = room[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        found[number][...] = array
        at += array.nbytes + 8 * int(rng.integers(4))
    return found


@pytest.mark.parametrize("n_states", [5, 8])
def test_sticks_do_not_depend_on_where_arrays_lie_in_memory(n_states: int) -> None:
    rng, rows, most = np.random.default_rng(0), n_states + 1, 7
    counts, sizes = rng.exponential(5.0, (rows, n_states)), rng.dirichlet(np.ones(most), rows)
    used, rest = rng.integers(1, most + 1, rows), 0.01 * rng.random((rows, n_states))
    base, points = np.log(rng.dirichlet(np.ones(n_states))), rng.dirichlet(np.ones(n_states), (rows, most))
    given = [counts, sizes, used, rest, base, points, np.zeros((rows, most)), np.zeros((rows, n_states))]
    results = []
    for _ in range(60):
        *arguments, weights = packed(given, rng)
        update_pointers(*arguments)
        weigh_transitions(arguments[5], arguments[1], arguments[2], arguments[3], weights)
        shares = np.zeros((rows, most))
        share_transitions(arguments[0], weights, arguments[5], arguments[1], arguments[2], shares)
        results.append([array.copy() for array in (*arguments[5:], weights, shares)])
    for one in results[1:]:
        for found, expected in zip(one, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)
