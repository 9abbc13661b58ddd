"""Collapsed runs as a user meets them: what is kept, files, interruption, decoding, bad input."""

import gc
import os
import signal
import threading
import warnings

import numpy as np
import pytest

from subchain import CVI, EM, HMM, VI, Categorical, Dirichlet, Gaussian, Gibbs, TagDictionary
from subchain.data import Sequences, as_sequences
from subchain.errors import ConvergenceWarning, ImpossibleSequenceError, InputError
from subchain.inference.collapsed.visits import Visits
from subchain.structures.chain.collapsed.ledger import ChainLedger


@pytest.fixture(autouse=True)
def _not_converged():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def words(seed=0, n=40, n_symbols=7, longest=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, n)
    states = np.cumsum(rng.random(lengths.sum()) < 0.4) % 3
    values = np.where(rng.random(len(states)) < 0.7, states, rng.integers(0, n_symbols, len(states)))
    return Sequences(values, np.concatenate(([0], np.cumsum(lengths))))


def model(inference, n_states=3, **settings):
    settings = {"init": "posteriors", "random_state": 2, "n_jobs": 1} | settings
    return HMM(n_states, Categorical(0.2, n_categories=7), Dirichlet(0.5), inference, **settings)


@pytest.fixture
def ledgers(monkeypatch):
    kept = []
    made = ChainLedger.__init__

    def remember(self, *arguments):
        made(self, *arguments)
        kept.append(self)

    monkeypatch.setattr(ChainLedger, "__init__", remember)
    return kept


# ---- shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [
    {}, {"order": "shuffled"}, {"order": "batch"}, {"cluster_size": 4}, {"exclude": False},
    {"cluster": "subchain", "length": 3}, {"cluster": "subchain", "length": 3, "cluster_size": 3}, {"cluster": "state"},
])  # fmt: skip
@pytest.mark.parametrize("allowed", [None, {0: [0, 1], 1: [1], 2: [1, 2]}])
def test_stored_shares_add_up_to_the_counts_after_any_number_of_passes(settings, allowed, ledgers):
    data = words()
    model(CVI(max_iter=37, tolerance=0.0, **settings)).fit(data, allowed=allowed)
    ledger = ledgers[0]
    before = ledger.statistics
    ledger.add_up()
    after = ledger.statistics
    for name, array in before.arrays().items():
        assert np.allclose(array, after.arrays()[name], rtol=1e-9, atol=1e-9), name


def test_a_family_with_holes_keeps_its_own_sums(ledgers):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2)) + 4.0 * (np.arange(60) % 3 == 0)[:, None]
    values[rng.random(60) < 0.3, 0] = np.nan
    data = Sequences(values, np.arange(0, 61, 10))
    fitted = HMM(2, Gaussian(), inference=CVI(max_iter=25, tolerance=0.0), random_state=0).fit(data)
    before = ledgers[0].current_prior.update(ledgers[0].statistics).arrays()
    ledgers[0].add_up()  # sums may be about another origin, which makes no difference to the posterior
    for name, array in ledgers[0].current_prior.update(ledgers[0].statistics).arrays().items():
        assert np.allclose(array, before[name], rtol=1e-9, atol=1e-9)
    assert np.isfinite(fitted.score(data))


def test_a_long_sequence_is_cut_if_nothing_else_is_said(ledgers):
    model(CVI(max_iter=2, tolerance=0.0)).fit(np.arange(1000) % 5)
    model(CVI(max_iter=2, tolerance=0.0)).fit([np.arange(10) % 5] * 30)
    assert ledgers[0].clusters.lengths.max() == 10
    assert ledgers[0].clusters.size == 100
    assert ledgers[1].clusters.size == 30


@pytest.mark.parametrize("settings", [
    {"cluster": "sequence"}, {"cluster": "subchain", "length": 300}, {"cluster_size": 500},
    {"cluster": "subchain", "length": 10, "cluster_size": 30},
])  # fmt: skip
def test_data_that_are_one_cluster_are_refused_since_nothing_would_be_left(settings):
    with pytest.raises(InputError, match="nothing is left"):
        model(CVI(**settings)).fit(np.arange(300) % 5)


