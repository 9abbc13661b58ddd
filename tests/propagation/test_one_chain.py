import naive
import numpy as np
import pytest

from subchain.numerics.vectors import aligned
from subchain.propagation.collapsed.single_chain import add_pair_sums, forward_backward, padded, transpose


def table(rows, width, contents):
    """Contents with padding that is zero."""
    out = aligned(rows, width)
    out[:] = 0.0
    out[:, : contents.shape[1]] = contents
    return out


@pytest.mark.parametrize("n_states", [1, 2, 5, 8, 15, 16, 17, 24, 45, 48, 49, 64, 97])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_beliefs_and_pairs_are_those_of_the_slow_version(n_states, n):
    rng = np.random.default_rng(n_states)
    width = padded(n_states)
    transition, likelihood = rng.dirichlet(np.ones(n_states), n_states), rng.random((n, n_states)) + 1e-3
    start, stop = rng.random(n_states), rng.random(n_states)
    weights = likelihood.copy()
    weights[-1] *= stop
    expected = naive.marginals(np.log(weights), start, transition)

    moves, turned = table(n_states, width, transition), aligned(width, width)
    transpose(moves, n_states, np.minimum(np.arange(width), n_states - 1), turned)
    alpha, weighted, marginals = (aligned(n, width) for _ in range(3))
    log_total = forward_backward(
        moves, turned, table(1, width, start[None]), table(1, width, stop[None]), table(n, width, likelihood), n,
        n_states, alpha, weighted, marginals, np.empty((1, n)),
    )  # fmt: skip
    sums = table(n_states, width, np.zeros((n_states, 1)))
    add_pair_sums(alpha, weighted, n, n_states, sums)
    assert log_total == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert np.allclose(marginals[:, :n_states], expected.smoothed, rtol=1e-12, atol=1e-15)
    assert np.allclose((sums * moves)[:, :n_states], expected.pairs, rtol=1e-12, atol=1e-15)
    assert not marginals[:, n_states:].any()


def test_long_chains_do_not_underflow():
    n, width = 5000, padded(3)
    rng = np.random.default_rng(0)
    transition, likelihood = rng.dirichlet(np.ones(3), 3), 1e-9 * rng.random((n, 3))
    moves, turned = table(3, width, transition), aligned(width, width)
    transpose(moves, 3, np.minimum(np.arange(width), 2), turned)
    alpha, weighted, marginals = (aligned(n, width) for _ in range(3))
    ones = table(1, width, np.ones((1, 3)))
    log_total = forward_backward(
        moves, turned, ones, ones, table(n, width, likelihood), n, 3, alpha, weighted, marginals, np.empty((1, n))
    )
    expected = naive.marginals(np.log(likelihood), np.ones(3), transition)
    assert log_total == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert np.allclose(marginals[:, :3], expected.smoothed, atol=1e-11)
