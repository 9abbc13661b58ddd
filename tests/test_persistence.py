"""Model files: exact, refused when damaged, and readable for good (the golden files were written by each release)."""

import contextlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from examples import EVERY_FAMILY as FAMILIES
from examples import example
from hypothesis import given
from hypothesis import strategies as st

import subchain
from subchain import CVI, EM, HMM, VI, Categorical, Dirichlet, left_right
from subchain.core.files import read_arrays, write_arrays
from subchain.errors import FileFormatError, InputError, SubchainError

GOLDEN = Path(__file__).parent / "golden"

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


def fitted(family="categorical", **settings):
    specification, data = example(family)
    inference = VI(max_iter=3, tolerance=0.0)
    return HMM(3, specification, inference=inference, random_state=0, n_jobs=1, **settings).fit(data)


def environment():
    """The environment of a fresh process that imports this package and no other."""
    return os.environ | {"PYTHONPATH": str(Path(subchain.__file__).parents[1])}


def rewrite_header(path, change):
    """Change the JSON header of a model file."""
    arrays, header = read_arrays(path, "model")
    change(header)
    write_arrays(path, arrays, header)


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_comes_back(family, tmp_path):
    mask = None if FAMILIES[family][0].names_states else left_right  # groups of symbols may come back
    model = fitted(family, transition=Dirichlet(0.5, mask=mask, stickiness=1.0))
    model.state_names_ = ["low", "middle", "high"]
    model.save(tmp_path / "m.safetensors")
    back = HMM.load(tmp_path / "m.safetensors")
    _, data = example(family, seed=1)
    assert np.array_equal(model.score_sequences(data), back.score_sequences(data))
    assert back.state_names_ == ["low", "middle", "high"]
    assert back.status_ == model.status_
    assert back.trace_ == model.trace_
    assert back.runs_ == model.runs_
    for key, array in model.posterior_.arrays().items():
        assert np.array_equal(array, back.posterior_.arrays()[key]), key
    assert back.inference.get_params() == model.inference.get_params()
    again = HMM(**back.get_params(deep=False)).fit(example(family)[1])
    assert np.isfinite(again.score(data))


def test_words_come_back(tmp_path):
    model = HMM(2, "categorical", random_state=0).fit([["a", "b", "a"], ["c"]])
    model.save(tmp_path / "m")
    assert HMM.load(tmp_path / "m").score([["b", "a"]]) == model.score([["b", "a"]])


def test_a_model_with_a_learned_concentration_loads_in_a_fresh_process(tmp_path):
    """The class of its prior is known without having been used before."""
    data = [np.array([0, 0, 1, 1, 0, 1])] * 3
    model = HMM(2, Categorical("learned"), inference=VI(max_iter=2), random_state=0, n_jobs=1).fit(data)
    model.save(tmp_path / "model.safetensors")
    code = "import sys; from subchain import HMM; print(HMM.load(sys.argv[1]).n_states_)"
    path = str(tmp_path / "model.safetensors")
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, env=environment())
    assert run.stdout.strip() == "2", run.stderr


def test_models_by_hand_can_be_saved(tmp_path):
    model = HMM.from_parameters([1, 0], [[0.5, 0.5], [0, 1]], Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]]))
    model.save(tmp_path / "m")
    assert HMM.load(tmp_path / "m").score([0, 1]) == model.score([0, 1])


def test_saving_does_not_need_the_start_or_the_generator(tmp_path):
    start = fitted()
    generator = np.random.default_rng(0)
    model = HMM(3, Categorical(n_categories=5), init=start, random_state=generator, inference=EM(max_iter=2))
    model.fit(example("categorical")[1]).save(tmp_path / "m")
    assert HMM.load(tmp_path / "m").init == "auto"


def test_an_unfitted_model_is_not_saved(tmp_path):
    from subchain.errors import NotFittedError

    with pytest.raises(NotFittedError):
        HMM(2, "categorical").save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_newer_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "m"
    fitted().save(path)

    def newer(header):
        header["version"] = 99

    rewrite_header(path, newer)
    with pytest.raises(FileFormatError, match="newer format"):
        HMM.load(path)
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(FileFormatError, match="damaged, truncated, or not a subchain file"):
        HMM.load(tmp_path / "text")
    with pytest.raises(InputError, match="there is no file"):
        HMM.load(tmp_path / "missing")


