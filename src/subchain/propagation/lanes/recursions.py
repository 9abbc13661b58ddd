"""Forward and backward passes over many chains side by side, lanes innermost.

The chains of a block run in lockstep: row k of a table holds state k, its columns are ordered by step and, within a
step, by lane, so that neighbouring columns are different chains at the same step and fill a vector; the recursion of a
single chain could not. Lanes are sorted by falling length; step t occupies the columns `offsets[t]` to
`offsets[t + 1]`, so chains of unequal length need no padding.

Probabilities are scaled: each position is divided by its own normaliser, whose logarithms add up to the log likelihood.
Transition rows need not sum to one (variational surrogates do not).

A few dozen lanes, a strip, are taken through all steps before the next. Their current messages are kept beside the
tables, in a block that stays in the first-level cache whatever the distance between the rows of a table.

`np.int64(0)` is a zero like any other number; for a plain one, the function that is called would be compiled anew.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import (
    WIDTH,
    aligned,
    all_within,
    at_most,
    first,
    load,
    reciprocal,
    spread,
    store,
    zeros,
)
from subchain.propagation.band import wrapped
from subchain.propagation.compiled import by_kind, kernel, part
from subchain.propagation.lanes.sums import pair_sums, weigh

#: Backward messages of states that are impossible before grow without limit; up to here they do no harm.
LARGEST = 1e290

#: Products of normalisers within these limits can take one more factor.
LEAST_PRODUCT, LARGEST_PRODUCT = 1e-150, 1e150

#: Bytes of messages that are kept at hand, half of the smallest first-level cache in use.
AT_HAND = 1 << 14
#: Columns that are worked on at a time, so that their rows stay in the first-level cache.
BLOCK = 512


@part
def _strip(n_states):
    """Lanes that are worked on together: as many as let two messages of all states stay at hand."""
    return max(AT_HAND // (16 * n_states * WIDTH), 1) * WIDTH


def _dense_panels(matrix):
    """A (K, K) matrix with its columns in fours: four columns' entries side by side, K rows, then the next four.

    The last columns are filled up with zeros.
    """
    n_states = matrix.shape[0]
    panels = np.zeros((-(-n_states // 4) * n_states, 4))
    for k in range(n_states):
        for j in range(n_states):
            panels[k // 4 * n_states + j, k % 4] = matrix[j, k]
    return panels


def _band_panels(matrix):
    """A band is in the order in which it is read."""
    return matrix


def _dense_mix(panels, k, source, row, lane, n_states):
    """Σ_j matrix[j, k] · source[row + j], and the same for k + 1, k + 2 and k + 3; k is a multiple of four."""
    p, q, r, s = zeros(), zeros(), zeros(), zeros()
    panel = k // 4 * n_states
    for j in range(n_states):
        x = load(source, row + j, lane, None)
        p += spread(panels, panel + j, 0) * x
        q += spread(panels, panel + j, 1) * x
        r += spread(panels, panel + j, 2) * x
        s += spread(panels, panel + j, 3) * x
    return p, q, r, s


@part
def _band_row(first, weights, k, source, row, lane, n_states):
    """Σ_c weights[k, c] · source[row + first[k] + c]."""
    out = zeros()
    for c in range(weights.shape[1]):
        out += spread(weights, k, c) * load(source, row + wrapped(first[k] + c, n_states), lane, None)
    return out


def _band_mix(panels, k, source, row, lane, n_states):
    """The same for a band; rows beyond the last one are those of the last."""
    first, weights, last = panels.first, panels.weights, n_states - 1
    return (
        _band_row(first, weights, k, source, row, lane, n_states),
        _band_row(first, weights, min(k + 1, last), source, row, lane, n_states),
        _band_row(first, weights, min(k + 2, last), source, row, lane, n_states),
        _band_row(first, weights, min(k + 3, last), source, row, lane, n_states),
    )


_panels, _mix = by_kind(_dense_panels, _band_panels), by_kind(_dense_mix, _band_mix)


# ---- forward ---------------------------------------------------------------------------------------------------------


@kernel
def absorb_step(likelihood, alpha, at, stop, scale):
    """Turn the predicted states of one step's columns into filtered ones: times likelihood, normalised."""
    inverse = np.empty(BLOCK)
    for start in range(at, stop, BLOCK):
        width = min(BLOCK, stop - start)
        norm = scale[start : start + width]
        norm[:] = 0.0
        for k in range(alpha.shape[0]):
            a, b = alpha[k, start : start + width], likelihood[k, start : start + width]
            for lane in range(width):
                weighted = a[lane] * b[lane]
                a[lane] = weighted
                norm[lane] += weighted
        for lane in range(width):
            inverse[lane] = 1.0 / norm[lane] if norm[lane] > 0.0 else 0.0
        for k in range(alpha.shape[0]):
            a = alpha[k, start : start + width]
            for lane in range(width):
                a[lane] *= inverse[lane]


