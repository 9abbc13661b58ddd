"""What merges promise, against collapsed log joints by brute force; statistics that are folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import FAMILIES, example

from subchain import HDP, Gaussian
from subchain.data import as_sequences
from subchain.engines.statistics import HMMStatistics
from subchain.inference.search.merging import USED, Merge, merges
from subchain.structures.chain.model import HMMPosterior
from subchain.transitions.base import ChainSums
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.initial import LearnedInitial

STATES = 5
CONJUGATE = [family for family in FAMILIES if family != "exponential"]


def given(family: str, n_states: int = STATES, **hierarchy: Any) -> tuple[HMMPosterior, HMMStatistics, Any]:
    """A prior, statistics of data whose states were drawn, and the data of each state."""
    specification, data = example(family, "one sequence")
    data = specification.prepare(data)
    states = np.random.default_rng(0).integers(0, n_states, data.n_observations)
    emission = specification.prior(data, n_states, flat=False)
    chain = HDP(**hierarchy, construction="direct").prior(n_states, flat=False)
    found = HMMStatistics.zeros(n_states, emission.mean().zeros())
    marginals = np.eye(n_states)[:, states]
    emission.mean().accumulate(data.values, np.ascontiguousarray(marginals), found.emission)
    found.initial[states[0]] += 1.0
    np.add.at(found.pairs, (states[:-1], states[1:]), 1.0)
    chain = chain.update_hyperparameters(ChainSums(found.initial, found.pairs))
    return HMMPosterior(chain, emission), found, [data.values[states == k] for k in range(n_states)]


def by_chain_rule(prior: Any, values: Any, state: int) -> float:
    """Log probability of one state's observations, one after the other, each given those before."""
    sums, total = prior.mean().zeros(), 0.0
    marginals = np.zeros((prior.mean().n_states, 1))
    marginals[state] = 1.0
    for value in values:
        predictive = prior.update(sums).predictive()
        total += float(predictive.log_likelihood(value[None])[state, 0])
        more = prior.mean().zeros()
        prior.mean().accumulate(value[None], marginals, more)
        sums = sums + more
    return total


@pytest.mark.parametrize("family", CONJUGATE)
def test_log_partitions_tell_how_probable_observations_are(family: str) -> None:
    prior, statistics, values = given(family, n_states=3)
    emission = prior.emission
    apart = emission.update(statistics.emission).log_partition() - emission.log_partition()
    both = emission.update(statistics.emission.fold(0, 1)).log_partition()[0] - emission.log_partition()[0]
    together = np.concatenate([values[0], values[1]])
    expected = by_chain_rule(emission, together, 0) - by_chain_rule(emission, values[0], 0)
    expected -= by_chain_rule(emission, values[1], 1)
    assert both - apart[0] - apart[1] == pytest.approx(expected, rel=1e-8)


def joined(table: Any, merge: Merge) -> Any:
    """Columns of states that become one, added up."""
    table = table.copy()
    table[..., merge.into] += table[..., merge.gone].sum(axis=-1)
    return np.delete(table, merge.gone, axis=-1)


def moves_worth(chain: Any, statistics: HMMStatistics, merge: Merge) -> float:
    """Log evidence of first states and moves of a chain in which all are one, less that of the chain as it is."""
    rows = np.delete(joined(chain.rows.concentration, merge), merge.gone, axis=0)
    smaller = DirichletChain(
        LearnedInitial(joined(chain.initial.concentration, merge)), DirichletRows(rows, np.zeros_like(rows))
    )
    folded = merge.fold(statistics)
    pairs = np.delete(np.delete(folded.pairs, merge.gone, axis=0), merge.gone, axis=1)
    same = DirichletChain(chain.initial, chain.rows)
    return smaller.log_evidence(ChainSums(np.delete(folded.initial, merge.gone), pairs)) - same.log_evidence(
        ChainSums(statistics.initial, statistics.pairs)
    )


def emissions_worth(prior: Any, statistics: HMMStatistics, merge: Merge) -> float:
    def worth(sums: Any) -> Any:
        return (prior.update(sums).log_partition() - prior.log_partition())[[merge.into, *merge.gone]].sum()

    return float(worth(merge.fold(statistics).emission) - worth(statistics.emission))


