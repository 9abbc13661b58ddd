"""The protocol of components, which is scikit-learn's."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import sklearn.base

from subchain import HMM, VI, Categorical, Dirichlet
from subchain.core.components import clone
from subchain.errors import InputError


def test_settings_are_shown_where_they_differ_from_the_defaults() -> None:
    assert repr(Categorical()) == "Categorical()"
    assert repr(HMM(3, Categorical(0.5))) == "HMM(n_states=3, emission=Categorical(concentration=0.5))"
    assert repr(Dirichlet(np.ones((40, 40)))).endswith("…)")


def test_both_clones_do_the_same() -> None:
    model = HMM(3, Categorical(np.full(4, 2.0)), inference=VI(max_iter=7))
    for copy in (clone(model), sklearn.base.clone(model)):
        assert copy.emission is not model.emission
        assert copy.inference.max_iter == 7
        np.testing.assert_array_equal(copy.emission.concentration, np.full(4, 2.0))


def test_a_misspelt_setting_is_named() -> None:
    with pytest.raises(InputError, match="n_states"):
        HMM().set_params(n_state=3)


def test_a_model_does_without_scikit_learn() -> None:
    program = "import sys; from subchain import HMM; HMM(2, 'gaussian', progress=False).fit([1.0, 5.0] * 20);"
    program += "assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, env=environment)


def test_settings_of_a_name_are_refused() -> None:
    with pytest.raises(InputError, match="set inference to an object"):
        HMM(2, inference="vi").set_params(inference__max_iter=3)


def test_scikit_learn_recognises_a_model_that_was_not_fitted() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        HMM(2).score([1.0])