@part
def _absorb(predicted, likelihood, k, at, mask, message, row, lane):
    """Weigh a predicted state by its observation."""
    weighted = predicted * load(likelihood, k, at, mask)
    store(message, row, lane, None, weighted)
    return weighted


@part
def _forward_group(panels, likelihood, alpha, scale, message, before, now, at, lane, mask):
    """Filtered marginals of a vector of lanes.

    `message` holds those of the step before, not normalised, in the rows from `before` on, and is given the new ones in
    the rows from `now` on; its last row holds the factors that normalise them.
    """
    n_states = likelihood.shape[0]
    factor = load(message, 2 * n_states, lane, None)
    norm = zeros()
    for k in range(0, n_states, 4):
        predicted = _mix(panels, k, message, before, lane, n_states)
        for i in range(4):
            if k + i < n_states:
                norm += _absorb(predicted[i] * factor, likelihood, k + i, at, mask, message, now + k + i, lane)
    factor = reciprocal(norm)
    for k in range(n_states):
        store(alpha, k, at, mask, load(message, now + k, lane, None) * factor)
    store(scale, 0, at, mask, norm)
    store(message, 2 * n_states, lane, None, factor)


@part
def _first_group(start, likelihood, alpha, scale, message, at, begin, lane, mask):
    """Filtered marginals of the first positions of some lanes; `message` receives them (see `_forward_group`)."""
    n_states = likelihood.shape[0]
    norm = zeros()
    for k in range(n_states):
        norm += _absorb(load(start, k, begin + lane, mask), likelihood, k, at, mask, message, k, lane)
    factor = reciprocal(norm)
    for k in range(n_states):
        store(alpha, k, at, mask, load(message, k, lane, None) * factor)
    store(scale, 0, at, mask, norm)
    store(message, 2 * n_states, lane, None, factor)


@kernel
def forward(likelihood, transition, start, offsets, alpha, scale):
    """Filtered marginals of every position.

    Parameters
    ----------
    likelihood : (K, n)
    transition : (K, K), or the band of its transpose
    start : (K, lanes) weights of the first position's states before its observation is seen
    offsets : (steps + 1,)
    alpha : (K, n) output, each column sums to one
    scale : (n,) output, the normalisers; zero where the chain is impossible
    """
    n_states, lanes = start.shape
    scales = scale.reshape(1, -1)
    panels, strip = _panels(transition), _strip(n_states)
    message = aligned(2 * n_states + 1, strip)
    for begin in range(0, lanes, strip):
        before, now = np.int64(0), n_states
        count = min(strip, lanes - begin)
        lane = np.int64(0)
        while lane + WIDTH <= count:
            _first_group(start, likelihood, alpha, scales, message, begin + lane, begin, lane, None)
            lane += WIDTH
        if lane < count:
            mask = first(count - lane)
            _first_group(start, likelihood, alpha, scales, message, begin + lane, begin, lane, mask)
        for step in range(1, offsets.shape[0] - 1):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            lane = np.int64(0)
            while lane + WIDTH <= count:
                _forward_group(panels, likelihood, alpha, scales, message, before, now, at + lane, lane, None)
                lane += WIDTH
            if lane < count:
                mask = first(count - lane)
                _forward_group(panels, likelihood, alpha, scales, message, before, now, at + lane, lane, mask)
            before, now = now, before


