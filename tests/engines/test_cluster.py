"""Passes that several processes share give what one process gives, with the same bits for any number of them."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from chains import left_right, sticky

from subchain import EM, HMM, VI, Cluster
from subchain.data import Evidence, Sequences
from subchain.emissions import Categorical, Gaussian
from subchain.engines import Cpu, Part, Surrogate
from subchain.engines.cluster import connection, shards
from subchain.engines.cluster import passes as cluster_passes
from subchain.engines.cluster.shards import Held, MappedRows, divide, rows_of
from subchain.errors import ClusterError, ImpossibleSequenceError, InputError

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of the libraries below
    pytest.mark.skipif(os.name != "posix", reason="starts processes"),
]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Let small data have many shards."""
    monkeypatch.setattr(shards, "WORTH", 1 << 12)
    monkeypatch.setattr(shards, "LEAST", 1 << 10)


def start(n_workers, processes=False):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None, silence_logs=50
    )


@pytest.fixture(scope="module")
def clusters():
    """Engines with one, two and three workers, which are threads of this process."""
    engines = {}
    for n_workers in (1, 2, 3):
        engines[n_workers] = Cluster(distributed.Client(start(n_workers), set_as_default=False))
    yield engines
    for engine in engines.values():
        client = engine.address
        client.cluster.close()
        client.close()


# ---- shards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_shards_hold_every_position_once(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 17, 300, 5000, 40_000], rng.integers(1, 60), p=[0.1, 0.2, 0.3, 0.3, 0.08, 0.02])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    found = divide(offsets, 4)
    assert [shard.start for shard in found[1:]] == [shard.stop for shard in found[:-1]]
    assert (not found and offsets[-1] == 0) or (found[0].start, found[-1].stop) == (0, offsets[-1])
    for shard in found:
        assert offsets[shard.first] <= shard.start < shard.stop <= offsets[shard.last]
        assert shard.begins == bool(shard.start == offsets[shard.first])
        assert shard.ends == bool(shard.stop == offsets[shard.last])
        if shard.is_stretch:
            assert shard.last == shard.first + 1
            assert shard.stop - shard.start >= 512


def test_many_short_sequences_are_divided_evenly():
    found = divide(np.arange(0, 2_000_001, 20), 4)
    sizes = [shard.stop - shard.start for shard in found]
    assert len(found) == shards.MOST
    assert max(sizes) < 1.1 * min(sizes)


@pytest.mark.parametrize("header", ["npy", "raw"])
def test_mapped_rows_are_those_of_the_array(tmp_path, header):
    values = np.random.default_rng(0).normal(size=(5000, 3))
    if header == "npy":
        np.save(tmp_path / "x.npy", values)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    else:
        (tmp_path / "x.raw").write_bytes(b"01234567" + values.tobytes())
        mapped = np.memmap(tmp_path / "x.raw", np.float64, "r", 8, (5000, 3))
    for view in (mapped, mapped[1000:], mapped[1000:][500:]):
        found = rows_of(Sequences(view).values, 300, 1200)
        assert isinstance(found, MappedRows)
        np.testing.assert_array_equal(found.open(), view[300:1200])
    assert isinstance(rows_of(values, 0, 10), np.ndarray)
    assert isinstance(rows_of(mapped[:, :2], 0, 10), np.ndarray)


def test_a_file_that_another_process_does_not_have_is_named(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100))
    rows = rows_of(np.load(tmp_path / "x.npy", mmap_mode="r"), 0, 50)
    np.save(tmp_path / "x.npy", np.arange(90))
    with pytest.raises(InputError, match=r"x.npy has 848 bytes for this process of the cluster, but 928"):
        rows.open()
    os.unlink(tmp_path / "x.npy")
    with pytest.raises(InputError, match=r"x.npy cannot be read by this process of the cluster \(No such file"):
        rows.open()


# ---- passes ----------------------------------------------------------------------------------------------------------


def surrogate_of(matrix, seed=0):
    rng, n_states = np.random.default_rng(seed), len(matrix)
    emission = Categorical.from_parameters(rng.dirichlet(np.ones(6), n_states))
    return Surrogate(rng.dirichlet(np.ones(n_states)), matrix, emission)


def symbols(n, seed=0):
    return np.random.default_rng(seed).integers(0, 6, n)


MIXING = np.random.default_rng(5).dirichlet(np.ones(4), 4)


