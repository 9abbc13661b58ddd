"""Concentrations from expected counts: which are learned, that they are the best, and how fits take turns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from subchain import HMM, VI, Categorical, Dirichlet, Gaussian, Product, left_right
from subchain.errors import ConvergenceWarning, InputError, NotFittedError
from subchain.selection import fit_concentrations, learn_concentrations

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning", "ignore:.*was stopped at its")

CHAIN, FIRST, EMISSION = "transition__concentration", "transition__initial_concentration", "emission__concentration"


def simulate(concentration=(0.5, 0.5), n_states=12, n_symbols=15, n_sequences=60, length=200, seed=0):
    """Sequences from chains and tables that were drawn from Dirichlet distributions, with their states."""
    rng = np.random.default_rng(seed)
    first = rng.dirichlet(np.ones(n_states))
    moves = rng.dirichlet(np.full(n_states, concentration[0]), n_states).cumsum(axis=1)
    table = rng.dirichlet(np.full(n_symbols, concentration[1]), n_states).cumsum(axis=1)
    states = np.empty((n_sequences, length), dtype=np.int64)
    states[:, 0] = rng.choice(n_states, n_sequences, p=first)
    for t in range(1, length):
        states[:, t] = (rng.random(n_sequences)[:, None] > moves[states[:, t - 1], :-1]).sum(axis=1)
    return list((rng.random(states.shape)[..., None] > table[states, :-1]).sum(axis=2)), list(states)


def fitted(n_states=3, emission="categorical", max_iter=15, **settings):
    x = [row.astype(np.int64) for row in simulate(n_states=3, n_symbols=6, n_sequences=10, length=30)[0]]
    model = HMM(n_states, emission, inference=VI(max_iter=max_iter), random_state=0, n_jobs=1, **settings)
    return model.fit(x), x


def evidence(counts, concentration):
    n, c = counts, np.broadcast_to(concentration, counts.shape)
    free = c > 0.0
    n = np.where(free, n, 0.0)
    rows = gammaln(c.sum(axis=1)) - gammaln(c.sum(axis=1) + n.sum(axis=1))
    safe = np.where(free, c, 1.0)
    return rows.sum() + (gammaln(safe + n) - gammaln(safe))[free].sum()


def best_number(counts, pattern=1.0, constant=0.0):
    def loss(log):
        return -evidence(counts, np.exp(log) * pattern + constant)

    return np.exp(minimize_scalar(loss, bounds=np.log([1e-4, 1e3]), options={"xatol": 1e-10}).x)


class TestLearning:
    def test_every_concentration_is_the_most_probable(self):
        model, _ = fitted()
        found = learn_concentrations(model)
        counts = model.statistics_
        rows = {CHAIN: counts.pairs, FIRST: counts.initial[None], EMISSION: counts.emission.counts.T}
        assert set(found.settings) == set(rows)
        for name, table in rows.items():
            assert found.settings[name] == pytest.approx(best_number(table), rel=1e-3)
        total = sum(evidence(table, found.settings[name]) for name, table in rows.items())
        assert found.log_evidence == pytest.approx(total)
        before = {CHAIN: 1.0, FIRST: 1.0, EMISSION: 0.1}
        assert found.previous_log_evidence == pytest.approx(sum(evidence(rows[name], before[name]) for name in rows))
        assert not found.not_learned

    @pytest.mark.parametrize("true", [(0.2, 0.05), (1.5, 0.6)])
    def test_concentrations_that_drew_the_model_are_found(self, true):
        x, states = simulate(true, n_states=40)
        model = HMM(40, "categorical", inference=VI(max_iter=1, tolerance=0.0), n_jobs=1).fit(x, states=states)
        found = learn_concentrations(model)
        assert found.settings[CHAIN] == pytest.approx(true[0], rel=0.15)
        assert found.settings[EMISSION] == pytest.approx(true[1], rel=0.15)

    def test_moves_that_cannot_happen_take_no_part_and_stickiness_stays(self):
        model, _ = fitted(transition=Dirichlet(mask=left_right(3), stickiness=2.0, initial=[1.0, 0.0, 0.0]))
        found = learn_concentrations(model)
        possible = np.triu(np.ones((3, 3)))
        expected = best_number(model.statistics_.pairs[:2], possible[:2], 2.0 * np.eye(3)[:2])
        assert found.settings[CHAIN] == pytest.approx(expected, rel=1e-3)
        assert "transition__stickiness" not in found.settings
        assert FIRST in found.not_learned[0]

    def test_an_array_keeps_its_proportions(self):
        pattern = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        model, _ = fitted(emission=Categorical(pattern))
        value = learn_concentrations(model).settings[EMISSION]
        factor = best_number(model.statistics_.emission.counts.T, pattern)
        np.testing.assert_allclose(value, factor * pattern, rtol=1e-3)

    def test_symbols_can_have_concentrations_of_their_own(self):
        model, x = fitted(emission=Categorical(n_categories=8))
        found = learn_concentrations(model, per_symbol=True)
        value = found.settings[EMISSION]
        assert value.shape == (8,)
        np.testing.assert_allclose(value[6:], 1e-4)
        assert any("for 2 of 8 symbols (2 of them never occur)" in remark for remark in found.remarks)
        assert found.log_evidence > learn_concentrations(model).log_evidence
        assert found.apply(model).fit(x).prior_.emission.concentration[:, 0] == pytest.approx(value)

    def test_the_order_of_the_states_does_not_matter(self):
        model, _ = fitted()
        before = learn_concentrations(model).settings
        after = learn_concentrations(model.order_states("dwell")).settings
        assert after == pytest.approx(before, rel=1e-6)

    def test_parts_of_products_that_are_categorical_are_learned_and_others_are_named(self):
        _, x = fitted(max_iter=1)
        table = np.column_stack([np.concatenate(x), np.random.default_rng(0).normal(size=300)])
        emission = Product(word=Categorical(columns=0), pitch=Gaussian(columns=1))
        model = HMM(2, emission, inference=VI(max_iter=5), n_jobs=1, random_state=0).fit((table, [30] * 10))
        found = learn_concentrations(model)
        name = "emission__word__concentration"
        assert set(found.settings) == {CHAIN, FIRST, name}
        assert found.not_learned == [
            "emission__pitch: the prior of Gaussian cannot be learned from counts and is not changed; choose it with "
            "select_priors."
        ]
        assert found.apply(model).emission.families["word"].concentration == found.settings[name]

    def test_one_sequence_says_nothing_of_beginnings(self):
        x = np.concatenate(fitted(max_iter=1)[1])
        found = learn_concentrations(HMM(2, "categorical", random_state=0, n_jobs=1).fit(x))
        assert FIRST not in found.settings
        assert f"{FIRST}: no row has more than one count" in found.not_learned[0]

    @pytest.mark.parametrize(("x", "bound"), [([[0] * 9, [1] * 9] * 5, "lower"), ([[0, 1, 2, 3] * 9] * 5, "upper")])
    def test_counts_without_an_answer_stop_at_a_bound_and_say_so(self, x, bound):
        model = HMM(1 if bound == "upper" else 2, "categorical", random_state=0, n_jobs=1).fit(x)
        with pytest.warns(UserWarning, match=f"{EMISSION} was stopped at its {bound} bound"):
            found = learn_concentrations(model, bounds=(1e-2, 1e2))
        assert found.settings[EMISSION] == pytest.approx(1e-2 if bound == "lower" else 1e2)

    def test_the_model_is_not_changed(self):
        model, x = fitted()
        before = model.get_params(), model.score(x)
        learn_concentrations(model).apply(model)
        assert (model.get_params(), model.score(x)) == before


class TestTakingTurns:
    def test_the_bound_rises_in_every_round(self):
        _, x = fitted(max_iter=1)
        model = HMM(3, "categorical", inference=VI(max_iter=3000, tolerance=1e-12), random_state=0, n_jobs=1)
        found = fit_concentrations(x, model, rounds=40)
        objectives = np.array([turn.objective for turn in found.rounds])
        assert found.converged
        assert np.diff(objectives).min() >= -1e-7 * abs(objectives[-1])
        assert objectives[-1] > objectives[0] + 1.0

    def test_the_end_is_a_fixed_point(self):
        _, x = fitted(max_iter=1)
        model = HMM(3, "categorical", inference=VI(max_iter=500), n_init=2, random_state=0, n_jobs=1)
        found = fit_concentrations(x, model, rounds=40, tolerance=1e-3)
        assert learn_concentrations(found.best_).settings == pytest.approx(found.settings, rel=1e-3)
        assert found.best_.emission.concentration == found.settings[EMISSION]
        assert found.rounds[-1].settings == found.settings
        assert found.best_.init == "auto"

    def test_what_is_known_reaches_the_fits(self):
        x, states = simulate(n_states=4, n_sequences=8, length=30)
        model = HMM(4, "categorical", inference=VI(max_iter=2), random_state=0, n_jobs=1)
        found = fit_concentrations(x, model, states=states)
        beginnings = np.bincount([row[0] for row in states], minlength=4)
        assert found.best_.statistics_.initial == pytest.approx(beginnings)
        assert found.converged
        assert len(found.rounds) == 2  # counts that are known do not move with the concentrations

    def test_symbols_with_concentrations_of_their_own(self):
        _, x = fitted(max_iter=1)
        found = fit_concentrations(x, fitted(max_iter=1)[0], per_symbol=True, rounds=2)
        assert found.best_.prior_.emission.concentration[:, 0] == pytest.approx(found.settings[EMISSION])

    def test_a_search_that_is_cut_short_says_so(self):
        _, x = fitted(max_iter=1)
        with pytest.warns(ConvergenceWarning, match="after 1 rounds the concentrations still change by"):
            found = fit_concentrations(x, fitted(max_iter=1)[0], rounds=1, tolerance=0.0)
        assert not found.converged
        assert len(found.rounds) == 2

    def test_remarks_are_made_once(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = fit_concentrations([[0] * 9, [1] * 9] * 5, HMM(2, "categorical", random_state=0, n_jobs=1))
        assert [str(warning.message) for warning in caught] == found.remarks
        assert found.remarks


class TestMistakes:
    def test_models_without_anything_to_learn(self):
        with pytest.raises(NotFittedError):
            learn_concentrations(HMM(2, "categorical"))
        model = HMM.from_parameters([1.0], [[1.0]], Categorical.from_parameters([[0.5, 0.5]]))
        with pytest.raises(InputError, match="no concentrations to learn. transition: it is frozen or given"):
            learn_concentrations(model)
        normal = HMM(2, "gaussian", random_state=0, n_jobs=1).fit(np.random.default_rng(0).normal(size=50))
        with pytest.raises(InputError, match="per_symbol=True needs a learned categorical emission"):
            learn_concentrations(normal, per_symbol=True)
        assert list(learn_concentrations(normal).settings) == [CHAIN]

    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (1.0,), None, ("a", "b")])
    def test_bounds(self, bounds):
        with pytest.raises(InputError, match="bounds must be two positive numbers"):
            learn_concentrations(fitted(max_iter=1)[0], bounds=bounds)

    def test_em(self):
        with pytest.raises(InputError, match="EM cannot be used here"):
            fit_concentrations([[0, 1]], HMM(2, "categorical", inference="em"))
        with pytest.raises(InputError, match="rounds must be a whole number of at least 1"):
            fit_concentrations([[0, 1]], HMM(2, "categorical"), rounds=0)
