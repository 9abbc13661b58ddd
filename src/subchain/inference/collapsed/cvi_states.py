"""Visits of single states: mean field in collapsed space, with the thesis's way of counting moves (algorithm 1).

The moves into and out of a state depend on two neighbours, of which only marginals are known. The expected count of
moves from an uncertain neighbour is the average over its states of the counts without the three moves around it, plus
the one move that is known to share the neighbour's state (3.37, 3.39).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.base import Likelihood
from subchain.emissions.categorical import DirichletTable
from subchain.errors import InputError
from subchain.inference.collapsed.clusters import has_plain_codes
from subchain.inference.collapsed.cvi_dense_states import visit_dense_state_words
from subchain.inference.collapsed.ledger import Ledger
from subchain.inference.run.chains import ChainProblem
from subchain.propagation.compiled import kernel, part
from subchain.transitions.base import ChainSums
from subchain.transitions.incremental import IncrementalDirichlet

if TYPE_CHECKING:
    from subchain.inference.cvi import CVI

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Positions between two checks for an interruption.
AT_ONCE = 20_000
#: The least weight of a legal state.
LEAST = 1e-300


@part
def entries_of(position, offsets, n_states):
    """Where the marginals of a position begin and end."""
    if offsets.shape[0]:
        return offsets[position], offsets[position + 1]
    return position * n_states, (position + 1) * n_states


@part
def state_of(entry, states, n_states):
    """The state that an entry belongs to."""
    return np.int64(states[entry]) if states.shape[0] else entry % n_states


@part
def _spell_out(position, there, offsets, states, marginals, out):
    """Marginals of a position, if there is such a position, into a vector of all states, which was zero."""
    if there:
        low, high = entries_of(position, offsets, out.shape[0])
        for entry in range(low, high):
            out[state_of(entry, states, out.shape[0])] = marginals[entry]


@part
def _wipe(position, there, offsets, states, out):
    """Undo `_spell_out`."""
    if there:
        low, high = entries_of(position, offsets, out.shape[0])
        for entry in range(low, high):
            out[state_of(entry, states, out.shape[0])] = 0.0


@part
def _inner(low, high, states, marginals, other):
    """Inner product of a position's marginals, from entry `low` to `high`, with a vector of all states."""
    total = 0.0
    for entry in range(low, high):
        total += marginals[entry] * other[state_of(entry, states, other.shape[0])]
    return total


