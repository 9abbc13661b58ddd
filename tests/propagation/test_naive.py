"""The judge is judged: the recursions of `naive` against the sums over all paths that define them."""

import naive
import numpy as np
import pytest
from chains import Chain, small_chains
from hypothesis import assume, given


@given(small_chains())
def test_recursions_equal_sums_over_all_paths(chain: Chain):
    assume(naive.impossible_at(*chain) is None)
    ours, truth = naive.marginals(*chain), naive.enumerate_marginals(*chain)
    assert ours.log_likelihood == pytest.approx(truth.log_likelihood, rel=1e-12)
    for name in ("smoothed", "pairs", "filtered", "increments"):
        np.testing.assert_allclose(getattr(ours, name), getattr(truth, name), rtol=1e-9, atol=1e-12, err_msg=name)


@given(small_chains())
def test_the_best_of_all_paths_is_found(chain: Chain):
    assume(naive.impossible_at(*chain) is None)
    path, score = naive.best_path(*chain)
    assert score == pytest.approx(naive.enumerate_best_path(*chain)[1], rel=1e-12)
    assert naive.path_log_probability(path, *chain) == pytest.approx(score, rel=1e-12)


@given(small_chains())
def test_a_chain_is_impossible_where_every_path_ends(chain: Chain):
    position = naive.impossible_at(*chain)
    length = len(chain.log_likelihood)
    reached = [
        naive.all_paths(chain.log_likelihood[: t + 1], chain.initial, chain.transition)[1].max() for t in range(length)
    ]
    dead = [t for t in range(length) if reached[t] == -np.inf]
    assert position == (dead[0] if dead else None)
