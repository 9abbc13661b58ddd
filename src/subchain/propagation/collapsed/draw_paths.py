"""Whole paths drawn with the parameters summed out: propose by filtering, accept by Metropolis and Hastings.

A sequence is taken out of the counts, and the rest makes a plain hidden Markov model, the predictive one. A path drawn
from it by forward filtering and backward sampling is nearly a draw from the sequence's distribution given the others
(Johnson, Griffiths and Goldwater 2007 do so for trees): nearly, since inside a path every move makes the next one of
its kind more probable, which the plain model leaves out. So the new path takes the place of the old one with
probability

    min(1,  p(new) q(old) / (p(old) q(new)))

where p multiplies predictive probabilities that change along the path, and q those that do not. This makes it exact.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.random import stream, uniform
from subchain.propagation.collapsed.rows import predictive, put_in_path, scaled_log, take_out_path
from subchain.propagation.compiled import ordered_kernel as kernel
from subchain.propagation.compiled import ordered_part as part

Array = NDArray[np.float64]


class Symbols(NamedTuple):
    """Counts of symbols by state, and their priors.

    Attributes
    ----------
    counts : (W, K)
    totals : (K,) sums of the counts
    concentration : (W, K), or (1, K) if it is the same for all symbols; probabilities if the table is fixed
    prior_totals : (K,) sums of the concentration over all symbols, ones if the table is fixed
    gain : (1,) how much a symbol counts: 1 if the table is learned, 0 if it is fixed
    """

    counts: Array
    totals: Array
    concentration: Array
    prior_totals: Array
    gain: Array


# ---- one plain model, one sequence -----------------------------------------------------------------------------------


@part
def _raise_rows(table, n_rows, power):
    """Raise a table of probabilities to a power."""
    for i in range(n_rows):
        for k in range(table.shape[1]):
            if table[i, k] > 0.0:
                table[i, k] = np.exp(np.log(table[i, k]) * power)


@part
def _filter(moves, likelihood, n, alpha):
    """Filtered marginals of n positions; False if they vanish. Row K of `moves` is the law of first states."""
    n_states = moves.shape[1]
    for position in range(n):
        for k in range(n_states):
            alpha[position, k] = moves[n_states, k] if position == 0 else 0.0
        if position > 0:
            for j in range(n_states):
                weight = alpha[position - 1, j]
                if weight > 0.0:
                    for k in range(n_states):
                        alpha[position, k] += weight * moves[j, k]
        total = 0.0
        for k in range(n_states):
            alpha[position, k] *= likelihood[position, k]
            total += alpha[position, k]
        if not 0.0 < total < np.inf:
            return False
        for k in range(n_states):
            alpha[position, k] /= total
    return True


@part
def _draw_backward(moves, alpha, n, begin, origin, path):
    """Draw a path given the filtered marginals; `origin` is the position that the random numbers begin with."""
    n_states, following = moves.shape[1], -1
    for position in range(n - 1, -1, -1):
        total = 0.0
        for j in range(n_states):
            total += alpha[position, j] * (1.0 if following < 0 else moves[j, following])
        level, reach, chosen = uniform(begin, origin + position) * total, 0.0, -1
        for j in range(n_states):
            weight = alpha[position, j] * (1.0 if following < 0 else moves[j, following])
            if weight > 0.0:
                chosen = j
                reach += weight
                if reach > level:
                    break
        if chosen < 0:
            return False
        path[position] = following = chosen
    return True


@part
def _log_plain(moves, likelihood, path):
    """Log probability of a path and what was observed along it under the plain model."""
    product, log_total, before = 1.0, 0.0, moves.shape[1]
    for position in range(path.shape[0]):
        product *= moves[before, path[position]] * likelihood[position, path[position]]
        product, log_total = scaled_log(product, log_total)
        before = path[position]
    return log_total + np.log(product)


@kernel
def propose(moves, likelihood, power, begin, origin, alpha, old, new):
    """Draw a path of one sequence from a plain model raised to a power.

    Parameters
    ----------
    moves : (K + 1, K) predictive probabilities, row K for first states; raised to the power in place
    likelihood : (n, K) of the sequence, in any scale; raised to the power in place
    begin, origin : the stream of random numbers, and the first position in it
    alpha : room for (n, K)
    old, new : (n,) the path there is, and the one that is drawn

    Returns
    -------
    Log ratio q(old) / q(new) of the model before it was raised; nan if no path could be drawn.
    """
    n = old.shape[0]
    log_ratio = _log_plain(moves, likelihood, old)
    if power != 1.0:
        _raise_rows(moves, moves.shape[0], power)
        _raise_rows(likelihood, n, power)
    if not (_filter(moves, likelihood, n, alpha) and _draw_backward(moves, alpha, n, begin, origin, new)):
        return np.nan
    return log_ratio - _log_plain(moves, likelihood, new) / power


# ---- symbols ---------------------------------------------------------------------------------------------------------


@part
def _emitted(symbols, symbol, k):
    """Predictive probability of a symbol in a state."""
    prior = symbols.concentration[0 if symbols.concentration.shape[0] == 1 else symbol, k]
    return (symbols.counts[symbol, k] + prior) / (symbols.totals[k] + symbols.prior_totals[k])


@part
def _count_symbol(symbols, symbol, k, sign):
    symbols.counts[symbol, k] += sign * symbols.gain[0]
    symbols.totals[k] += sign * symbols.gain[0]


@part
def _take_out_symbols(symbols, values, path):
    """Take a sequence's symbols out of the counts; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for position in range(path.shape[0] - 1, -1, -1):
        if values[position] >= 0:
            _count_symbol(symbols, values[position], path[position], -1.0)
            product *= _emitted(symbols, values[position], path[position])
            product, log_total = scaled_log(product, log_total)
    return log_total + np.log(product)


