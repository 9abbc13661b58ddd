"""Collapsed runs in shards: any number of threads, files, interruptions; against the incremental order."""

import os
import signal
import warnings

import numpy as np
import pytest
from brief import same
from examples import FAMILIES

from subchain import CVI, HDP, HMM, Categorical, Dirichlet, Gaussian
from subchain.core.components import clone
from subchain.data import Sequences
from subchain.errors import FileFormatError, ImpossibleSequenceError
from subchain.inference.collapsed.visits import Visits
from subchain.structures.chain.collapsed import sharding
from subchain.structures.chain.collapsed.ledger import ChainLedger

LENGTHS = np.random.default_rng(1).integers(1, 12, 400)
CLUSTERS = {
    "sequences": {},
    "sequences together": {"cluster_size": 3},
    "subchains": {"cluster": "subchain", "length": 4},
    "subchains together": {"cluster": "subchain", "length": 4, "cluster_size": 2},
    "states": {"cluster": "state"},
}
pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.fixture(autouse=True)
def many_shards(monkeypatch):
    """Small data have shards too."""
    monkeypatch.setattr(sharding, "LEAST_WORK", 1.0)
    monkeypatch.setattr(sharding, "MOST_SHARDS", 4)
    monkeypatch.setattr(sharding, "FEWEST_ROUNDS", 5)


@pytest.fixture
def ledgers(monkeypatch):
    kept = []
    made = ChainLedger.__init__

    def remember(self, *arguments):
        made(self, *arguments)
        kept.append(self)

    monkeypatch.setattr(ChainLedger, "__init__", remember)
    return kept


def data_of(family):
    return Sequences(FAMILIES[family][1](np.random.default_rng(0), int(LENGTHS.sum())), np.cumsum([0, *LENGTHS]))


