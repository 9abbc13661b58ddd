"""Calls in the manner of hmmlearn, and arrays that are not in C order."""

import numpy as np
import pytest

from subchain import EM, HMM
from subchain.data import Sequences, as_sequences
from subchain.errors import InputError

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(60, 2)), RNG.normal(4.0, 1.0, size=(40, 2))])
LENGTHS = [30, 70]


@pytest.fixture(scope="module")
def fitted():
    return HMM(2, "gaussian", inference=EM(), random_state=0).fit((X, LENGTHS))


def test_lengths_in_the_manner_of_hmmlearn_are_understood(fitted):
    theirs = HMM(2, "gaussian", inference=EM(), random_state=0).fit(X, LENGTHS)
    assert theirs.n_sequences_ == 2
    assert theirs.score(X, LENGTHS) == fitted.score((X, LENGTHS))
    for method in ("predict", "predict_proba"):
        found, expected = getattr(theirs, method)(X, np.array(LENGTHS)), getattr(fitted, method)((X, LENGTHS))
        assert all((one == other).all() for one, other in zip(found, expected, strict=True))
    assert len(theirs.fit_predict(X, LENGTHS)) == 2


@pytest.mark.parametrize("method", ["fit", "score", "predict", "predict_proba", "partial_fit", "fit_predict"])
@pytest.mark.parametrize(
    "second",
    [np.repeat([0, 1], 50), np.repeat([0, 1], 50).tolist(), [30, 60], ["a"] * 100, [np.zeros(100, dtype=int)]],
    ids=["labels", "list of labels", "lengths that do not add up", "names", "labels of sequences"],
)
def test_labels_are_never_ignored(fitted, method, second):
    with pytest.raises(InputError, match=rf"{method}\(x, states=labels\)"):
        getattr(fitted, method)(X, second)


def test_one_length_for_each_row_could_be_labels_and_is_refused():
    with pytest.raises(InputError, match="lengths"):
        HMM(2, "gaussian").fit(X, np.ones(len(X), dtype=int))


@pytest.mark.parametrize(
    "x", [np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.repeat(X, 2, axis=1)[:, ::2], X[::-1].copy()[::-1]]
)
def test_arrays_in_any_order_are_copied_once_and_give_the_same(x, fitted):
    data = as_sequences(x)
    assert data.values.flags.c_contiguous
    assert (data.values == X).all()
    assert fitted.score((x, LENGTHS)) == fitted.score((X, LENGTHS))


def test_a_mapped_file_in_fortran_order_is_read_in_pieces(tmp_path, fitted):
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    data = as_sequences(tmp_path / "x.npy")
    assert not data.values.flags.c_contiguous
    assert (data.at(np.array([3, 99])) == X[[3, 99]]).all()
    assert np.isclose(fitted.score(tmp_path / "x.npy"), fitted.score(X))


def test_an_array_in_c_order_is_not_copied():
    assert np.shares_memory(Sequences(X).values, X)
