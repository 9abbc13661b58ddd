import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln

from subchain.numerics.special import digamma_and_gammaln


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=30))
def test_both_functions_agree_with_the_library(values):
    x = np.array(values)
    psi, lgamma = digamma_and_gammaln(x)
    assert np.allclose(psi, digamma(x), rtol=1e-12, atol=1e-14)
    assert np.allclose(lgamma, gammaln(x), rtol=1e-13, atol=1e-13)


def test_the_shape_is_kept():
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)
    assert [part.shape for part in digamma_and_gammaln(x)] == [x.shape, x.shape]
