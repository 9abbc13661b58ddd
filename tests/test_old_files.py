"""Files that commit f400e5b wrote are read for good: models of every algorithm, checkpoints, a tag dictionary.

The models are those of the cases with `file=True` in `fit_cases.py`; `golden/models/answers.json` holds what they
answered when they were written. `golden/make_files.py` adds files for new cases and never replaces one.
"""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from file_cases import CHECKPOINTS, FILES, INTERRUPTED, answers, names, score_after_another_batch, stem
from fit_cases import BY_NAME, DICTIONARY, result
from fit_data import fingerprint
from stored_results import differences, read_results

import subchain
from subchain import HMM, TagDictionary
from subchain.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
STORED = read_results(GOLDEN / "models" / "answers.json")
FITS = read_results(GOLDEN / "fits.json")
TEXTS = ("commit", "changed", "data", "state names", "status", "vocabularies")
LOAD_ALL = """
import sys
from subchain import HMM
for path in sys.argv[1:]:
    try:
        HMM.load(path)
    except Exception as error:
        print(path, error)
"""


def load(case):
    return HMM.load(GOLDEN / "models" / f"{stem(case)}.safetensors")


def numbers(entry):
    """What is stored of a model, without texts and names."""
    return {key: value for key, value in entry.items() if key not in TEXTS}


@pytest.mark.parametrize("case", FILES, ids=stem)
def test_a_model_answers_as_it_did(case):
    assert STORED[case.name]["data"] == fingerprint(case.family, "new", 1), "the data differ, not the model"
    expected = numbers(STORED[case.name])
    learned = expected.pop("score after another batch")
    model = load(case)
    assert not differences(answers(case, model), expected)
    assert not differences({"score": score_after_another_batch(case, model)}, {"score": learned})


@pytest.mark.parametrize("case", FILES, ids=stem)
def test_a_model_keeps_names(case):
    found = names(load(case))
    assert found == {key: STORED[case.name][key] for key in found}


@pytest.mark.parametrize("case", [case for case in FILES if case.batches is None], ids=stem)
def test_a_model_can_be_fitted_again(case):
    """The settings in the file are those of the fit; what files did not have yet is as it was."""
    model = load(case).set_params(progress=False)
    as_it_was = case.model()
    model.set_params(init=as_it_was.init)
    if "search" in model.inference.get_params(deep=False):
        model.inference.set_params(search=as_it_was.inference.search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(case.data, **case.arguments)
    assert not differences(result(case, model), numbers(FITS[case.name]))


def test_models_load_in_a_fresh_interpreter():
    """No module has to be imported first: files name classes that only loading itself can bring in."""
    paths = sorted(map(str, GOLDEN.rglob("models/*.safetensors")))
    environment = os.environ | {"PYTHONPATH": str(Path(subchain.__file__).parents[1])}
    command = [sys.executable, "-c", LOAD_ALL, *paths]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == ""


def test_every_file_is_known():
    assert {path.stem for path in (GOLDEN / "models").glob("*.safetensors")} == {stem(case) for case in FILES}
    assert set(STORED) == {case.name for case in FILES}


@pytest.mark.parametrize("name", [*CHECKPOINTS, INTERRUPTED])
def test_an_old_checkpoint_is_refused_with_advice(name, tmp_path):
    """Checkpoints hold the inner state of a run, which changes between versions; models hold results, and load."""
    case, path = BY_NAME[name], tmp_path / "checkpoint"
    shutil.copy(GOLDEN / "checkpoints" / f"{stem(case)}.safetensors", path)
    with pytest.raises(InputError, match="written by an earlier version of subchain; finish the run with that version"):
        case.model().fit(case.data, checkpoint=path, resume=True, **case.arguments)


def test_a_tag_dictionary_is_read():
    assert TagDictionary.load(GOLDEN / "dictionary.tsv") == DICTIONARY
