"""Messages along many chains side by side, without the marginals of the positions on the way.

They run over the buffers of subchains (`docs/algorithms/buffers-and-guards.md`). Tables and strips of lanes are as in
`recursions.py`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import aligned_like, first, load, reciprocal, store, width, zeros
from subchain.propagation.compiled import bare_part, kernel, part
from subchain.propagation.lanes.panels import mix_four, panels_of, strip_of
from subchain.propagation.lanes.recursions import absorb


@part
def _advance_group(panels, likelihood, message, weighted, at, lane, mask):
    """Carry filtered marginals of a vector of lanes over one position; `message` has their sums in its last row."""
    n_states = likelihood.shape[0]
    factor = reciprocal(load(message, n_states, lane, None))
    norm = zeros(likelihood)
    for k in range(0, n_states, 4):
        predicted = mix_four(panels, k, message, np.int64(0), lane, n_states)
        for i in range(4):
            if k + i < n_states:
                norm += absorb(predicted[i] * factor, likelihood, k + i, at, mask, weighted, k + i, np.int64(0))
    for k in range(n_states):
        store(message, k, lane, None, load(weighted, k, 0, None))
    store(message, n_states, lane, None, norm)


@part
def _retreat_group(panels, likelihood, message, weighted, at, lane, mask):
    """Carry backward messages of a vector of lanes over one position; `message` has their sums in its last row."""
    n_states = likelihood.shape[0]
    factor = reciprocal(load(message, n_states, lane, None))
    for k in range(n_states):
        store(weighted, k, 0, None, load(likelihood, k, at, mask) * (load(message, k, lane, None) * factor))
    norm = zeros(likelihood)
    for k in range(0, n_states, 4):
        messages = mix_four(panels, k, weighted, np.int64(0), np.int64(0), n_states)
        for i in range(4):
            if k + i < n_states:
                store(message, k + i, lane, None, messages[i])
                norm += messages[i]
    store(message, n_states, lane, None, norm)


@bare_part
def _carry(carry_group, panels, likelihood, message, weighted, at, lanes):
    """Carry the messages of the first `lanes` lanes over one position by `carry_group`, one vector after the other."""
    lane, wide = np.int64(0), width(likelihood)
    while lane + wide <= lanes:
        carry_group(panels, likelihood, message, weighted, at + lane, lane, None)
        lane += wide
    if lane < lanes:
        carry_group(panels, likelihood, message, weighted, at + lane, lane, first(lanes - lane, likelihood))


@part
def _write_message(message, begin, count, target):
    """Copy messages to a table, each lane normalised."""
    n_states = target.shape[0]
    for lane in range(count):
        norm = message[n_states, lane]
        for k in range(n_states):
            target[k, begin + lane] = message[k, lane] / norm if norm > 0.0 else 0.0


@kernel
def advance(likelihood, transition, start, offsets, last):
    """Filtered marginals of each lane's last position alone.

    Lanes end together: they are sorted by falling length, and those that are shorter join later.

    Parameters
    ----------
    likelihood : (K, n)
    transition : (K, K), or the band of its transpose
    start : (K, lanes) weights of the first position's states before its observation is seen
    offsets : (steps + 1,), no step has fewer lanes than the one before
    last : (K, lanes) output, each column sums to one; lanes of no length are left alone
    """
    n_states = likelihood.shape[0]
    steps = offsets.shape[0] - 1
    lanes = offsets[steps] - offsets[steps - 1]
    panels, strip = panels_of(transition), strip_of(likelihood)
    message = aligned_like(likelihood, n_states + 1, strip)
    weighted = aligned_like(likelihood, n_states, width(likelihood))
    for begin in range(0, lanes, strip):
        running = np.int64(0)
        for step in range(steps):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            _carry(_advance_group, panels, likelihood, message, weighted, at, running)
            for joining in range(running, count):
                norm = 0.0
                for k in range(n_states):
                    message[k, joining] = start[k, begin + joining] * likelihood[k, at + joining]
                    norm += message[k, joining]
                message[n_states, joining] = norm
            running = max(running, count)
        _write_message(message, begin, running, last)


@kernel
def retreat(likelihood, transposed, stop, offsets, before):
    """Backward messages of the positions before each lane's first alone.

    Lanes begin together: they are sorted by falling length, and those that are shorter end sooner.

    Parameters
    ----------
    likelihood : (K, n)
    transposed : (K, K) the transition matrix transposed, or the band of the matrix itself
    stop : (K, lanes) backward message of each lane's last position, in any scale
    offsets : (steps + 1,), no step has more lanes than the one before
    before : (K, lanes) output, each column sums to one; lanes of no length are left alone
    """
    n_states = likelihood.shape[0]
    lanes = offsets[1]
    panels, strip = panels_of(transposed), strip_of(likelihood)
    message = aligned_like(likelihood, n_states + 1, strip)
    weighted = aligned_like(likelihood, n_states, width(likelihood))
    for begin in range(0, lanes, strip):
        running = np.int64(0)
        for step in range(offsets.shape[0] - 2, -1, -1):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            for joining in range(running, count):
                for k in range(n_states):
                    message[k, joining] = stop[k, begin + joining]
                message[n_states, joining] = 1.0
            running = max(running, count)
            _carry(_retreat_group, panels, likelihood, message, weighted, at, running)
        _write_message(message, begin, running, before)


@kernel
def approach(likelihood, transition, transposed, start, stop, offsets, last, before):
    """Run `advance`, and `retreat` if `stop` has lanes, over the same positions in one call."""
    advance(likelihood, transition, start, offsets, last)
    if stop.shape[1]:
        retreat(likelihood, transposed, stop, offsets, before)
