"""Forward and backward passes over many chains side by side, lanes innermost.

The chains of a block run in lockstep: row k of a table holds state k, its columns are ordered by step and, within a
step, by lane, so that neighbouring columns are different chains at the same step and fill a vector; the recursion of a
single chain could not. Lanes are sorted by falling length; step t occupies the columns `offsets[t]` to
`offsets[t + 1]`, so chains of unequal length need no padding.

Probabilities are scaled: each position is divided by its own normaliser, whose logarithms add up to the log likelihood.
Transition rows need not sum to one (variational surrogates do not).

A few dozen lanes, a strip, are taken through all steps before the next. Their current messages are kept beside the
tables, in a block that stays in the first-level cache whatever the distance between the rows of a table.

Tables are of doubles or of singles; log likelihoods are summed in doubles.

`np.int64(0)` is a zero like any other number; for a plain one, the function that is called would be compiled anew.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import (
    WIDTH,
    aligned_like,
    all_within,
    at_most,
    first,
    load,
    load_doubles,
    logarithm,
    reciprocal,
    store,
    width,
    zeros,
)
from subchain.propagation.compiled import kernel, ordered_kernel, part, small_kernel
from subchain.propagation.lanes.panels import mix_four, panels_of, strip_of
from subchain.propagation.precision import LARGEST, by_precision

#: Products of normalisers within these limits can take one more factor.
LEAST_PRODUCT, LARGEST_PRODUCT = 1e-150, 1e150

#: Columns that are worked on at a time, so that their rows stay in the first-level cache.
BLOCK = 512


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
def absorb(predicted, likelihood, k, at, mask, message, row, lane):
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
    norm = zeros(likelihood)
    for k in range(0, n_states, 4):
        predicted = mix_four(panels, k, message, before, lane, n_states)
        for i in range(4):
            if k + i < n_states:
                norm += absorb(predicted[i] * factor, likelihood, k + i, at, mask, message, now + k + i, lane)
    factor = reciprocal(norm)
    for k in range(n_states):
        store(alpha, k, at, mask, load(message, now + k, lane, None) * factor)
    store(scale, 0, at, mask, norm)
    store(message, 2 * n_states, lane, None, factor)


@part
def _first_group(start, likelihood, alpha, scale, message, at, begin, lane, mask):
    """Filtered marginals of the first positions of some lanes; `message` receives them (see `_forward_group`)."""
    n_states = likelihood.shape[0]
    norm = zeros(likelihood)
    for k in range(n_states):
        norm += absorb(load(start, k, begin + lane, mask), likelihood, k, at, mask, message, k, lane)
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
    panels, strip = panels_of(transition), strip_of(alpha)
    message, wide = aligned_like(alpha, 2 * n_states + 1, strip), width(alpha)
    for begin in range(0, lanes, strip):
        before, now = np.int64(0), n_states
        count = min(strip, lanes - begin)
        lane = np.int64(0)
        while lane + wide <= count:
            _first_group(start, likelihood, alpha, scales, message, begin + lane, begin, lane, None)
            lane += wide
        if lane < count:
            mask = first(count - lane, alpha)
            _first_group(start, likelihood, alpha, scales, message, begin + lane, begin, lane, mask)
        for step in range(1, offsets.shape[0] - 1):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            lane = np.int64(0)
            while lane + wide <= count:
                _forward_group(panels, likelihood, alpha, scales, message, before, now, at + lane, lane, None)
                lane += wide
            if lane < count:
                mask = first(count - lane, alpha)
                _forward_group(panels, likelihood, alpha, scales, message, before, now, at + lane, lane, mask)
            before, now = now, before


@small_kernel
def _log_total(scale, shift, offsets, lane, first_step, product):
    """Logarithm of a product of normalisers and of those of one lane from `first_step` on, their shifts added.

    It comes in two parts, a product whose logarithm has not been taken yet, and the rest.
    """
    out = 0.0
    for step in range(first_step, offsets.shape[0] - 1):
        if offsets[step] + lane >= offsets[step + 1]:
            break
        out += shift[offsets[step] + lane]
        product *= scale[offsets[step] + lane]
        if not LEAST_PRODUCT <= product <= LARGEST_PRODUCT:
            out += np.log(product)
            product = 1.0
    return product, out


@ordered_kernel
def _add_logarithms(products, out):
    """Add the logarithms of products, of a vector of lanes at a time, to `out`; both are (1, n)."""
    lane = np.int64(0)
    while lane + WIDTH <= out.shape[1]:
        product = load(products, 0, lane, None)
        if not all_within(product, LEAST_PRODUCT, LARGEST_PRODUCT):
            break
        store(out, 0, lane, None, load(out, 0, lane, None) + logarithm(product))
        lane += WIDTH
    for rest in range(lane, out.shape[1]):
        out[0, rest] += np.log(products[0, rest])


@kernel
def log_totals(scale, shift, offsets, out):
    """Log likelihood of each lane into `out`: logarithms of its normalisers plus shifts.

    Normalisers are multiplied as long as their product is well within the doubles: few logarithms are taken.
    """
    lanes, steps = out.shape[0], offsets.shape[0] - 1
    scales, shifts, sums = scale.reshape(1, -1), shift.reshape(1, -1), out.reshape(1, -1)
    products, logs = np.empty((1, lanes)), np.empty((1, WIDTH))
    for begin in range(0, lanes - lanes % WIDTH, WIDTH):
        product = load_doubles(scales, 0, begin, None)
        summed = load(shifts, 0, begin, None)
        step = 1
        while step < steps and offsets[step] + begin + WIDTH <= offsets[step + 1]:
            if not all_within(product, LEAST_PRODUCT, LARGEST_PRODUCT):
                store(products, 0, begin, None, product)
                for i in range(WIDTH):
                    logs[0, i], products[0, begin + i] = np.log(products[0, begin + i]), 1.0
                summed += load(logs, 0, 0, None)
                product = load(products, 0, begin, None)
            product *= load_doubles(scales, 0, offsets[step] + begin, None)
            summed += load(shifts, 0, offsets[step] + begin, None)
            step += 1
        store(products, 0, begin, None, product)
        store(sums, 0, begin, None, summed)
        if step < steps:
            for lane in range(begin, begin + WIDTH):
                products[0, lane], rest = _log_total(scale, shift, offsets, lane, step, products[0, lane])
                out[lane] += rest
    for lane in range(lanes - lanes % WIDTH, lanes):
        products[0, lane], out[lane] = _log_total(scale, shift, offsets, lane, np.int64(0), 1.0)
    _add_logarithms(products, sums)


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
                weighted[i] *= min(message * factor[i], LARGEST[0])


@part
def _believe(message, correction, weight, alpha, weighted, marginals, k, at, mask, ahead, row, lane):
    """Marginal in one state from its backward message, which is then weighted by its observation."""
    marginal = load(alpha, k, at, mask) * (message * correction)
    store(marginals, k, at, mask, marginal)
    message = load(weighted, k, at, mask) * at_most(message * weight, by_precision(LARGEST, weighted))
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
    believed = zeros(alpha)
    for k in range(0, n_states, 4):
        messages = mix_four(panels, k, ahead, after, lane, n_states)
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
    meeting = zeros(alpha)
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
    panels, strip = panels_of(transposed), strip_of(alpha)
    wide = width(alpha)
    ahead = aligned_like(alpha, 2 * n_states + 1, strip + wide)  # lanes that join need not begin at a whole vector
    for begin in range(0, lanes, strip):
        running = np.int64(0)
        after, now = np.int64(0), n_states
        for step in range(offsets.shape[0] - 2, -1, -1):
            at = offsets[step] + begin
            count = min(strip, offsets[step + 1] - at)
            lane = np.int64(0)
            while lane + wide <= running:
                _backward_group(panels, likelihood, alpha, scales, marginals, ahead, after, now, at + lane, lane, None)
                lane += wide
            if lane < running:
                mask = first(running - lane, alpha)
                _backward_group(panels, likelihood, alpha, scales, marginals, ahead, after, now, at + lane, lane, mask)
            lane = running
            while lane + wide <= count:
                _last_group(stop, likelihood, alpha, scales, marginals, ahead, now, at + lane, begin, lane, None)
                lane += wide
            if lane < count:
                mask = first(count - lane, alpha)
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
