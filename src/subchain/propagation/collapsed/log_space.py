"""Pieces that defeat scaled probabilities, in log space: rare, slow, and right."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.propagation.collapsed.verbs import weigh
from subchain.propagation.compiled import family_rare, rare
from subchain.propagation.serial import log_backward, log_forward


@family_rare
def log_table(emissions, begin, end, n_states):
    """Log weights of observations in all states, (n, K)."""
    logs = np.empty((end - begin, n_states))
    for position in range(begin, end):
        for k in range(n_states):
            factor, log = weigh(emissions, position, k)
            logs[position - begin, k] = log + np.log(factor)
    return logs


@rare
def log_messages(logs, chances, start, stop):
    """Forward and backward messages between those from outside, all in log space, and the log normaliser.

    Parameters
    ----------
    logs : (n, K) log weights of observations
    chances : (K, ·) transition probabilities
    start, stop : (K,) weights of the first state, backward message of the last

    Returns
    -------
    alpha, beta, log_moves, log_total, lost : the last is where no state is possible, −1 if there is always one
    """
    n, n_states = logs.shape
    log_moves = np.log(chances[:, :n_states])
    alpha, beta = np.empty((n, n_states)), np.empty((n, n_states))
    log_forward(logs, log_moves, np.log(start[:n_states]), alpha)
    log_backward(logs, log_moves.T.copy(), np.log(stop[:n_states]), beta)
    for position in range(n):
        if alpha[position].max() == -np.inf:
            return alpha, beta, log_moves, -np.inf, position
    last = alpha[n - 1] + beta[n - 1]
    top = last.max()
    if top == -np.inf:
        return alpha, beta, log_moves, -np.inf, n - 1
    return alpha, beta, log_moves, top + np.log(np.exp(last - top).sum()), -1


@rare
def _log_marginals(alpha, beta, logs, start, stop, out):
    """Marginals into the first columns of `out`; return their expected log weight but for that of transitions."""
    n, n_states = alpha.shape
    expected = 0.0
    for position in range(n):
        joint = alpha[position] + beta[position]
        joint = np.exp(joint - joint.max())
        norm = joint.sum()
        for k in range(n_states):
            marginal = joint[k] / norm
            out[position, k] = marginal
            if marginal > 0.0:
                expected += marginal * logs[position, k]
                expected += marginal * np.log(start[k]) if position == 0 else 0.0
                expected += marginal * np.log(stop[k]) if position == n - 1 else 0.0
    return expected


@rare
def with_evidence(logs, legal, first):
    """Log weights (n, K) of observations from position `first` on, with the evidence; −inf where a state is illegal."""
    known = np.full(logs.shape, -np.inf)
    for i in range(logs.shape[0]):
        for a in range(legal.offsets[first + i], legal.offsets[first + i + 1]):
            known[i, legal.states[a]] = logs[i, legal.states[a]] + (legal.logs[a] if legal.logs.shape[0] else 0.0)
    return known


@rare
def rescue_state(logs, table, weights, out):
    """Marginals of one position, up to a factor, into row `out` of a table whose row `weights` has those of its place.

    Parameters
    ----------
    logs : (1, K) log weights of its observation

    Returns
    -------
    The sum of what was written, zero if no state explains the position, and the log of the factor.
    """
    joint = logs[0] + np.log(table[weights, : logs.shape[1]])
    top, norm = joint.max(), 0.0
    if top == -np.inf:
        return 0.0, 0.0
    for k in range(joint.shape[0]):
        table[out, k] = np.exp(joint[k] - top)
        norm += table[out, k]
    return norm, top


@rare
def rescue_piece(logs, gain, room, since):
    """Run a piece over all states anew, with the messages and transitions in the room of `dense_pieces`.

    Parameters
    ----------
    logs : (n, K) log weights of its observations
    gain : how often the piece counts

    Returns
    -------
    The number of the first position that no state explains; −1 if there is none.
    """
    n, n_states, chances = logs.shape[0], logs.shape[1], room.chances
    marginals = room.fresh[room.done[0] : room.done[0] + n]
    alpha, beta, log_moves, log_total, lost = log_messages(logs, chances, room.start[0], room.stop[0])
    if lost >= 0:
        return np.int64(lost)
    for position in range(1, n):
        for j in range(n_states):
            before = alpha[position - 1, j] - log_total
            for k in range(n_states):
                if chances[j, k] > 0.0:
                    pair = np.exp(before + log_moves[j, k] + logs[position, k] + beta[position, k])
                    room.moved[j, k] += gain * pair / chances[j, k]
    marginals[:, n_states:] = 0.0
    since += gain * log_total
    room.expected[0] += gain * _log_marginals(alpha, beta, logs, room.start[0], room.stop[0], marginals)
    return np.int64(-1)