@part
def _put_in_symbols(symbols, values, path):
    """Count a sequence's symbols; return their log probability given all others."""
    product, log_total = 1.0, 0.0
    for position in range(path.shape[0]):
        if values[position] >= 0:
            product *= _emitted(symbols, values[position], path[position])
            product, log_total = scaled_log(product, log_total)
            _count_symbol(symbols, values[position], path[position], 1.0)
    return log_total + np.log(product)


@part
def _weigh_symbols(symbols, values, inverse, likelihood):
    """Predictive likelihoods (n, K) of a sequence's symbols; `inverse` (K,) is room for one over the totals."""
    same = symbols.concentration.shape[0] == 1
    for k in range(inverse.shape[0]):
        inverse[k] = 1.0 / (symbols.totals[k] + symbols.prior_totals[k])
    for position in range(values.shape[0]):
        symbol = values[position]
        prior = 0 if same else max(symbol, 0)
        for k in range(inverse.shape[0]):
            if symbol < 0:
                likelihood[position, k] = 1.0
            else:
                likelihood[position, k] = (symbols.counts[symbol, k] + symbols.concentration[prior, k]) * inverse[k]


@part
def _restrict(choices, start, room, likelihood):
    """Let likelihoods (n, K) say what is known of a sequence's states too; `room` is (K,)."""
    for position in range(likelihood.shape[0]):
        low, high = choices.offsets[start + position], choices.offsets[start + position + 1]
        for i in range(low, high):
            weight = choices.weights[i] if choices.weights.shape[0] else 1.0
            room[i - low] = weight * likelihood[position, choices.states[i]]
        for k in range(room.shape[0]):
            likelihood[position, k] = 0.0
        for i in range(low, high):
            likelihood[position, choices.states[i]] = room[i - low]


@part
def _log_known(choices, start, path):
    """Log weight of a path by what is known of its states."""
    log_total = 0.0
    for position in range(path.shape[0]):
        for i in range(choices.offsets[start + position], choices.offsets[start + position + 1]):
            if choices.states[i] == path[position]:
                log_total += np.log(choices.weights[i])
    return log_total


@kernel
def sweep_sequences(rows, symbols, states, values, offsets, choices, powers, key, sweep):
    """Draw every sequence's path anew, once for each power.

    Parameters
    ----------
    rows, symbols : collapsed_rows.Rows, Symbols, in place
    states, values, offsets, choices, powers, key, sweep : as for `collapsed.sweep_states`

    Returns
    -------
    changed, accepted : states that changed, and sequences whose proposal was accepted, in the last sweep
    """
    n_states, longest = rows.counts.shape[1], 0
    for sequence in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[sequence + 1] - offsets[sequence])
    moves, room = np.empty((n_states + 1, n_states)), np.empty(n_states)
    likelihood, alpha = np.empty((longest, n_states)), np.empty((longest, n_states))
    proposal, current = np.empty(longest, np.int64), np.empty(longest, np.int64)
    changed = accepted = 0
    for number in range(powers.shape[0]):
        power, begin = powers[number], stream(key, sweep + number)
        changed = accepted = 0
        for sequence in range(offsets.shape[0] - 1):
            start, stop = offsets[sequence], offsets[sequence + 1]
            n = stop - start
            if n == 0:
                continue
            old, new, own = current[:n], proposal[:n], values[start:stop]
            for position in range(n):
                old[position] = states[start + position]
            log_old = take_out_path(rows, old) + _take_out_symbols(symbols, own, old)
            predictive(rows, moves)
            weights = likelihood[:n]
            _weigh_symbols(symbols, own, room, weights)
            if choices.offsets.shape[0]:
                _restrict(choices, start, room, weights)
            log_ratio = propose(moves, weights, power, begin, start, alpha, old, new)
            differ = 0
            for position in range(n):
                differ += old[position] != new[position]
            if np.isnan(log_ratio) or differ == 0:
                put_in_path(rows, old)
                _put_in_symbols(symbols, own, old)
                accepted += differ == 0
                continue
            log_new = put_in_path(rows, new) + _put_in_symbols(symbols, own, new)
            if choices.weights.shape[0]:
                log_ratio += _log_known(choices, start, new) - _log_known(choices, start, old)
            level = uniform(begin, states.shape[0] + sequence)
            if np.log(level) < (log_new - log_old + log_ratio) * power:
                accepted += 1
                changed += differ
                for position in range(n):
                    states[start + position] = new[position]
            else:
                take_out_path(rows, new)
                _take_out_symbols(symbols, own, new)
                put_in_path(rows, old)
                _put_in_symbols(symbols, own, old)
    return changed, accepted