@pytest.mark.parametrize("cluster", ["sequence", "state"])
@pytest.mark.parametrize("level", [-2000.0, 2000.0])
def test_evidence_of_any_size_is_understood(cluster, level):
    data = words()
    evidence = np.random.default_rng(0).normal(size=(data.n_observations, 3))
    near, far = (
        model(CVI(cluster, max_iter=5, tolerance=0.0)).fit(data, evidence=evidence + shift) for shift in (0.0, level)
    )
    assert np.allclose(near.training_marginals_.entries, far.training_marginals_.entries, atol=1e-9)
    assert far.trace_.objective[-1] - near.trace_.objective[-1] == pytest.approx(level * data.n_observations)
    if cluster == "sequence":
        left_out = far.trace_.measures["left_out"][-1] - near.trace_.measures["left_out"][-1]
        assert left_out == pytest.approx(level * data.n_observations)


@pytest.mark.parametrize("concentration", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("cluster", ["sequence", "state"])
def test_sparse_priors_have_an_objective(concentration, cluster):
    data = words(n=6)
    inference = CVI(cluster, max_iter=30, tolerance=0.0)
    prior = Dirichlet(concentration, initial_concentration=concentration)
    fitted = HMM(3, Categorical(0.1, n_categories=7), prior, inference, random_state=0).fit(data)
    assert np.isfinite(fitted.trace_.objective).all()


@pytest.mark.parametrize("init", ["exponential", "posteriors"])
@pytest.mark.parametrize("order", ["shuffled", "batch"])
@pytest.mark.parametrize("known", [{}, {"allowed": {2: [1]}}], ids=["", "listed"])
def test_single_states_never_begin_where_a_sequence_cannot(init, order, known):
    data = [np.append(0, piece) for piece in words()]
    run = model(CVI("state", order=order, max_iter=4, tolerance=0.0), init=init)
    run.set_params(transition=Dirichlet(initial=[0.5, 0.0, 0.5])).fit(data, **known)
    assert np.isfinite(run.trace_.objective).all()
    assert run.statistics_.initial[1] == 0.0
    assert run.statistics_.initial.sum() == pytest.approx(len(data))


@pytest.mark.parametrize("order", ["incremental", "shuffled", "batch"])
def test_single_states_of_sequences_that_all_begin_in_one_state_have_a_finite_objective(order):
    data = words()
    run = model(CVI("state", order=order, max_iter=8, tolerance=0.0), n_states=2)
    run.set_params(transition=Dirichlet(initial=[1, 0])).fit(data)
    assert np.isfinite(run.trace_.objective).all()
    assert run.initial_.tolist() == [1.0, 0.0]
    assert run.statistics_.initial == pytest.approx([np.count_nonzero(data.lengths), 0.0])


@pytest.mark.parametrize("init", ["posteriors", "states"])
def test_local_starts_know_holes(init):
    values = np.random.default_rng(0).normal(size=(60, 2))
    values[::7, 1] = np.nan
    data = Sequences(values, np.arange(0, 61, 10))
    fitted = HMM(2, Gaussian(), inference=CVI(max_iter=4, tolerance=0.0), init=init, random_state=0).fit(data)
    assert np.isfinite(fitted.score(data))


@pytest.mark.parametrize("cluster", ["sequence", "subchain"])
@pytest.mark.parametrize("known", [{}, {"allowed": {2: [2]}}, {"evidence": True}], ids=["", "listed", "evidence"])
def test_drawn_posteriors_know_the_mask(cluster, known, ledgers):
    data, mask = words(), np.triu(np.ones((3, 3), dtype=bool))
    if "evidence" in known:
        known = {"evidence": [np.tile([0.0, 0.5, 1.0], (length, 1)) for length in data.lengths]}
    run = model(CVI(cluster, length=2 if cluster == "subchain" else None, max_iter=1, tolerance=0.0))
    run.set_params(transition=Dirichlet(0.5, mask=mask)).fit(data, **known)
    ledger = ledgers[0]
    ledger.draw("posteriors", 0)
    assert (ledger.chain.pairs[~mask] == 0.0).all()
    assert (run.statistics_.pairs[~mask] == 0.0).all()


def test_impossible_data_are_named_as_such():
    with pytest.raises(ImpossibleSequenceError):
        HMM(2, "categorical", Dirichlet(initial=[1.0, 0.0]), CVI("sequence")).fit([[0, 1]] * 4, states=[[1, 0]] * 4)


def test_what_clusters_are_worth_to_the_others_is_told_where_it_is_a_probability():
    data = words()
    told = model(CVI("sequence", max_iter=2, tolerance=0.0)).fit(data).trace_.measures["left_out"]
    raw = model(CVI("state", max_iter=2, tolerance=0.0)).fit(data).trace_.measures["left_out"]
    assert np.isfinite(told).all()
    assert np.isnan(raw).all()


def test_a_time_limit_is_kept_inside_a_pass():
    n = 600_000
    data = Sequences(np.random.default_rng(0).normal(size=(n, 1)), np.arange(0, n + 1, 10))
    HMM(2, Gaussian(), inference=CVI("state", max_iter=1), random_state=0).fit(data)  # compiles
    fitted = HMM(2, Gaussian(), inference=CVI("state", time_limit=0.01, tolerance=0.0), random_state=0).fit(data)
    assert fitted.status_ == "time_limit"
    assert fitted.trace_.seconds[-1] < 5.0


# ---- decoding --------------------------------------------------------------------------------------------------------


def test_the_training_data_are_decoded_with_the_beliefs_of_the_run():
    data = words()
    fitted = model(CVI(max_iter=8, tolerance=0.0)).fit(data)
    marginals = np.concatenate(fitted.predict_proba(data))
    assert np.array_equal(marginals, fitted.training_marginals_.table(0, data.n_observations).T)
    assert np.array_equal(np.concatenate(fitted.predict(data)), marginals.argmax(axis=1))
    by_parameters = np.concatenate(fitted.predict_proba(data[:-1]))
    assert not np.allclose(by_parameters, marginals[: len(by_parameters)], atol=1e-3)


def test_fit_predict_is_fit_and_then_predict():
    data = words()
    for algorithm in (VI(max_iter=5), CVI(max_iter=5)):
        at_once = model(algorithm, init="exponential").fit_predict(data)
        one_by_one = model(algorithm, init="exponential").fit(data).predict(data)
        assert all(np.array_equal(a, b) for a, b in zip(at_once, one_by_one, strict=True))


def test_what_was_told_to_a_run_does_not_come_back_as_if_it_were_found():
    data = words()
    states = np.random.default_rng(0).integers(0, 3, data.n_observations)
    fitted = model(CVI(max_iter=5, tolerance=0.0)).fit(data, states=states)
    assert np.array_equal(np.concatenate(fitted.predict(data, states=states)), states)
    assert np.mean(np.concatenate(fitted.predict(data)) == states) < 0.8
    told = np.concatenate(fitted.predict_proba(data, states=np.zeros(data.n_observations, dtype=int)))
    assert np.allclose(told[:, 0], 1.0)


@pytest.mark.parametrize("algorithm", [VI(max_iter=3), CVI(max_iter=3)])
def test_fit_predict_keeps_to_what_is_known(algorithm):
    data = words()
    allowed = {0: [0, 1], 1: [1], 2: [2], 3: [0]}
    states = np.concatenate(model(algorithm).fit_predict(data, allowed=allowed))
    for symbol, legal in allowed.items():
        assert np.isin(states[data.values == symbol], legal).all()


def test_all_ways_of_asking_for_beliefs_agree():
    data = words()
    fitted = model(CVI(max_iter=8, tolerance=0.0)).fit(data)
    blocks = np.concatenate([block for _, block in fitted.predict_proba_blocks(data, block=5)])
    assert np.array_equal(blocks, np.concatenate(fitted.predict_proba(data)))
    narrow = Sequences(data.values.astype(np.uint8), data.offsets)
    assert np.array_equal(np.concatenate(fitted.predict_proba(narrow)), blocks)


def test_beliefs_follow_the_order_of_the_states_and_go_into_files(tmp_path):
    data = words()
    for allowed in (None, {0: [0, 2], 1: [1]}):
        fitted = model(CVI(max_iter=5, tolerance=0.0)).fit(data, allowed=allowed)
        before = np.concatenate(fitted.predict_proba(data, allowed=allowed))
        order = np.argsort(-fitted.state_occupancy_, kind="stable")
        fitted.order_states(by="occupancy")
        assert np.array_equal(fitted.training_marginals_.table(0, data.n_observations).T, before[:, order])
        fitted.save(tmp_path / "with")
        fitted.save(tmp_path / "without", marginals=False)
        loaded = HMM.load(tmp_path / "with")
        assert np.array_equal(loaded.training_marginals_.table(0, data.n_observations).T, before[:, order])
        if allowed is None:
            assert np.array_equal(np.concatenate(loaded.predict_proba(data)), before[:, order])
        assert HMM.load(tmp_path / "without").training_marginals_ is None


def test_learning_on_makes_stored_beliefs_void():
    data = words()
    fitted = model(CVI(max_iter=5, tolerance=0.0)).fit(data)
    fitted.partial_fit(words(seed=1))
    assert fitted.training_marginals_ is None


# ---- files and interruption ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"cluster": "subchain", "length": 4, "order": "batch"}, {"cluster_size": 3}])
def test_beliefs_in_files_change_nothing(settings, tmp_path):
    data = words()
    in_memory = model(CVI(max_iter=6, tolerance=0.0, **settings)).fit(data)
    on_disk = model(CVI(max_iter=6, tolerance=0.0, storage=tmp_path / "shares", **settings), n_init=2).fit(data)
    again = model(CVI(max_iter=6, tolerance=0.0, **settings), n_init=2).fit(data)
    assert np.array_equal(on_disk.transition_, again.transition_)
    assert in_memory.training_marginals_ is not None
    assert list((tmp_path / "shares").glob("*.shares"))
    assert np.array_equal(np.concatenate(on_disk.predict_proba(data)), np.concatenate(again.predict_proba(data)))


def test_fits_that_share_a_folder_leave_each_other_alone(tmp_path):
    one, other = words(), words(seed=5, n=10)
    inference = CVI(max_iter=3, tolerance=0.0, storage=tmp_path)
    first = model(inference).fit(one)
    before = np.array(first.training_marginals_.entries)
    model(inference).fit(other)
    model(inference).fit(Sequences(one.values[::-1].copy(), one.offsets))
    assert np.array_equal(first.training_marginals_.entries, before)


def test_a_resumed_fit_takes_its_own_beliefs_out_of_a_shared_folder(tmp_path):
    one = words()
    other = Sequences(one.values[::-1].copy(), one.offsets)

    def fit(data, passes, name, **arguments):
        inference = CVI(max_iter=passes, tolerance=0.0, storage=tmp_path / "shares")
        return model(inference).fit(data, checkpoint=tmp_path / name, **arguments)

    fit(one, 4, "one")
    fit(other, 4, "other")
    resumed = fit(one, 8, "one", resume=True)
    assert np.array_equal(resumed.transition_, fit(one, 8, "whole").transition_)
    assert not list((tmp_path / "shares").glob("*.new"))


def test_a_copy_that_has_gone_is_named(tmp_path):
    inference = CVI(max_iter=4, tolerance=0.0, storage=tmp_path / "shares")
    model(inference).fit(words(), checkpoint=tmp_path / "checkpoint")
    for path in (tmp_path / "shares").glob("*.copy"):
        path.unlink()
    longer = CVI(max_iter=8, tolerance=0.0, storage=tmp_path / "shares")
    with pytest.raises(InputError, match="is missing, which the checkpoint needs"):
        model(longer).fit(words(), checkpoint=tmp_path / "checkpoint", resume=True)


def test_files_of_killed_runs_are_removed_and_no_others(tmp_path):
    folder = tmp_path / "shares"
    inference = CVI(max_iter=4, tolerance=0.0, storage=folder)
    model(inference).fit(words(), checkpoint=tmp_path / "checkpoint")
    gc.collect()  # ends the run
    (copy,) = folder.glob("*.copy")
    run = copy.name[:10]
    unreferenced = folder / f"{run}00ffff.copy"
    dead = [folder / name for name in ("subchain-1234567890.shares", "subchain-1234567890.shares.new")]
    dead.append(folder / "1234567890000001.partial")
    others = [folder / name for name in ("1234567890abcdef.shares", "1234567890000001.copy", "notes.partial")]
    for path in (unreferenced, *dead, *others):
        path.write_bytes(b"")
    alive = model(inference).fit(words(seed=3))
    assert not any(path.exists() for path in dead)
    assert all(path.exists() for path in (copy, unreferenced, *others))
    model(CVI(max_iter=8, tolerance=0.0, storage=folder)).fit(words(), checkpoint=tmp_path / "checkpoint", resume=True)
    assert not unreferenced.exists()
    assert all(path.exists() for path in others)
    assert alive.training_marginals_ is not None


@pytest.mark.parametrize("storage", [False, True])
def test_a_run_that_is_killed_goes_on_where_it_was(storage, tmp_path, monkeypatch):
    from subchain.inference.run.checkpoint import Checkpoint

    data, saved = words(), Checkpoint.save
    folder = tmp_path / "shares" if storage else None

    class Killed(Exception):
        pass

    def fit(**arguments):
        return model(CVI(max_iter=9, tolerance=0.0, order="shuffled", storage=folder), n_init=2).fit(data, **arguments)

    whole = fit()
    calls = 0

    def save_and_die(self, journey, *, force=False):
        nonlocal calls
        saved(self, journey, force=True)
        calls += 1
        if calls == 5:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", save_and_die)
    with pytest.raises(Killed):
        fit(checkpoint=tmp_path / "checkpoint")
    monkeypatch.setattr(Checkpoint, "save", saved)
    resumed = fit(checkpoint=tmp_path / "checkpoint", resume=True)
    assert np.array_equal(resumed.transition_, whole.transition_)
    assert np.array_equal(resumed.training_marginals_.entries, whole.training_marginals_.entries)


@pytest.mark.parametrize("order", ["incremental", "batch"])
def test_an_interrupted_pass_leaves_counts_and_shares_that_agree(order, monkeypatch, tmp_path):
    data = words(n=60)
    visited = Visits.visit_all
    passes = 0

    def interrupt(self, clusters):
        nonlocal passes
        passes += 1
        visitor, calls = self.ledger.visitor, 0
        visit, visitor.at_once = visitor.visit, 10

        def counting(some, **how):
            nonlocal calls
            calls += 1
            if passes == 4 and calls == 3:
                os.kill(os.getpid(), signal.SIGINT)
            visit(some, **how)

        visitor.visit = counting
        visited(self, clusters)
        visitor.visit = visit

    def fit(**arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model(CVI(max_iter=8, tolerance=0.0, order=order)).fit(data, **arguments)

    whole = fit()
    monkeypatch.setattr(Visits, "visit_all", interrupt)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert threading.current_thread() is threading.main_thread()
        cut = fit(checkpoint=tmp_path / "checkpoint")
    finally:
        signal.signal(signal.SIGINT, previous)
        monkeypatch.setattr(Visits, "visit_all", visited)
    assert cut.status_ == "interrupted"
    resumed = fit(checkpoint=tmp_path / "checkpoint", resume=True)
    assert np.array_equal(resumed.transition_, whole.transition_)


def test_a_schedule_that_is_a_function_goes_into_files_as_temperatures(tmp_path):
    gibbs = Gibbs(n_samples=4, burn_in=5, n_chains=1, annealing=lambda share: 2.0 - share)
    model(gibbs).fit(words(n=5)).save(tmp_path / "model")
    assert np.allclose(HMM.load(tmp_path / "model").inference.temperatures(), gibbs.temperatures())


# ---- supervision -----------------------------------------------------------------------------------------------------


def test_known_states_are_counted_as_they_are():
    data = words()
    states = np.random.default_rng(0).integers(0, 3, data.n_observations)
    fitted = model(CVI(max_iter=3, tolerance=0.0)).fit(data, states=states)
    counts = np.zeros((7, 3))
    np.add.at(counts, (data.values, states), 1.0)
    assert np.allclose(fitted.statistics_.emission.counts, counts)


@pytest.mark.parametrize("algorithm", [EM(max_iter=5), VI(max_iter=5), CVI(max_iter=5), CVI("state", max_iter=5)])
def test_a_dictionary_holds_for_every_algorithm(algorithm):
    text = as_sequences([["the", "dog", "runs"], ["a", "dog"], ["the", "run"], ["runs", "a", "dog"]] * 3)
    tags = TagDictionary({"the": ["D"], "a": ["D"], "dog": ["N"], "run": ["N", "V"], "runs": ["N", "V"]})
    fitted = HMM(3, "categorical", inference=algorithm, init="posteriors", random_state=0).fit(text, allowed=tags)
    legal = tags.legal(text.vocabulary)
    states = np.concatenate(fitted.predict(text, allowed=tags))
    assert legal[text.values, states].all()
    assert (fitted.statistics_.emission.counts[~legal] == 0.0).all()


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "message"), [
    ({"cluster": "word"}, "cluster 'word'"),
    ({"order": "random"}, "order 'random'"),
    ({"neighbour_weighting": "x"}, "neighbour_weighting 'x'"),
    ({"cluster": "subchain"}, "needs length="),
    ({"cluster": "subchain", "length": 0}, "length must be a whole number of at least 1"),
    ({"cluster": "subchain", "length": 100}, "the longest sequence has 11 positions"),
    ({"length": 5}, "length=5 is for cluster='subchain'"),
    ({"cluster_size": 0}, "cluster_size must be a whole number"),
    ({"cluster_size": 2, "order": "batch"}, "cluster_size=2 is for"),
    ({"cluster": "state", "cluster_size": 2}, "cluster_size=2 is for"),
    ({"cluster": "state", "neighbour_weighting": "probabilities"}, "goes with corrections=False"),
    ({"max_iter": 0}, "max_iter must be"),
    ({"exclude": "no"}, "exclude must be True or False"),
    ({"cluster": "sequence", "neighbour_weighting": "counts"}, "whole sequences have no neighbours"),
    ({"cluster": "sequence", "corrections": False}, "corrections=False is for"),
])  # fmt: skip
def test_wrong_settings_are_refused_in_words(settings, message):
    with pytest.raises(InputError, match=message):
        model(CVI(**settings)).fit(words())


def test_single_states_with_fixed_moves_are_refused():
    with pytest.raises(InputError, match="cluster='sequence'"):
        HMM(2, "categorical", Dirichlet(mask=[[1, 1], [0, 1]]), CVI("state")).fit([[0, 1, 0], [1, 0]])


@pytest.mark.parametrize("settings", [
    {"cluster": "subchain", "length": 5, "neighbour_weighting": "counts"}, {"cluster": "state", "corrections": False},
])  # fmt: skip
def test_frozen_moves_have_no_counts_to_weigh_by(settings):
    start = model(VI(max_iter=1)).fit(words())
    frozen = HMM(3, Categorical(0.2, n_categories=7), Dirichlet(frozen=True), CVI(max_iter=2, **settings), init=start)
    with pytest.raises(InputError, match="neighbour_weighting='probabilities'"):
        frozen.fit(words())
    frozen.inference.set_params(neighbour_weighting="probabilities")
    assert np.array_equal(frozen.fit(words()).transition_, start.transition_)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot hold"):
        model(CVI(storage=tmp_path / "file")).fit(words())