@kernel
def _log_total(scale, shift, offsets, lane, first_step, product):
    """Logarithm of a product of normalisers and of those of one lane from `first_step` on, their shifts added."""
    out = 0.0
    for step in range(first_step, offsets.shape[0] - 1):
        if offsets[step] + lane >= offsets[step + 1]:
            break
        out += shift[offsets[step] + lane]
        product *= scale[offsets[step] + lane]
        if not LEAST_PRODUCT <= product <= LARGEST_PRODUCT:
            out += np.log(product)
            product = 1.0
    return out + np.log(product)


@kernel
def log_totals(scale, shift, offsets, out):
    """Log likelihood of each lane into `out`: logarithms of its normalisers plus shifts.

    Normalisers are multiplied as long as their product is well within the doubles: few logarithms are taken.
    """
    lanes, steps = out.shape[0], offsets.shape[0] - 1
    scales, shifts = scale.reshape(1, -1), shift.reshape(1, -1)
    products, sums = np.empty((1, WIDTH)), np.empty((1, WIDTH))
    for begin in range(0, lanes - lanes % WIDTH, WIDTH):
        product = load(scales, 0, begin, None)
        summed = load(shifts, 0, begin, None)
        logs = zeros()
        step = 1
        while step < steps and offsets[step] + begin + WIDTH <= offsets[step + 1]:
            if not all_within(product, LEAST_PRODUCT, LARGEST_PRODUCT):
                store(products, 0, 0, None, product)
                for i in range(WIDTH):
                    sums[0, i], products[0, i] = np.log(products[0, i]), 1.0
                logs += load(sums, 0, 0, None)
                product = load(products, 0, 0, None)
            product *= load(scales, 0, offsets[step] + begin, None)
            summed += load(shifts, 0, offsets[step] + begin, None)
            step += 1
        store(products, 0, 0, None, product)
        store(sums, 0, 0, None, logs + summed)
        for i in range(WIDTH):
            out[begin + i] = sums[0, i] + _log_total(scale, shift, offsets, begin + i, step, products[0, i])
    for lane in range(lanes - lanes % WIDTH, lanes):
        out[lane] = _log_total(scale, shift, offsets, lane, np.int64(0), 1.0)


# ---- backward --------------------------------------------------------------------------------------------------------


@kernel
def believe_step(likelihood, alpha, at, count, scale, beta, marginals):
    """Marginals of one step's columns from filtered and backward messages; weights the likelihoods in place."""
    inverse, factor = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, count, BLOCK):
        width = min(BLOCK, count - begin)
        start, stop = at + begin, at + begin + width
        norm = inverse[:width]
        norm[:] = 0.0
        for k in range(alpha.shape[0]):
            a, b = alpha[k, start:stop], beta[k, begin : begin + width]
            for i in range(width):
                norm[i] += a[i] * b[i]
        for i in range(width):
            norm[i] = 1.0 / norm[i] if norm[i] > 0.0 else 0.0
            factor[i] = norm[i] / scale[start + i] if scale[start + i] > 0.0 else 0.0
        for k in range(alpha.shape[0]):
            a, b = alpha[k, start:stop], beta[k, begin : begin + width]
            marginal, weighted = marginals[k, start:stop], likelihood[k, start:stop]
            for i in range(width):
                message = b[i]
                marginal[i] = a[i] * (message * inverse[i])
                weighted[i] *= min(message * factor[i], LARGEST)


