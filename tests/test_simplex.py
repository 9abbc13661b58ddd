import numpy as np
from scipy.special import digamma, gammaln

from subchain.numerics import simplex


def kl_by_definition(ours, theirs):
    total = 0.0
    for a, b in zip(ours, theirs, strict=True):
        keep = a > 0
        a, b = a[keep], b[keep]
        total += gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
        total += ((a - b) * (digamma(a) - digamma(a.sum()))).sum()
    return total


def divergence(ours, theirs, axis=1):
    return simplex.divergence(ours, simplex.log_moments(ours, axis), theirs, simplex.log_moments(theirs, axis))


def test_divergence_follows_its_definition_on_either_axis(rng):
    ours, theirs = rng.gamma(1.0, size=(4, 6)) + 0.01, rng.gamma(1.0, size=(4, 6)) + 0.01
    assert np.isclose(divergence(ours, theirs), kl_by_definition(ours, theirs), rtol=1e-10)
    assert np.isclose(divergence(ours.T.copy(), theirs.T.copy(), axis=0), kl_by_definition(ours, theirs), rtol=1e-10)


def test_impossible_entries_take_part_in_nothing(rng):
    ours, theirs = rng.gamma(1.0, size=(4, 6)) + 0.1, rng.gamma(1.0, size=(4, 6)) + 0.1
    ours[:, 2] = theirs[:, 2] = 0.0
    kept = np.delete(np.arange(6), 2)
    assert np.isclose(divergence(ours, theirs), divergence(ours[:, kept].copy(), theirs[:, kept].copy()))
    assert not simplex.draw(ours, 1, rng)[:, 2].any()
    assert not simplex.normalized(ours, 1)[:, 2].any()
    assert not simplex.mode(ours, 1)[:, 2].any()


def test_the_divergence_from_itself_is_zero_and_otherwise_positive(rng):
    ours, theirs = rng.gamma(1.0, size=(3, 5)) + 0.01, rng.gamma(1.0, size=(3, 5)) + 0.01
    assert abs(divergence(ours, ours)) < 1e-12
    assert divergence(ours, theirs) > 0.0


def test_expected_logarithms_agree_with_draws(rng):
    concentration = np.array([[0.7, 2.0, 5.0]])
    draws = np.log(np.array([simplex.draw(concentration, 1, rng)[0] for _ in range(20_000)])).mean(axis=0)
    assert np.allclose(simplex.log_moments(concentration, 1).expected[0], draws, atol=0.05)


def test_the_mode_of_a_flat_distribution_is_uniform_over_what_is_possible():
    assert np.allclose(simplex.mode(np.array([[1.0, 0.0, 1.0]]), 1), [[0.5, 0.0, 0.5]])
    assert np.allclose(simplex.mode(np.array([[1.0, 0.0, 3.0]]), 1), [[0.0, 0.0, 1.0]])