def cases():
    ragged = np.concatenate(([0], np.cumsum([10, 0, 3000, 9000, 1, 50, 50, 12_000])))
    rng = np.random.default_rng(1)
    legal = np.where(rng.random((24_111, 4)) < 0.1, -3.0, 0.0)
    known = Evidence.build(Sequences(symbols(24_111), ragged), 4, evidence=legal)
    unseen = symbols(30_000)
    unseen[5000:25_000] = -1
    data = Sequences(symbols(24_111), ragged)
    yield "many sequences", surrogate_of(MIXING), Part(Sequences(symbols(40_000), np.arange(0, 40_001, 20)))
    yield "one chain", surrogate_of(MIXING), Part(Sequences(symbols(30_000)))
    yield "ragged, weighed", surrogate_of(MIXING), Part(data, None, rng.random(8) + 0.5)
    yield "evidence", surrogate_of(MIXING), Part(data, known)
    yield "hidden positions", surrogate_of(MIXING), Part(data, None, None, rng.random(24_111) < 0.2)
    yield "left to right", surrogate_of(left_right(4, 0.9995)), Part(Sequences(symbols(30_000)))
    yield "forgets slowly", surrogate_of(sticky(4, 1 - 1e-6)), Part(Sequences(unseen))
    yield "vectors", gaussians(), Part(Sequences(np.random.default_rng(3).normal(size=(20_000, 2))))


def gaussians():
    emission = Gaussian.from_parameters(np.arange(8.0).reshape(4, 2) - 3.0, np.tile(np.eye(2), (4, 1, 1)))
    return Surrogate(np.full(4, 0.25), MIXING, emission)


CASES = {name: (surrogate, part) for name, surrogate, part in cases()}


