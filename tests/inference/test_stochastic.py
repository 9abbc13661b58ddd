"""SVI, SCVI and online EM: one update by hand, limits, and models that are found."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from stochastic_examples import BOUNDARIES, text, words

from subchain import EM, HMM, SCVI, SVI, VI, Buffer, GrowBuffer, Guards, HoldOut, as_sequences
from subchain.datasets import bernoulli_chain, categorical_chain, gaussian_chain, poisson_chain
from subchain.engines.subchains import Grid
from subchain.errors import InputError
from subchain.inference.em import OnlineEM
from subchain.inference.stochastic.updates import Updates
from subchain.structures.chain.fused_updates import FusedUpdates


@pytest.mark.parametrize("algorithm", [SVI, SCVI])
def test_one_update_by_hand(algorithm: type[SVI], monkeypatch: pytest.MonkeyPatch) -> None:
    """S ← (1 − ρ) S + ρ · scale · (what plain forward-backward says of the drawn subchains)."""
    x = text(200)
    drawn: list[Any] = []
    original = Grid.batch
    monkeypatch.setattr(Grid, "batch", lambda self, *given: drawn.append(original(self, *given)) or drawn[-1])
    monkeypatch.setattr(FusedUpdates, "_can_run", lambda self, batches: False)  # which draws by itself
    starts: list[Any] = []
    moved = Updates.__init__

    def remember(self: Any, problem: Any, chosen: Any, state: Any) -> None:
        moved(self, problem, chosen, state)
        starts.append((problem, state.statistics))

    monkeypatch.setattr(Updates, "__init__", remember)
    length, size, delay, forgetting = 5, 4, 2.0, 0.7
    inference = algorithm(length, size, "stationary", delay, forgetting, max_updates=1)
    model = words(inference).fit(x)
    (problem, before), batch = starts[0], drawn[0]
    posterior = problem.prior.update(before)
    surrogate = posterior.expected_log() if algorithm is SVI else posterior.predictive()
    mean = posterior.mean().chain.transition
    stationary = np.linalg.matrix_power(mean, 10_000)[0]
    initial, pairs, counts = np.zeros(3), np.zeros((3, 3)), np.zeros((7, 3))
    for start in batch.starts:
        symbols = x[start : start + length]
        first = surrogate.initial if start == 0 else stationary
        logs = surrogate.emission.log_likelihood(symbols).T
        found = naive.marginals(logs, first, surrogate.transition)
        initial += found.smoothed[0] * (start == 0)
        pairs += found.pairs
        np.add.at(counts, symbols, found.smoothed)
    rate = (delay + 1.0) ** -forgetting
    scale = 200 / length / size
    found = model.statistics_
    np.testing.assert_allclose(found.initial, (1 - rate) * before.initial + rate * scale * initial)
    expected = (1 - rate) * before.pairs + rate * 199 / (size * (length - 1)) * pairs
    np.testing.assert_allclose(found.pairs, expected, rtol=1e-8)
    np.testing.assert_allclose(
        found.emission.arrays()["counts"], (1 - rate) * before.emission.counts + rate * scale * counts, rtol=1e-8
    )


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("algorithm", [SVI, SCVI])
@pytest.mark.parametrize("lengths", [None, [150, 3, 40, 1, 90]])
def test_every_boundary_with_every_algorithm(algorithm: type[SVI], boundary: str, lengths: Any) -> None:
    x = categorical_chain(None if lengths else 300, n_states=3, n_symbols=7, lengths=lengths, random_state=2)
    inference = algorithm(length=6, batch=9, boundary=BOUNDARIES[boundary], max_updates=30, report_every=10)
    fitted = words(inference).fit(x.observations)
    assert len(fitted.trace_) == 3
    assert fitted.trace_.measures["updates"] == [10, 20, 30]
    assert ("growth" in fitted.trace_.measures) == (boundary in ("buffer", "growing"))
    assert fitted.point_.not_finite() is None
    twin = words(inference).set_params(n_jobs=2).fit(x.observations)
    assert np.array_equal(fitted.transition_, twin.transition_)


CHAINS = {
    "categorical": categorical_chain(30_000, 3, 9, stickiness=0.7, concentration=0.2, random_state=1),
    "gaussian": gaussian_chain(30_000, n_states=3, n_features=2, stickiness=0.7, random_state=1),
    "poisson": poisson_chain(30_000, n_states=3, n_features=2, stickiness=0.7, random_state=1),
    "bernoulli": bernoulli_chain(30_000, n_states=3, n_features=12, stickiness=0.7, random_state=1),
}


FINDERS = {
    "svi": lambda **limits: SVI(length=50, batch=40, boundary=Buffer(10), **limits),
    "svi growing": lambda **limits: SVI(length=50, batch=40, boundary=GrowBuffer(1e-4), **limits),
    "scvi": lambda **limits: SCVI(length=20, batch=100, boundary=Guards(), **limits),
    "online em": lambda **limits: EM(length=50, batch=40, boundary=Buffer(10), **limits),
    "anywhere": lambda **limits: SVI(length=50, batch=40, starts="anywhere", **limits),
}


@pytest.mark.parametrize("family", CHAINS)
@pytest.mark.parametrize("finder", FINDERS)
def test_the_score_of_batch_inference_is_reached(family: str, finder: str) -> None:
    chain = CHAINS[family]
    settings: dict[str, Any] = {"emission": family, "random_state": 3, "n_init": 3}
    batch = HMM(3, inference=VI(max_iter=100, tolerance=1e-5), **settings).fit(chain.observations)
    found = HMM(3, inference=FINDERS[finder](max_updates=300), **settings).fit(chain.observations)
    score = [model.score(chain.observations) / 30_000 for model in (batch, found)]
    assert score[1] > score[0] - 0.01


class TestLimits:
    def test_passes(self) -> None:
        fitted = words(SVI(length=10, batch=20, max_passes=3, report_every=5)).fit(text())
        assert fitted.trace_.measures["updates"][-1] == 30
        assert fitted.status_ == "completed"

    def test_updates_that_are_no_multiple_of_a_report(self) -> None:
        fitted = words(SVI(length=10, batch=2, max_updates=23, report_every=10)).fit(text())
        assert fitted.trace_.measures["updates"] == [10, 20, 23]

    def test_time(self) -> None:
        fitted = words(SVI(length=10, batch=2, max_updates=10**9, time_limit=0.2, report_every=10)).fit(text())
        assert fitted.status_ == "time_limit"

    def test_a_held_out_score_that_improves_no_more(self) -> None:
        fitted = words(SVI(length=10, batch=20, patience=3, report_every=5)).fit(text(), validation=text(500, seed=9))
        assert fitted.status_ == "stopped_improving"

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"length": 1}, "length must be a whole number of at least 2"),
            ({"length": 3000}, "longest sequence has 2000"),
            ({"batch": 0}, "batch"),
            ({"boundary": "guard"}, "Did you mean 'guards'"),
            ({"boundary": Buffer(-1)}, "size"),
            ({"boundary": Buffer(5000)}, "cannot fit"),
            ({"max_passes": np.inf}, "max_passes"),
            ({"time_limit": "a"}, "time_limit"),
            ({"patience": "a"}, "patience"),
            ({"boundary": Guards("beliefs")}, "store of Guards"),
            ({"boundary": GrowBuffer(tolerance=0.0)}, "tolerance"),
            ({"starts": "everywhere"}, "anywhere"),
            ({"starts": "anywhere", "length": 5, "boundary": Guards()}, "grid"),
            ({"max_passes": 0}, "max_passes"),
            ({"report_every": 0}, "report_every"),
            ({"delay": -1.0}, "delay"),
        ],
    )
    def test_settings_out_of_range_are_named(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            words(SVI(**{"length": 10} | settings)).fit(text())

    @pytest.mark.parametrize("forgetting", [0.3, 1.2])
    def test_a_rate_that_forgets_too_slowly_or_too_fast(self, forgetting: float) -> None:
        with pytest.warns(UserWarning, match="forgetting"):
            words(SVI(length=10, forgetting=forgetting, max_updates=1)).fit(text())


def test_a_model_to_start_from_is_not_forgotten_at_the_first_update() -> None:
    x = text(20_000)
    start = words(VI(max_iter=60, tolerance=0.0)).fit(x)
    fitted = words(SVI(length=10, batch=20, max_updates=20), init=start).fit(x)
    np.testing.assert_allclose(fitted.transition_, start.transition_, atol=0.1)


def test_averages_are_steadier_than_last_iterates() -> None:
    x = text(20_000)
    start = words(VI(max_iter=60, tolerance=0.0)).fit(x)
    settings: dict[str, Any] = {"length": 10, "batch": 5, "max_updates": 400, "report_every": 10, "forgetting": 0.5}
    scores = {
        average: [
            words(SVI(**settings, average=average), init=start, random_state=seed).fit(x).score(x) for seed in range(4)
        ]
        for average in (False, True)
    }
    assert np.std(scores[True]) < np.std(scores[False])
    assert np.mean(scores[True]) > np.mean(scores[False])


class TestHoldOut:
    def test_the_score_is_that_of_the_held_out_words_given_all_others(self) -> None:
        x = text(600)
        held = HoldOut(0.1, random_state=3)
        fitted = words(VI(max_iter=5, tolerance=0.0)).fit(x, validation=held)
        at = held.positions(as_sequences(x))
        masked = x.copy()
        masked[at] = -1
        marginals = fitted.predict_proba(masked)[at]
        expected = np.log((marginals * fitted.emission_.probabilities[:, x[at]].T).sum(axis=1)).mean()  # type: ignore[attr-defined]
        assert fitted.trace_.validation[-1] == pytest.approx(expected)

    def test_what_was_never_observed_is_not_held_out(self) -> None:
        x = text(600)
        x[::2] = -1
        mask = np.zeros(600, dtype=np.bool_)
        mask[:100] = True
        one = words(VI(max_iter=3, tolerance=0.0)).fit(x, validation=HoldOut(mask))
        mask[::2] = False
        other = words(VI(max_iter=3, tolerance=0.0)).fit(x, validation=HoldOut(mask))
        assert one.trace_.validation == other.trace_.validation
        with pytest.raises(InputError, match="only positions with missing observations"):
            words(VI()).fit(x, validation=HoldOut(x == -1))

    @pytest.mark.parametrize("what", [0.0, 1.5, "a", None, np.ones(3, dtype=np.bool_), np.zeros(600, dtype=np.bool_)])
    def test_shares_and_masks_that_make_no_sense(self, what: Any) -> None:
        with pytest.raises(InputError, match="HoldOut"):
            words(VI()).fit(text(600), validation=HoldOut(what))

    @pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
    def test_every_family(self, family: str) -> None:
        x = CHAINS[family].observations.values[:500]
        fitted = HMM(3, family, inference=VI(max_iter=3, tolerance=0.0)).fit(x, validation=HoldOut(0.2))
        assert np.isfinite(fitted.trace_.validation).all()


def test_patience_without_validation_data_ends() -> None:
    fitted = words(SVI(length=20, batch=50, patience=2)).fit(text())
    assert fitted.status_ == "completed"


def test_time_is_looked_at_between_reports() -> None:
    fitted = words(
        SVI(length=4, batch=3, boundary=GrowBuffer(), max_updates=10**9, time_limit=0.3, report_every=10**9)
    ).fit(text())
    assert fitted.status_ == "time_limit"


def test_no_delay_is_no_reason_to_fail() -> None:
    fitted = words(SVI(length=3, batch=600, delay=0.0, max_updates=5)).fit(text())
    assert fitted.point_.not_finite() is None


def test_settings_of_minibatches_are_refused_without_minibatches() -> None:
    with pytest.raises(InputError, match="length=10 is for minibatches"):
        words(EM(length=10)).fit(text())


def test_em_and_its_online_form_agree_on_what_is_left_open() -> None:
    ours, online = EM().get_params(deep=False), OnlineEM().get_params(deep=False)
    assert all(ours[name] == online[name] for name in ours.keys() & online.keys())
    assert type(EM(batch=3, length=5)) is OnlineEM
    assert repr(EM(batch=3, length=5)) == "EM(length=5, batch=3)"
    assert EM(length="auto").get_params() == EM().get_params()  # as files of old versions have it
    with pytest.raises(InputError, match="is for minibatches"):
        EM(length=5)
    with pytest.raises(InputError, match="setting of EM"):
        EM(max_iters=5)
    for settings in ((5,), {"max_iter": 5}, {"tolerance": 1e-3}):
        with pytest.raises(InputError, match="use max_updates or max_passes"):
            EM(*settings, batch=3) if isinstance(settings, tuple) else EM(**settings, batch=3)


def test_restarts_are_compared_by_the_same_excerpt() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(4.0 * (np.cumsum(rng.random(30_000) < 0.02) % 3), 1.0)
    model = HMM(3, "gaussian", inference=SVI(max_updates=60), n_init=4, random_state=0).fit(x)
    worth = [run.objective for run in model.runs_]
    alone = [
        HMM(3, "gaussian", inference=SVI(max_updates=60), n_init=n, random_state=0).fit(x).score(x) for n in range(1, 5)
    ]
    best = int(np.argmax(worth))
    assert alone[best:] == [alone[-1]] * (4 - best)  # nothing that came after it took its place
    assert abs(max(worth) - max(alone) / len(x)) < 0.1
    assert np.ptp(worth) < 0.005  # these restarts are alike, and what their minibatches were does not matter
