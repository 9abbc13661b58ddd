"""Write model files, checkpoints and a tag dictionary, as a given version of the package writes them:

    PYTHONPATH=/path/to/checkout/src:tests python tests/golden/make_files.py

Files that are there already are left alone: they are what an old version wrote.
"""

import dataclasses
import warnings
from pathlib import Path

from file_cases import CHECKPOINTS, FILES, INTERRUPTED, answers, names, score_after_another_batch, stem
from fit_cases import BY_NAME, DICTIONARY
from fit_data import fingerprint
from stored_results import read_results, write_results

from subchain import HMM

here = Path(__file__).parent
models, checkpoints = here / "models", here / "checkpoints"


def write_models():
    """A file for each case that is kept, and what its model answers."""
    models.mkdir(exist_ok=True)
    stored = read_results(models / "answers.json")
    for case in FILES:
        path = models / f"{stem(case)}.safetensors"
        if path.exists():
            continue
        model = case.fit()
        model.save(path)
        entry = {"data": fingerprint(case.family, "new", 1)} | names(model) | answers(case, model)
        entry["score after another batch"] = score_after_another_batch(case, model)
        stored[case.name] = entry
        print(path.name, path.stat().st_size)
    write_results(models / "answers.json", stored)


def write_checkpoints():
    """Runs that ended early; a run with the case's own limits goes on from there."""
    checkpoints.mkdir(exist_ok=True)
    for name, limits in CHECKPOINTS.items():
        case, path = BY_NAME[name], checkpoints / f"{stem(BY_NAME[name])}.safetensors"
        if not path.exists():
            settings = case.inference.get_params(deep=False) | limits
            stopped(dataclasses.replace(case, inference=type(case.inference)(**settings)), path)
            print(path.name, path.stat().st_size)
    path = checkpoints / f"{stem(BY_NAME[INTERRUPTED])}.safetensors"
    if not path.exists():
        interrupt(BY_NAME[INTERRUPTED], path)
        print(path.name, path.stat().st_size)


def stopped(case, path):
    """A fit with a checkpoint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.model().fit(case.data, checkpoint=path, **case.arguments)


def interrupt(case, path):
    """End a fit with restarts while its second run is under way, right after a checkpoint.

    Only the commit that wrote the file needs this to work; it is the one place that knows a module of that commit.
    """
    from subchain.inference.checkpoint import Checkpoint

    save = Checkpoint.save

    def save_and_end(self, journey, *, force=False):
        save(self, journey, force=True)
        if len(journey.summaries) == 1 and journey.current is not None and journey.current.iteration == 3:
            raise TimeoutError

    Checkpoint.save = save_and_end
    try:
        stopped(case, path)
    except TimeoutError:
        return
    finally:
        Checkpoint.save = save
    raise AssertionError("the fit was not interrupted")


write_models()
write_checkpoints()
if not (here / "dictionary.tsv").exists():
    DICTIONARY.save(here / "dictionary.tsv")
assert all(HMM.load(path).n_states_ for path in models.glob("*.safetensors"))