@kernel
def update_state(
    position, begins, ends, likelihood, prior_rows, prior_sums, pairs, rows, prior_first, firsts, learns, offsets,
    states, marginals, new_marginals, excludes, puts_back, near, log_total,
):  # fmt: skip
    """Give one position a new marginal; return its entropy.

    Parameters
    ----------
    begins, ends : first position of the sequence, and the one behind its last
    likelihood : (K,) predictive weight of the observation in each state, without the position's own share
    prior_rows, prior_sums, pairs, rows : (K, K), (K,), (K, K), (K,) prior and counts of moves, and their row sums
    prior_first, firsts, learns : (K,), (K,) and whether first states are counted
    offsets, states, marginals, new_marginals : as in `Shares`; the new marginal is written into the last
    near : (7, K) room; zeros, and left so but for the last two rows
    log_total : (1,) the log normaliser is added
    """
    n_states = pairs.shape[0]
    far_before, before, own, after, far_after, into, out_of = near
    _spell_out(position - 2, position - 2 >= begins, offsets, states, marginals, far_before)
    _spell_out(position - 1, position - 1 >= begins, offsets, states, marginals, before)
    _spell_out(position, True, offsets, states, marginals, own)
    _spell_out(position + 1, position + 1 < ends, offsets, states, marginals, after)
    _spell_out(position + 2, position + 2 < ends, offsets, states, marginals, far_after)
    low, high = entries_of(position, offsets, n_states)
    share = 1.0 if excludes else 0.0
    is_first, is_last = position == begins, position + 1 == ends
    # moves into the position
    for entry in range(low, high):
        into[state_of(entry, states, n_states)] = 0.0
    if is_first:
        for entry in range(low, high):
            k = state_of(entry, states, n_states)
            into[k] = prior_first[k] + (max(firsts[k] - share * own[k], 0.0) if learns else 0.0)
    else:
        before_low, before_high = entries_of(position - 1, offsets, n_states)
        for neighbour in range(before_low, before_high):
            j = state_of(neighbour, states, n_states)
            weight = before[j]
            if weight > 0.0:
                for entry in range(low, high):
                    k = state_of(entry, states, n_states)
                    into[k] += weight * (pairs[j, k] + prior_rows[j, k])
        if excludes:
            leads_in = _inner(before_low, before_high, states, marginals, far_before)
            leads_here = _inner(before_low, before_high, states, marginals, before)
            leads_on = _inner(before_low, before_high, states, marginals, own)
            for entry in range(low, high):
                k = state_of(entry, states, n_states)
                into[k] -= before[k] * leads_in + own[k] * leads_here + after[k] * leads_on
                into[k] += far_before[k] * before[k]
    # moves out of it
    for entry in range(low, high):
        out_of[state_of(entry, states, n_states)] = 1.0
    if not is_last:
        after_low, after_high = entries_of(position + 1, offsets, n_states)
        leads_here = _inner(after_low, after_high, states, marginals, own)
        leads_on = _inner(after_low, after_high, states, marginals, after)
        leads_away = _inner(after_low, after_high, states, marginals, far_after)
        for entry in range(low, high):
            k = state_of(entry, states, n_states)
            summed = 0.0
            for neighbour in range(after_low, after_high):
                following = state_of(neighbour, states, n_states)
                summed += after[following] * (pairs[k, following] + prior_rows[k, following])
            total = rows[k] + prior_sums[k]
            if excludes:
                summed -= before[k] * leads_here + own[k] * leads_on + after[k] * leads_away
                summed += after[k] * far_after[k] + before[k] * after[k]
                total -= own[k]
            out_of[k] = max(summed, LEAST) / max(total, LEAST)
    norm = 0.0
    for entry in range(low, high):
        k = state_of(entry, states, n_states)
        into[k] = max(into[k], LEAST) * out_of[k] * likelihood[k]
        norm += into[k]
    log_total[0] += np.log(norm)
    # the new marginal takes the place of the old one
    entropy = 0.0
    for entry in range(low, high):
        k = state_of(entry, states, n_states)
        marginal = into[k] / norm
        new_marginals[entry] = marginal
        change = marginal - own[k]
        if marginal > 0.0:
            entropy -= marginal * np.log(marginal)
        if not puts_back:
            continue
        if is_first:
            firsts[k] += change
        else:
            for neighbour in range(before_low, before_high):
                j = state_of(neighbour, states, n_states)
                pairs[j, k] += before[j] * change
        if not is_last:
            rows[k] += change
            for neighbour in range(after_low, after_high):
                following = state_of(neighbour, states, n_states)
                pairs[k, following] += change * after[following]
    _wipe(position - 2, position - 2 >= begins, offsets, states, far_before)
    _wipe(position - 1, not is_first, offsets, states, before)
    _wipe(position, True, offsets, states, own)
    _wipe(position + 1, not is_last, offsets, states, after)
    _wipe(position + 2, position + 2 < ends, offsets, states, far_after)
    return entropy


@kernel
def visit_state_words(
    order, begins, ends, values, prior_rows, pairs, rows, prior_first, firsts, learns, concentration, counts,
    prior_totals, totals, offsets, states, factors, marginals, new_marginals, excludes, puts_back, since,
):  # fmt: skip
    """Visit the positions `order` of sequences that lie between `begins` and `ends`; words are looked up here."""
    n_states = pairs.shape[0]
    near, likelihood, old = np.zeros((7, n_states)), np.empty(n_states), np.empty(n_states)
    prior_sums = prior_rows.sum(axis=1)
    same, share = concentration.shape[0] == 1, 1.0 if excludes else 0.0
    log_total = np.zeros(1)
    for i in range(order.shape[0]):
        position = order[i]
        symbol = values[position]
        low, high = entries_of(position, offsets, n_states)
        for entry in range(low, high):
            k = state_of(entry, states, n_states)
            old[k] = marginals[entry]
            likelihood[k] = 1.0
            if symbol >= 0:
                prior = concentration[0 if same else symbol, k]
                total = max(totals[k] - share * old[k], 0.0) + prior_totals[k]
                likelihood[k] = (max(counts[symbol, k] - share * old[k], 0.0) + prior) / total
            if factors.shape[0]:
                likelihood[k] *= factors[entry]
        since[1] += update_state(
            position, begins[i], ends[i], likelihood, prior_rows, prior_sums, pairs, rows, prior_first, firsts, learns,
            offsets, states, marginals, new_marginals, excludes, puts_back, near, log_total,
        )  # fmt: skip
        if symbol >= 0 and puts_back:
            for entry in range(low, high):
                k = state_of(entry, states, n_states)
                change = new_marginals[entry] - old[k]
                counts[symbol, k] += change
                totals[k] += change
    since[0] += log_total[0]