def same(found, expected, rtol=1e-10):
    for name, array in expected.arrays().items():
        np.testing.assert_allclose(found.arrays()[name], array, rtol=rtol, atol=1e-9)
    assert found.log_normalizer == pytest.approx(expected.log_normalizer, rel=1e-12)
    assert found.n_observations == pytest.approx(expected.n_observations, rel=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_statistics_and_scores_are_those_of_one_process_with_the_same_bits_for_any_number(name, clusters):
    surrogate, part = CASES[name]
    expected, scores = Cpu(1).statistics(surrogate, part), Cpu(1).scores(surrogate, part)
    found = {n: engine.statistics(surrogate, part) for n, engine in clusters.items()}
    assert len(clusters[2]._division.shards) > 5
    same(found[1], expected)
    for n in (2, 3):
        for array, other in zip(found[n].arrays().values(), found[1].arrays().values(), strict=True):
            np.testing.assert_array_equal(array, other)
        assert found[n].log_normalizer == found[1].log_normalizer
    np.testing.assert_allclose(clusters[3].scores(surrogate, part).log_likelihood, scores.log_likelihood, rtol=1e-11)


def test_chains_that_never_forget_get_their_messages_one_after_the_other(clusters, monkeypatch):
    surrogate, part = CASES["forgets slowly"]
    swept = []
    sweep = cluster_passes.Pass._sweep
    monkeypatch.setattr(cluster_passes.Pass, "_sweep", lambda self, found: swept.append(found) or sweep(self, found))
    same(clusters[2].statistics(surrogate, part), Cpu(1).statistics(surrogate, part))
    assert swept == [{0}]


def test_large_statistics_are_added_where_they_are(clusters, monkeypatch):
    surrogate, part = CASES["ragged, weighed"]
    small = clusters[3].statistics(surrogate, part)
    monkeypatch.setattr(cluster_passes, "LARGE", 0)
    large = clusters[3].statistics(surrogate, part)
    for array, other in zip(large.arrays().values(), small.arrays().values(), strict=True):
        np.testing.assert_array_equal(array, other)


def test_sequences_that_underflow_are_run_in_log_space(clusters):
    x = np.random.default_rng(0).normal(size=(20_000, 1))
    x[7000], x[7001] = 90.0, 0.0  # neither state explains both, and one cannot be returned to
    emission = Gaussian.from_parameters([[0.0], [90.0]], np.ones((2, 1, 1)))
    surrogate = Surrogate(np.array([1.0, 0.0]), np.array([[0.999, 0.001], [0.0, 1.0]]), emission)
    for lengths in ([20_000], [5, 15_000, 4995]):
        part = Part(Sequences(x, np.concatenate(([0], np.cumsum(lengths)))))
        same(clusters[2].statistics(surrogate, part), Cpu(1).statistics(surrogate, part))
        expected = Cpu(1).scores(surrogate, part).log_likelihood
        np.testing.assert_allclose(clusters[2].scores(surrogate, part).log_likelihood, expected, rtol=1e-12)


@pytest.mark.parametrize("lengths", [[20_000], [6000, 10, 13_990]])
def test_sequences_without_a_path_are_named(lengths, clusters):
    values = np.zeros(20_000, dtype=np.int64)
    values[6005] = 1
    surrogate = Surrogate(np.full(2, 0.5), np.full((2, 2), 0.5), Categorical.from_parameters([[1.0, 0.0]] * 2))
    part = Part(Sequences(values, np.concatenate(([0], np.cumsum(lengths)))))
    with pytest.raises(ImpossibleSequenceError) as ours:
        Cpu(1).statistics(surrogate, part)
    with pytest.raises(ImpossibleSequenceError) as theirs:
        clusters[2].statistics(surrogate, part)
    assert str(theirs.value) == str(ours.value)
    assert clusters[2].scores(surrogate, part).impossible == Cpu(1).scores(surrogate, part).impossible


@pytest.mark.parametrize("inference", [EM(max_iter=3, tolerance=0.0), VI(max_iter=3, tolerance=0.0)])
def test_a_fit_and_its_uses(inference, clusters, tmp_path):
    np.save(tmp_path / "x.npy", symbols(30_000))
    settings = {"inference": inference, "init": "exponential", "random_state": 0}
    model = HMM(3, Categorical(n_categories=6), engine=clusters[2], **settings).fit(tmp_path / "x.npy")
    alone = HMM(3, Categorical(n_categories=6), **settings).fit(tmp_path / "x.npy")
    np.testing.assert_allclose(model.emission_.probabilities, alone.emission_.probabilities, rtol=1e-9)
    x = symbols(2000, seed=1)
    assert model.score(x) == pytest.approx(alone.score(x), rel=1e-10)
    np.testing.assert_array_equal(model.predict(x), alone.predict(x))
    model.save(tmp_path / "m.safetensors")
    assert HMM.load(tmp_path / "m.safetensors").score(x) == pytest.approx(model.score(x), rel=1e-12)


# ---- processes that are lost, wrong or missing -----------------------------------------------------------------------


def test_a_process_that_is_killed_changes_no_bit():
    surrogate, part = CASES["ragged, weighed"]
    with start(2, processes=True) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        engine = Cluster(client)
        first = engine.statistics(surrogate, part)
        victims = [info["pid"] for info in client.run(lambda: {"pid": os.getpid()}).values()]
        killer = threading.Timer(0.01, os.kill, (victims[0], signal.SIGKILL))
        killer.start()
        until = time.monotonic() + 60
        found = [engine.statistics(surrogate, part) for _ in range(3)]
        while victims[0] in [info["pid"] for info in client.run(lambda: {"pid": os.getpid()}).values()]:
            found.append(engine.statistics(surrogate, part))
            assert time.monotonic() < until
        found.append(engine.statistics(surrogate, part))
        killer.join()
    for statistics in found:
        for array, other in zip(statistics.arrays().values(), first.arrays().values(), strict=True):
            np.testing.assert_array_equal(array, other)


def test_an_address_that_nobody_answers_is_an_error(monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 0.5)
    with pytest.raises(InputError, match=r"no scheduler answers at 'tcp://127.0.0.1:9'"):
        HMM(2, engine=Cluster("tcp://127.0.0.1:9"), inference=EM(max_iter=1)).fit(symbols(100))


@pytest.mark.parametrize("address", ["local:0", "local:many", 7, None])
def test_an_address_that_is_none_is_an_error(address):
    with pytest.raises(InputError, match="must name a number of processes|takes the address of a scheduler"):
        connection.connect(address)


def test_other_versions_are_refused(clusters, monkeypatch):
    found = connection.Connection(clusters[1].address)
    monkeypatch.setattr(
        distributed.Client, "run", lambda *arguments, workers, **settings: dict.fromkeys(workers, ("0.0.9", "x"))
    )
    with pytest.raises(ClusterError, match=r"has subchain 0\.0\.9 with other sources than here"):
        found.workers()


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 0.5)
    cluster = start(0)
    with cluster, distributed.Client(cluster, set_as_default=False) as client, pytest.raises(ClusterError) as caught:
        connection.Connection(client).workers()
    assert "has no workers" in str(caught.value)


def test_what_a_process_holds_is_its_rows_and_a_few_around_them():
    part = Part(Sequences(symbols(30_000)))
    middle = divide(part.data.offsets, 4)[3]
    held = Held.of(part, middle)
    assert len(held.around.data.values) == middle.stop - middle.start + 2 * shards.HALO
    np.testing.assert_array_equal(held.part.data.values, part.data.values[middle.start : middle.stop])