def test_a_file_whose_arrays_do_not_fit_is_refused(tmp_path):
    path = tmp_path / "m"
    fitted().save(path)
    arrays, header = read_arrays(path, "model")
    for name, array in {
        "point_.emission.weights": np.ones((4, 20000)),
        "point_.chain.transition": np.full((3, 3), np.nan),
        "statistics_.chain.pairs": np.ones((2, 2)),
    }.items():
        write_arrays(tmp_path / "bad", arrays | {name: array}, header)
        with pytest.raises(FileFormatError, match=f"bad cannot be used: {name} "):
            HMM.load(tmp_path / "bad")


def test_a_file_cannot_build_what_is_not_a_component(tmp_path):
    path = tmp_path / "m"
    fitted().save(path)

    def dangerous(header):
        header["settings"]["emission"] = {"component": "Popen", "settings": {"args": ["true"]}}

    rewrite_header(path, dangerous)
    with pytest.raises(FileFormatError, match="needs the class 'Popen', which is not known"):
        HMM.load(path)


def test_families_of_the_same_name_in_two_modules_come_back_as_what_they_were(tmp_path):
    kinds = [type("Twin", (Categorical,), {"__module__": f"twins.{name}"}) for name in ("first", "second")]
    for number, kind in enumerate(kinds):
        path = tmp_path / str(number)
        HMM(2, kind(), inference=EM(max_iter=1), random_state=0).fit([[0, 1, 1, 0]]).save(path)
        assert type(HMM.load(path).emission) is kind
    rewrite_header(path, lambda header: header["settings"]["emission"].pop("module"))
    with pytest.raises(FileFormatError, match="'Twin', which several modules define: twins.first, twins.second"):
        HMM.load(path)


@pytest.mark.parametrize("key", ["settings", "schemas", "family", "state_names", "trace", "runs", "vocabularies"])
def test_a_header_without_a_part_is_refused(key, tmp_path):
    path = tmp_path / "m"
    fitted().save(path)
    rewrite_header(path, lambda header: header.pop(key))
    with pytest.raises(FileFormatError, match="damaged"):
        HMM.load(path)


@given(position=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_changed_byte_gives_a_model_or_a_message(tmp_path_factory, position, byte):
    path = tmp_path_factory.mktemp("fuzz") / "m"
    if "content" not in _written:
        fitted().save(path)
        _written["content"] = path.read_bytes()
    content = bytearray(_written["content"])
    content[position % len(content)] = byte
    path.write_bytes(content)
    with contextlib.suppress(SubchainError):
        assert HMM.load(path).point_.not_finite() is None


_written: dict[str, bytes] = {}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=lambda path: path.stem)
def test_golden_files_give_the_scores_they_gave(path):
    family = path.stem.split("-")[0]
    expected = json.loads((GOLDEN / "scores.json").read_text())[path.stem]
    model = HMM.load(path)
    _, data = example(family, "ragged", seed=7)
    assert np.allclose(model.score_sequences(data), expected, rtol=1e-10)


def test_there_are_golden_files():
    missing = set(FAMILIES) - {path.stem.split("-")[0] for path in GOLDEN.glob("*.safetensors")}
    assert not missing, "write model files of new families: PYTHONPATH=src:tests python tests/golden/make.py 0.1.0"


@pytest.mark.parametrize("name", ["entries", "offsets", "states"])
def test_beliefs_that_do_not_fit_are_refused(name, tmp_path):
    allowed = {0: [0], 1: [0, 1]}
    model = HMM(2, "categorical", inference=CVI(max_iter=2, tolerance=0.0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit([[0, 1, 1], [1, 0]] * 3, allowed=allowed)
    model.save(tmp_path / "model")
    arrays, header = read_arrays(tmp_path / "model", "model")
    key = f"training_marginals_.{name}"
    write_arrays(tmp_path / "bad", arrays | {key: arrays[key][:-1]}, header)
    with pytest.raises(FileFormatError, match="bad cannot be used: training_marginals_"):
        HMM.load(tmp_path / "bad")


def test_a_file_sets_nothing_but_results(tmp_path):
    model = HMM.from_parameters([1.0], [[1.0]], Categorical.from_parameters([[0.5, 0.5]]))
    model.save(tmp_path / "model")
    rewrite_header(tmp_path / "model", lambda header: header["schemas"].update(fit=header["schemas"]["point_"]))
    assert callable(HMM.load(tmp_path / "model").fit)
