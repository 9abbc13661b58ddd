"""Files with a valid checksum and contents out of range: one error that names the file, the entry and what is wrong."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
from fuzz.files import HEADER, packed, subjects, unpacked
from safetensors.numpy import load

from subchain import EM, HMM
from subchain.core.ranges import COVARIANCES, POSITIVE, RANKS, SCATTERS, STATES, Range, probabilities
from subchain.core.records import Record, array, number, states_on
from subchain.core.stored_records import RecordReader
from subchain.errors import ConvergenceWarning, FileFormatError, InferenceError
from subchain.grammar import PCFG


def written(name):
    (found,) = (subject for subject in subjects() if subject.name == name)
    return found, *unpacked(found)


def entry(value):
    """A change of the first entry of an array."""

    def change(given):
        changed = given.copy()
        changed.flat[0] = value
        return changed

    return change


def whole(value):
    return lambda given: np.full_like(given, value)


MODELS = [
    ("em categorical", "point_.chain.transition", entry(0.0), "hold.* probabilities that sum to"),
    ("em categorical", "point_.emission.weights", entry(-0.1), "holds -0.1 at .*, but must be at least 0"),
    ("em categorical", "statistics_.emission.counts", entry(np.nan), "holds nan at"),
    ("em categorical", "statistics_.chain.pairs", entry(-5.0), "holds -5.0 at"),
    ("em categorical", "statistics_.n_observations", whole(np.inf), "holds inf"),
    ("em gaussian", "point_.emission.covariances", whole(1.0), "holds a singular matrix|not positive definite"),
    ("em gaussian", "point_.emission.covariances", entry(-1.0), "not positive definite"),
    ("vi diagonal", "point_.emission.variances", entry(-1.0), "but must be above 0"),
    ("vi bernoulli", "statistics_.emission.total", whole(1e6), "more ones than observations"),
    ("vi bernoulli", "point_.emission.probabilities", entry(1.5), "at most 1"),
    ("vi hdp sticks", "prior_.chain.used", entry(10**9), "cannot use"),
    ("vi hdp sticks", "prior_.chain.order", whole(0.0), "0 … 5 in some order"),
    ("cvi hdp", "prior_.chain.method", whole(9), "at most 3"),
    ("cvi dictionary", "training_marginals_.entries", entry(1.5), "at most 1"),
    ("cvi dictionary", "training_marginals_.states", entry(7), "do not fit together"),
    ("gibbs kept paths", "samples_.states", entry(200), "at most 2"),
    ("vi banded", "point_.chain.first", entry(10**9), "at most 63"),
    ("em block-sparse", "point_.emission.blocks.states", entry(1), "prior, statistics and parameters .* do not fit"),
    ("em product", "point_.emission.layout.columns", entry(10**9), "do not fit the table"),
]
CHECKPOINTS = [
    ("gibbs states", "run0.memory.hidden", entry(10**6), "there are 3"),
    ("gibbs states", "run0.memory.hidden", entry(-1), "at least 0"),
    ("gibbs states", "run0.memory.draws", whole(10**9), "but must be at most"),
    ("gibbs sequences sampled", "run0.memory.tally", entry(0), "does not have 2 states"),
    ("beam", "run0.memory.hidden", entry(10**6), "there are"),
    ("beam", "run0.memory.top.0", whole(0.5), "weights of states that sum to 1"),
    ("vi hdp sticks", "run0.prior.chain.used", entry(10**9), "cannot use"),
    ("vi states", "run0.memory.marginals", entry(2.0), "sum to"),
    ("cvi hdp", "run0.memory.shares", entry(2.0), "do not sum to 1"),
    ("cvi hdp", "run0.memory.cursor", whole(10**9), "clusters"),
    ("cvi states gaussian", "run0.statistics.emission.weight", whole(0.0), "not the sum of the shares"),
    ("scvi guards", "run0.memory.guards.firsts", entry(np.nan), "holds nan"),
    ("scvi guards", "run0.memory.update", whole(-3), "at least 0"),
    ("scvi guards", "run0.memory.emission.totals", whole(1.0), "do not hold the sums"),
    ("svi average", "run0.memory.average.counts", whole(-1), "at least 0"),
]


@pytest.mark.parametrize(("name", "key", "change", "message"), MODELS)
def test_a_model_out_of_range_is_refused(name, key, change, message, tmp_path):
    _, arrays, header = written(name)
    (tmp_path / "m").write_bytes(packed(arrays | {key: change(arrays[key])}, json.dumps(header)))
    with pytest.raises(FileFormatError, match=f"m cannot be used: .*({message})"):
        HMM.load(tmp_path / "m")


@pytest.mark.parametrize(("name", "key", "change", "message"), CHECKPOINTS)
def test_a_checkpoint_out_of_range_is_refused(name, key, change, message, tmp_path):
    subject, arrays, header = written(f"checkpoint of {name}")
    (tmp_path / "c").write_bytes(packed(arrays | {key: change(arrays[key])}, json.dumps(header)))
    with pytest.raises(FileFormatError, match=f"c cannot be used: .*({message})"):
        subject.attacked.use(tmp_path / "c")


@pytest.mark.parametrize("change", [lambda given: np.concatenate((given, given)), lambda given: given[:1]])
def test_samples_of_other_numbers_of_chains_are_refused(change, tmp_path):
    subject, arrays, header = written("checkpoint of gibbs states")
    drawn = {key: change(array) for key, array in arrays.items() if ".samples." in key}
    assert drawn
    (tmp_path / "c").write_bytes(packed(arrays | drawn, json.dumps(header)))
    with pytest.raises(FileFormatError, match="c cannot be used: the samples are not those of . chains"):
        subject.attacked.use(tmp_path / "c")


def test_statistics_without_a_part_of_the_product_are_refused(tmp_path):
    subject, arrays, header = written("checkpoint of svi average")
    del header["restarts"][0]["average"]["fields"]["emission"]["fields"]["parts"]["parts"]["c"]
    (tmp_path / "c").write_bytes(packed(arrays, json.dumps(header)))
    with pytest.raises(FileFormatError, match="c is damaged: .*KeyError"):
        subject.attacked.use(tmp_path / "c")


def test_rules_of_other_symbols_are_refused(tmp_path):
    rules = "S -> NP VP\nNP -> 'dogs' | 'cats'\nVP -> V | V NP\nV -> 'bark' | 'chase'"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        PCFG(rules, EM(max_iter=2), progress=False, random_state=0).fit(["dogs bark", "cats chase dogs"]).save(
            tmp_path / "g"
        )
    content = (tmp_path / "g").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])["__metadata__"][HEADER]
    forged = {key: array * (not key.endswith(".groups")) for key, array in load(content).items()}
    (tmp_path / "g").write_bytes(packed(forged, header))
    with pytest.raises(FileFormatError, match="g cannot be used: the symbol '.*' of the file has no rule"):
        PCFG.load(tmp_path / "g")


def test_settings_of_a_grammar_that_are_none_are_refused(tmp_path):
    subject, arrays, header = written("grammar vi")
    header["settings"]["root_concentration"] = "learned"
    (tmp_path / "g").write_bytes(packed(arrays, json.dumps(header)))
    with pytest.raises(FileFormatError, match="g cannot be used: .*root_concentration must be positive"):
        subject.attacked.use(tmp_path / "g")


def test_networks_that_overflow_give_an_error(tmp_path):
    pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")
    subject, arrays, header = written("neural model")
    name = "networks.transition.source.first.bias"
    (tmp_path / "n").write_bytes(packed(arrays | {name: np.full_like(arrays[name], 1e300)}, json.dumps(header)))
    with pytest.raises(InferenceError, match="parameters are so large that they overflow"):
        subject.attacked.use(tmp_path / "n")


HEADERS = [
    ("n_sequences", float("inf"), "n_sequences is inf, not a whole number"),
    ("n_batches", -1, "n_batches is -1"),
    ("status", "dead", "the status of a run is 'dead'"),
    ("family", {"component": "Gaussian", "settings": {}}, "does not have the parameters of the file"),
    ("family", {"array": [1.0], "dtype": "V1000000000"}, "not of numbers or texts"),
    ("family", {"array": "eJwDAAAAAAE=", "dtype": "<f8", "shape": [1 << 40]}, "does not fit its contents"),
    ("family", {"array": ["a"], "dtype": "<U100000000"}, "does not have the parameters of the file"),
    ("columns", [1], "the name of a column is 1"),
]


@pytest.mark.parametrize(("key", "value", "message"), HEADERS)
def test_a_header_out_of_range_is_refused(key, value, message, tmp_path):
    _, arrays, header = written("em categorical")
    (tmp_path / "m").write_bytes(packed(arrays, json.dumps(header | {key: value})))
    with pytest.raises(FileFormatError, match=f"m cannot be used: .*{message}"):
        HMM.load(tmp_path / "m")


def test_records_of_other_classes_are_refused(tmp_path):
    _, arrays, header = written("em categorical")
    header["schemas"]["point_"]["fields"]["chain"] = header["schemas"]["statistics_"]["fields"]["chain"]
    arrays["point_.chain.pairs"] = arrays.pop("point_.chain.transition")
    (tmp_path / "m").write_bytes(packed(arrays, json.dumps(header)))
    with pytest.raises(FileFormatError, match=r"point_\.chain is a ChainSums, but must be a ChainLaw"):
        HMM.load(tmp_path / "m")


# ---- declarations ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Waits(Record):
    """What a family of a user's own may declare."""

    rates: np.ndarray = array("KD", POSITIVE)
    shared: np.ndarray = states_on(holds=Range(least=2.0))
    strength: float = number(POSITIVE, 1.0)
    plain: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))