def fitted(inference, family="categorical", n_jobs=2, transition=None, data=None, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMM(
            3, clone(FAMILIES[family][0]), transition, inference, init="posteriors", random_state=0, n_jobs=n_jobs,
            progress=False,
        )  # fmt: skip
        return model.fit(data_of(family) if data is None else data, **given)


def shards(**settings):
    return CVI(**{"order": "shards", "max_iter": 4, "tolerance": 0.0} | settings)


def assert_sums_of_shares(ledger):
    before = ledger.current_prior.update(ledger.statistics).arrays()
    ledger.add_up()
    for name, array in ledger.current_prior.update(ledger.statistics).arrays().items():
        assert np.allclose(array, before[name], rtol=1e-9, atol=1e-9), name


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("allowed", [None, {0: [0, 1], 1: [1], 2: [1, 2]}])
def test_threads_change_no_bit_and_shares_add_up_to_the_counts(cluster, allowed, ledgers):
    one, three = (fitted(shards(**CLUSTERS[cluster]), n_jobs=n, allowed=allowed) for n in (1, 3))
    same(one, three)
    assert np.array_equal(one.trace_.objective, three.trace_.objective)
    assert np.array_equal(one.training_marginals_.entries, three.training_marginals_.entries)
    assert ledgers[0].sharding.n_shards == 4
    assert_sums_of_shares(ledgers[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_shards_if_its_counts_are_compiled(family, ledgers):
    one, three = (fitted(shards(), family, n_jobs=n) for n in (1, 3))
    same(one, three)
    assert_sums_of_shares(ledgers[0])
    ledger = ledgers[0]
    assert ledger.is_compiled == (ledger.sharding is not None and ledger.sharding.n_shards == 4)


def test_symbols_with_priors_of_their_own_and_weighted_sequences_have_shards(ledgers):
    data, rng = data_of("categorical"), np.random.default_rng(0)
    n_symbols = int(data.values.max()) + 1
    priors, weights = rng.gamma(2.0, 0.2, n_symbols) + 0.05, rng.integers(1, 4, len(LENGTHS)).astype(float)
    found = [
        HMM(3, Categorical(priors, n_categories=n_symbols), None, shards(), random_state=0, n_jobs=n, progress=False)
        .fit(data, sample_weight=weights)
        for n in (1, 3)
    ]  # fmt: skip
    same(*found)
    assert_sums_of_shares(ledgers[0])


def test_small_data_are_one_shard_which_is_the_incremental_order(monkeypatch, ledgers):
    monkeypatch.setattr(sharding, "LEAST_WORK", 1e9)
    one, other = fitted(shards()), fitted(shards(order="incremental"))
    same(one, other)
    assert ledgers[0].sharding.n_shards == 1


def test_orders_have_the_same_fixed_point():
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(int(LENGTHS.sum())) < 0.2) % 3
    data = Sequences(4.0 * states[:, None] + rng.normal(size=(len(states), 1)), np.cumsum([0, *LENGTHS]))
    models = [
        HMM(3, Gaussian(), Dirichlet(0.5), shards(order=order, max_iter=200), random_state=0, progress=False).fit(data)
        for order in ("incremental", "shards")
    ]
    assert models[1].training_marginals_.entries == pytest.approx(models[0].training_marginals_.entries, abs=1e-8)
    assert models[1].trace_.objective[-1] == pytest.approx(models[0].trace_.objective[-1], rel=1e-10)


def test_hierarchies_learn_in_shards():
    one, three = (fitted(shards(max_iter=7), n_jobs=n, transition=HDP()) for n in (1, 3))
    same(one, three)


@pytest.mark.parametrize("storage", [False, True])
def test_a_pass_that_is_interrupted_between_rounds_is_resumed_to_the_bit(storage, monkeypatch, tmp_path):
    inference = shards(max_iter=6, storage=tmp_path / "shares" if storage else None)
    whole, visit, calls = fitted(inference), sharding.Sharding.visit, 0

    def interrupt(self, cursor, how):
        nonlocal calls
        calls += 1
        if calls == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return visit(self, cursor, how)

    monkeypatch.setattr(sharding.Sharding, "visit", interrupt)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cut = fitted(inference, checkpoint=tmp_path / "checkpoint")
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(cut.trace_.objective) < 6
    resumed = fitted(inference, checkpoint=tmp_path / "checkpoint", resume=True, n_jobs=1)
    same(whole, resumed)
    assert np.array_equal(resumed.training_marginals_.entries, whole.training_marginals_.entries)


def test_a_checkpoint_that_is_no_end_of_a_round_is_refused(monkeypatch, tmp_path):
    memory = ChainLedger.memory.fget
    wrong = property(lambda ledger: memory(ledger) | {"cursor": np.array([3, ledger.iteration])})
    with monkeypatch.context() as patched:
        patched.setattr(ChainLedger, "memory", wrong)
        fitted(shards(), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(FileFormatError, match="no round of the shards begins"):
        fitted(shards(max_iter=6), checkpoint=tmp_path / "checkpoint", resume=True)


def test_a_time_limit_ends_a_pass_between_rounds(monkeypatch):
    deadlines = []
    visited = Visits.visit_all

    def visit_all(self, order):
        self.deadline = 0.0
        visited(self, order)
        deadlines.append(self.ledger.cursor)

    monkeypatch.setattr(Visits, "visit_all", visit_all)
    fitted(shards())
    assert deadlines[0] > 0


def test_impossible_positions_are_named_wherever_they_are():
    data = data_of("categorical")
    legal = [np.ones((length, 3), dtype=bool) for length in LENGTHS]
    legal[301][0] = [True, False, False]
    prior = Dirichlet(1.0, initial=[0.0, 0.5, 0.5])
    with pytest.raises(ImpossibleSequenceError, match="301"):
        fitted(shards(), transition=prior, data=data, allowed=legal)


@pytest.mark.parametrize("sizes", [np.full(1000, 7.0), np.random.default_rng(0).pareto(1.2, 3000) + 1.0, np.ones(40)])
def test_blocks_cover_all_clusters_and_are_two_clusters_apart(sizes):
    n_shards, n_rounds, edges = sharding.divide(sizes, 1e9)
    assert (edges[0], edges[-1], len(edges)) == (0, len(sizes), n_shards * n_rounds + 1)
    assert np.diff(edges).min() >= 2
    if n_shards > 1:
        assert n_rounds >= 2


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("n_symbols", [2, 5])
def test_priors_that_differ_by_symbol_are_those_of_the_symbols(n_symbols, with_gaps, ledgers):
    rng = np.random.default_rng(3)
    x = rng.integers(0, n_symbols, int(LENGTHS.sum()))
    x[rng.random(len(x)) < 0.1 * with_gaps] = -1
    data = Sequences(x, np.cumsum([0, *LENGTHS]))
    emission = Categorical(n_categories=n_symbols, concentration=np.linspace(3000.0, 1.0, n_symbols))
    for order in ("incremental", "shards"):
        HMM(
            3, emission, inference=CVI(order=order, max_iter=40, search=False), init="posteriors", random_state=0,
            n_jobs=2, progress=False,
        ).fit(data)  # fmt: skip
    ours, theirs = (ledger.statistics.emission.counts.sum(axis=1) for ledger in ledgers[::-1])
    np.testing.assert_allclose(ours, theirs)
    scores = [ledger.point.emission.weights for ledger in ledgers]
    np.testing.assert_allclose(np.sort(scores[0], axis=1), np.sort(scores[1], axis=1), atol=0.02)