@part
def _believe(message, correction, weight, alpha, weighted, marginals, k, at, mask, ahead, row, lane):
    """Marginal in one state from its backward message, which is then weighted by its observation."""
    marginal = load(alpha, k, at, mask) * (message * correction)
    store(marginals, k, at, mask, marginal)
    message = load(weighted, k, at, mask) * at_most(message * weight, LARGEST)
    store(weighted, k, at, mask, message)
    store(ahead, row, lane, None, message)
    return marginal


@part
def _backward_group(panels, weighted, alpha, scale, marginals, ahead, after, now, at, lane, mask):
    """Marginals of a vector of lanes from the weighted messages of the step after.

    `ahead` holds these in the rows from `after` on, and is given the new ones in the rows from `now` on. Marginals sum
    to one by construction, but for rounding; what they do sum to is kept in the last row and taken out of the messages
    one step later, so that rounding errors do not pile up along the chain.
    """
    n_states = alpha.shape[0]
    norm = load(scale, 0, at, mask)
    weight = reciprocal(norm * load(ahead, 2 * n_states, lane, None))
    correction = norm * weight
    believed = zeros()
    for k in range(0, n_states, 4):
        messages = _mix(panels, k, ahead, after, lane, n_states)
        for i in range(4):
            if k + i < n_states:
                believed += _believe(
                    messages[i],
                    correction,
                    weight,
                    alpha,
                    weighted,
                    marginals,
                    k + i,
                    at,
                    mask,
                    ahead,
                    now + k + i,
                    lane,
                )
    store(ahead, 2 * n_states, lane, None, believed)


@part
def _last_group(stop, weighted, alpha, scale, marginals, ahead, now, at, begin, lane, mask):
    """Marginals of the last positions of a vector of lanes, whose backward messages are given, in any scale."""
    n_states = alpha.shape[0]
    meeting = zeros()
    for k in range(n_states):
        meeting += load(alpha, k, at, mask) * load(stop, k, begin + lane, mask)
    correction = reciprocal(meeting)
    weight = correction * reciprocal(load(scale, 0, at, mask))
    for k in range(n_states):
        message = load(stop, k, begin + lane, mask)
        _believe(message, correction, weight, alpha, weighted, marginals, k, at, mask, ahead, now + k, lane)


@kernel
def backward(likelihood, transposed, stop, offsets, alpha, scale, marginals):
    """Smoothed marginals of every position; turns `likelihood` into the weighted messages that pair sums need.

    Parameters
    ----------
    likelihood : (K, n) in: likelihoods; out: likelihood · β / scale, the backward message weighted by its observation
    transposed : (K, K) the transition matrix transposed, or the band of the matrix itself
    stop : (K, lanes) backward message of each lane's last position, in any scale
    offsets, alpha, scale : as written by `forward`
    marginals : (K, n) output, each column sums to one
    """
    n_states, lanes = stop.shape
    scales = scale.reshape(1, -1)
    panels, strip = _panels(transposed), _strip(n_states)
    ahead = aligned(2 * n_states + 1, strip + WIDTH)  # lanes that join need not begin at a whole vector
    for begin in range(0, lanes, strip):
        running = np.int64(0)
        after, now = np.int64(0), n_states
        for step in range(offsets.shape[0] - 2, -1, -1):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            lane = np.int64(0)
            while lane + WIDTH <= running:
                _backward_group(panels, likelihood, alpha, scales, marginals, ahead, after, now, at + lane, lane, None)
                lane += WIDTH
            if lane < running:
                mask = first(running - lane)
                _backward_group(panels, likelihood, alpha, scales, marginals, ahead, after, now, at + lane, lane, mask)
            lane = running
            while lane + WIDTH <= count:
                _last_group(stop, likelihood, alpha, scales, marginals, ahead, now, at + lane, begin, lane, None)
                lane += WIDTH
            if lane < count:
                mask = first(count - lane)
                _last_group(stop, likelihood, alpha, scales, marginals, ahead, now, at + lane, begin, lane, mask)
            if running < count:
                ahead[2 * n_states, running:count] = 1.0
                running = count
            after, now = now, after