@pytest.mark.parametrize("stickiness", [0.0, 2.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_merge_promises_is_the_difference_of_collapsed_log_joints(family: str, stickiness: float) -> None:
    prior, statistics, _ = given(family, concentration=2.0, stickiness=stickiness)
    # states 0, 1 and 2 do the same, and so do 3 and 4
    alike = statistics.take(np.array([0, 0, 0, 3, 3]))
    found = merges(prior, alike, 10)
    assert {len(merge.gone) for merge in found} >= {1, 2}
    assert [merge.gain for merge in found] == sorted((merge.gain for merge in found), reverse=True)
    for merge in found:
        expected = moves_worth(prior.chain, alike, merge) + emissions_worth(prior.emission, alike, merge)
        assert merge.gain == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_many_states_are_looked_at_in_close_pairs(family: str) -> None:
    prior, statistics, _ = given(family, n_states=16)
    doubled = statistics.take(np.append(np.arange(15), 0))
    found = merges(prior, doubled, 100)
    pairs = {tuple(sorted((merge.into, *merge.gone))) for merge in found if len(merge.gone) == 1}
    assert (0, 15) in pairs
    assert len(pairs) <= 5 * 16


def test_the_smaller_state_is_taken_into_the_larger_one() -> None:
    prior, statistics, _ = given("categorical")
    alike = statistics.take(np.array([0, 0, 2, 3, 4]))
    alike.initial[1] += 5.0
    (merge,) = [one for one in merges(prior, alike, 20) if {one.into, *one.gone} == {0, 1}]
    assert (merge.into, merge.gone) == (1, (0,))
    assert str(merge) == "state 0 was taken into state 1"


def test_states_that_are_not_used_are_not_merged() -> None:
    prior, statistics, _ = given("categorical")
    statistics = statistics.fold(0, 1).fold(2, 3)
    assert {gone for merge in merges(prior, statistics, 20) for gone in merge.gone} <= {0, 2, 4}
    assert merges(prior, HMMStatistics.zeros(STATES, prior.emission.mean().zeros()), 20) == []
    assert USED < 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_folding_keeps_totals_and_leaves_nothing_behind(family: str) -> None:
    _, statistics, _ = given(family)
    folded = statistics.fold(3, 1)
    assert folded.pairs.sum() == pytest.approx(statistics.pairs.sum())
    assert folded.pairs[3, 3] == pytest.approx(statistics.pairs[np.ix_([1, 3], [1, 3])].sum())
    assert folded.initial[3] == statistics.initial[1] + statistics.initial[3]
    assert not folded.pairs[1].any()
    assert not folded.pairs[:, 1].any()
    emitted, before = folded.emission.take(np.array([1, 3])), statistics.emission
    expected = before.take(np.array([1])) + before.take(np.array([3]))
    for name, array in emitted.arrays().items():
        wanted = expected.arrays()[name]
        if array.shape != wanted.shape:
            axis = next(axis for axis in range(array.ndim) if array.shape[axis] != wanted.shape[axis])
            assert np.take(array, [1], axis=axis) == pytest.approx(wanted)
            assert not np.take(array, [0], axis=axis).any()
    assert statistics.pairs[1].any(), "folding changes nothing in place"


def test_corners_of_one_regime_promise_most_as_a_group() -> None:
    rng = np.random.default_rng(0)
    regimes = np.repeat(rng.permutation(np.arange(400) % 2), 50)
    values = rng.normal(10.0 * regimes, 1.0)
    corners = np.digitize(values, [-0.7, 0.0, 0.7, 5.0])  # four states for the first regime, one for the second
    data = as_sequences(values)
    emission = Gaussian().prior(data, STATES, flat=False)
    statistics = HMMStatistics.zeros(STATES, emission.mean().zeros())
    emission.mean().accumulate(data.values, np.ascontiguousarray(np.eye(STATES)[:, corners]), statistics.emission)
    np.add.at(statistics.pairs, (corners[:-1], corners[1:]), 1.0)
    chain = (
        HDP(construction="direct")
        .prior(STATES, flat=False)
        .update_hyperparameters(ChainSums(statistics.initial, statistics.pairs))
    )
    best = merges(HMMPosterior(chain, emission), statistics, 3)[0]
    assert sorted((best.into, *best.gone)) == [0, 1, 2, 3]
    assert str(best).endswith(f"were taken into state {best.into}")
