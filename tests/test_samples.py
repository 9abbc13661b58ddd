"""Draws, and what they are worth: the numbers are those of ArviZ."""

import warnings

import numpy as np
import pytest

from subchain.core.samples import Samples, ess_bulk, ess_tail, r_hat
from subchain.errors import InputError


def autoregressive(correlation, n_chains, n_draws, seed=0):
    noise = np.random.default_rng(seed).normal(size=(n_chains, n_draws))
    for draw in range(1, n_draws):
        noise[:, draw] += correlation * noise[:, draw - 1]
    return noise


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz", reason="ArviZ is not installed; it is an extra")


@pytest.mark.parametrize("shape", [(4, 500), (4, 501), (2, 7), (3, 4), (2, 100)])
@pytest.mark.parametrize("correlation", [0.0, 0.9, -0.7])
def test_diagnostics_are_those_of_arviz(correlation, shape, arviz):
    draws = autoregressive(correlation, *shape)
    for changed in (draws, draws.round(), draws + 0.4 * np.arange(shape[0])[:, None], np.exp(2.0 * draws)):
        assert r_hat(changed) == pytest.approx(float(arviz.rhat(changed)))
        assert ess_bulk(changed) == pytest.approx(float(arviz.ess(changed, method="bulk")))
        assert ess_tail(changed) == pytest.approx(float(arviz.ess(changed, method="tail")))


def test_a_single_chain_is_compared_with_itself():
    drifting = np.linspace(0.0, 5.0, 400) + autoregressive(0.0, 1, 400)
    assert r_hat(autoregressive(0.0, 1, 400)) < 1.02 < 1.2 < r_hat(drifting)


def test_chains_that_never_move_agree_only_where_they_stand_at_one_point():
    assert r_hat(np.full((2, 10), 3.0)) == 1.0
    assert ess_bulk(np.full((2, 10), 3.0)) == 20.0
    assert r_hat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf


@pytest.mark.parametrize("draws", [np.zeros((2, 3)), np.zeros(9), np.zeros((2, 9, 3))])
def test_too_few_draws_or_other_shapes_are_refused(draws):
    for diagnostic in (r_hat, ess_bulk, ess_tail):
        with pytest.raises(InputError, match=r"at least 4 draws"):
            diagnostic(draws)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return Samples({
        "log_joint": rng.normal(size=(2, 50)),
        "n_used": rng.integers(2, 4, (2, 50)),
        "occupancy": rng.random((2, 50, 3)),
        "transition": rng.dirichlet(np.ones(3), (2, 50, 3)),
        "initial": rng.dirichlet(np.ones(3), (2, 50)),
        "states": rng.integers(0, 3, (2, 50, 9), dtype=np.uint8),
    })  # fmt: skip


def test_the_summary_leaves_out_what_depends_on_labels_unless_it_is_asked_for(samples):
    summary = samples.summary()
    assert summary.names == ["log_joint", "n_used", "occupancy[0]", "occupancy[1]", "occupancy[2]"]
    assert summary["mean"][1] == pytest.approx(samples["n_used"].mean())
    assert summary["r_hat"][0] == pytest.approx(r_hat(samples["log_joint"]))
    assert samples.summary(["transition"]).names[-1] == "transition[2, 2]"
    lines = repr(summary).splitlines()
    assert lines[0].split() == ["mean", "sd", "5%", "95%", "ess_bulk", "ess_tail", "r_hat"]
    assert len(lines) == 6


def test_the_best_chain_has_the_largest_mean_log_joint(samples):
    assert samples.best_chain == samples["log_joint"].mean(axis=1).argmax()


def test_unknown_names_are_guessed(samples):
    with pytest.raises(KeyError, match="Did you mean 'occupancy'"):
        samples["ocupancy"]
    with pytest.raises(InputError, match="Did you mean 'r_hat'"):
        samples.summary()["rhat"]


def test_arrays_of_different_numbers_of_draws_are_refused():
    with pytest.raises(InputError, match="the same first two axes"):
        Samples({"a": np.zeros((2, 3)), "b": np.zeros((2, 4))})


def test_arviz_reads_them(samples, arviz):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = samples.to_arviz()
    assert set(found.posterior.data_vars) == set(samples) - {"states"}
    assert found.posterior["transition"].dims == ("chain", "draw", "state", "next_state")
    np.testing.assert_array_equal(found.sample_stats["lp"], samples["log_joint"])
    assert float(arviz.rhat(found)["n_used"]) == pytest.approx(r_hat(samples["n_used"]))


def test_arviz_from_version_1_on_is_given_groups(samples, monkeypatch):
    class NewArviz:
        __version__ = "1.2.0"

        @staticmethod
        def from_dict(groups, *, dims):
            return groups, dims

    monkeypatch.setattr("importlib.import_module", lambda name: NewArviz)
    groups, dims = samples.to_arviz()
    assert set(groups) == {"posterior", "sample_stats"}
    assert dims["occupancy"] == ["rank"]


def test_without_arviz_there_is_advice(samples, monkeypatch):
    def nothing(name):
        raise ImportError

    monkeypatch.setattr("importlib.import_module", nothing)
    with pytest.raises(InputError, match="pip install arviz"):
        samples.to_arviz()