def test_declared_ranges_of_a_family_of_ones_own_are_checked():
    given = Waits(np.ones((2, 3)), np.full(4, 2.0))

    def read(**changed):
        arrays = {f"w.{name}": array for name, array in (given.arrays() | changed).items()}
        return RecordReader(arrays).read(given.schema(), "w", kind=Waits)

    assert read().strength == 1.0
    for name, value, message in (
        ("rates", np.zeros((2, 3)), "w.rates holds 0.0 at .0, 0., but must be above 0"),
        ("rates", np.ones(2), "w.rates has 1 axes"),
        ("rates", np.ones((2, 3), dtype=np.float32), "w.rates holds entries of type float32, not float64"),
        ("shared", np.ones(4), "w.shared holds 1.0 at 0, but must be at least 2"),
        ("strength", np.array(-1.0), "w.strength holds -1.0, but must be above 0"),
        ("strength", np.ones(2), "w.strength holds float64 numbers of shape"),
        ("plain", np.ones(3), "w.plain has the shape .3,., but other entries need"),
        ("plain", np.array([np.nan, 1.0]), "w.plain holds nan at 0, but must be a finite number"),
    ):
        with pytest.raises(FileFormatError, match=message):
            read(**{name: value})


@pytest.mark.parametrize(
    ("holds", "good", "bad"),
    [
        (probabilities(), [[0.5, 0.5]], [[0.5, 0.6]]),
        (probabilities(axis=0), [[0.5], [0.5]], [[0.5], [-0.5]]),
        (probabilities(), [1.0], []),
        (STATES, [0, 2], [0, 3]),
        (RANKS, [2.0, 0.0, 1.0], [2.0, 0.0, 2.0]),
        (SCATTERS, [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (COVARIANCES, [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.6, 1.0]]),
        (Range(allows_nan=True), [np.nan, 1.0], [np.nan, np.inf]),
        (Range(allows_infinity=True), [np.inf, 1.0], [np.nan, 1.0]),
    ],
)
def test_ranges(holds, good, bad):
    assert holds.fault(np.array(good), {"K": 3}) is None
    assert holds.fault(np.array(bad), {"K": 3}) is not None