@kernel
def forward_backward(likelihood, transition, transposed, start, stop, offsets, shift, alpha, scale, marginals, totals):
    """Run `forward`, `log_totals` into `totals`, and `backward` in one call."""
    forward(likelihood, transition, start, offsets, alpha, scale)
    log_totals(scale, shift, offsets, totals)
    backward(likelihood, transposed, stop, offsets, alpha, scale, marginals)


# ---- messages without marginals --------------------------------------------------------------------------------------


@part
def _advance_group(panels, likelihood, message, weighted, at, lane, mask):
    """Carry filtered marginals of a vector of lanes over one position; `message` has their sums in its last row."""
    n_states = likelihood.shape[0]
    factor = reciprocal(load(message, n_states, lane, None))
    norm = zeros()
    for k in range(0, n_states, 4):
        predicted = _mix(panels, k, message, np.int64(0), lane, n_states)
        for i in range(4):
            if k + i < n_states:
                norm += _absorb(predicted[i] * factor, likelihood, k + i, at, mask, weighted, k + i, np.int64(0))
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
    norm = zeros()
    for k in range(0, n_states, 4):
        messages = _mix(panels, k, weighted, np.int64(0), np.int64(0), n_states)
        for i in range(4):
            if k + i < n_states:
                store(message, k + i, lane, None, messages[i])
                norm += messages[i]
    store(message, n_states, lane, None, norm)


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
    panels, strip = _panels(transition), _strip(n_states)
    message, weighted = aligned(n_states + 1, strip), aligned(n_states, WIDTH)
    for begin in range(0, lanes, strip):
        running = np.int64(0)
        for step in range(steps):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            lane = np.int64(0)
            while lane + WIDTH <= running:
                _advance_group(panels, likelihood, message, weighted, at + lane, lane, None)
                lane += WIDTH
            if lane < running:
                _advance_group(panels, likelihood, message, weighted, at + lane, lane, first(running - lane))
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
    panels, strip = _panels(transposed), _strip(n_states)
    message, weighted = aligned(n_states + 1, strip), aligned(n_states, WIDTH)
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
            lane = np.int64(0)
            while lane + WIDTH <= running:
                _retreat_group(panels, likelihood, message, weighted, at + lane, lane, None)
                lane += WIDTH
            if lane < running:
                _retreat_group(panels, likelihood, message, weighted, at + lane, lane, first(running - lane))
        _write_message(message, begin, running, before)


@part
def _mix_columns(panels, table, at, mask, block, out):
    n_states = table.shape[0]
    for k in range(n_states):
        store(block, k, 0, None, load(table, k, at, mask))
    for k in range(0, n_states, 4):
        mixed = _mix(panels, k, block, np.int64(0), np.int64(0), n_states)
        for i in range(4):
            if k + i < n_states:
                store(out, k + i, at, mask, mixed[i])


@kernel
def mix(matrix, table, out):
    """Σ_j matrix[j, k] · table[j] for all columns of a (K, n) table."""
    n_states, columns = table.shape
    panels, block = _panels(matrix), aligned(n_states, WIDTH)
    at = np.int64(0)
    while at + WIDTH <= columns:
        _mix_columns(panels, table, at, None, block, out)
        at += WIDTH
    if at < columns:
        _mix_columns(panels, table, at, first(columns - at), block, out)


@kernel
def approach(likelihood, transition, transposed, start, stop, offsets, last, before):
    """Run `advance`, and `retreat` if `stop` has lanes, over the same positions in one call."""
    advance(likelihood, transition, start, offsets, last)
    if stop.shape[1]:
        retreat(likelihood, transposed, stop, offsets, before)


__all__ = [
    "advance",
    "approach",
    "backward",
    "forward",
    "forward_backward",
    "log_totals",
    "mix",
    "pair_sums",
    "retreat",
    "weigh",
]