class StateVisitor:
    """Visits single positions."""

    def __init__(self, problem: ChainProblem, algorithm: CVI, ledger: Ledger) -> None:
        self.problem = problem
        self.ledger = ledger
        self.is_compiled = isinstance(problem.prior.emission, DirichletTable) and has_plain_codes(problem)
        self.at_once = AT_ONCE if self.is_compiled else 100
        chain: Any = problem.prior.chain.incremental(
            ChainSums(np.zeros(ledger.n_states), np.zeros((ledger.n_states,) * 2))
        )
        if type(chain) is not IncrementalDirichlet or chain.rows[1].any() or not (chain.rows[0] > 0.0).all():
            raise InputError(
                "CVI(cluster='state') needs Dirichlet rows without masked, fixed or frozen moves; use "
                "cluster='sequence' or cluster='subchain'."
            )
        if problem.structure.weights is not None:
            raise InputError("CVI(cluster='state') takes no sample_weight; use cluster='sequence'.")
        if algorithm.neighbour_weighting == "probabilities":
            raise InputError(
                "CVI(cluster='state'): neighbour_weighting='probabilities' goes with corrections=False; the "
                "corrections are those of neighbour_weighting='counts'."
            )

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        ledger, layout = self.ledger, self.ledger.clusters
        data, chain = ledger.data, ledger.chain
        positions, sequences = layout.starts[clusters], layout.sequences[clusters]
        begins, ends = data.offsets[sequences], data.offsets[sequences + 1]
        rows = chain.pairs.sum(axis=1)
        firsts = chain.first[0] if chain.learns_first else chain.surrogate("predictive").initial
        common = (chain.rows[0], chain.pairs, rows, firsts, chain.initial, chain.learns_first)
        shares = ledger.shares
        if self.is_compiled:
            table = ledger.emission
            if not shares.is_compressed:
                visit_dense_state_words(
                    positions, begins, ends, data.values, *common, table.concentration, table.counts,
                    table.prior_totals, table.totals, shares.rows, shares.new.rows, excludes, puts_back, ledger.since,
                )  # fmt: skip
                return
            visit_state_words(
                positions, begins, ends, data.values, *common, table.concentration, table.counts, table.prior_totals,
                table.totals, shares.offsets, shares.states, shares.factors, shares.marginals, shares.new.marginals,
                excludes, puts_back, ledger.since,
            )  # fmt: skip
            return
        near, log_total = np.zeros((7, ledger.n_states)), np.zeros(1)
        prior_sums = chain.rows[0].sum(axis=1)
        for i, cluster in enumerate(clusters.tolist()):
            position, batch = int(positions[i]), layout.batch(clusters[i : i + 1])
            own = ledger.emission_share(cluster, batch)
            if excludes:
                ledger.emission.blend(1.0, -1.0, own)
            surrogate = ledger.emission.surrogate("predictive")
            ledger.since[1] += update_state(
                position, begins[i], ends[i], self._likelihood(surrogate, position), chain.rows[0], prior_sums,
                *common[1:], shares.offsets, shares.states, shares.marginals, shares.new.marginals, excludes, puts_back,
                near, log_total,
            )  # fmt: skip
            new = self._sums(surrogate, position)
            ledger.keep_emission_share(cluster, new)
            if puts_back != excludes:
                ledger.emission.blend(1.0, -1.0 if puts_back else 1.0, own)
            if puts_back:
                ledger.emission.blend(1.0, 1.0, new)
        ledger.since[0] += log_total[0]

    def _value(self, position: int) -> NDArray[Any]:
        return np.asarray(self.ledger.data.values[position : position + 1])

    def _sums(self, surrogate: Likelihood, position: int) -> Any:
        """The sums of a position's new marginal, as the surrogate sees them."""
        sums = surrogate.zeros()
        surrogate.accumulate(self._value(position), self.ledger.shares.new.read(np.array([position])), sums)
        return sums

    def _likelihood(self, surrogate: Likelihood, position: int) -> Array:
        """Predictive weights of an observation, times what evidence says."""
        logs = surrogate.log_likelihood(self._value(position))[:, 0]
        if self.ledger.evidence is not None:
            logs = logs + self.ledger.evidence.log_weights(np.array([position]), self._value(position))[:, 0]
        return np.asarray(np.exp(logs - logs.max()))
