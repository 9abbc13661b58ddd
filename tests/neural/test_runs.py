"""Runs that are refused, diverge, are interrupted or resumed: neither a model nor a checkpoint is lost."""

from __future__ import annotations

import pickle
import signal
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

from neural_examples import model, same, text  # noqa: E402

from subchain.core.components import clone  # noqa: E402
from subchain.errors import FileFormatError, InferenceError, InputError  # noqa: E402
from subchain.neural import NeuralHMM  # noqa: E402
from subchain.neural.training import Trainer  # noqa: E402


def break_at(monkeypatch: pytest.MonkeyPatch, epoch: int, breaks: Any) -> None:
    """Have `breaks(trainer)` called before the second update of an epoch."""
    whole = Trainer.update

    def update(self: Trainer, *arguments: Any) -> Any:
        if len(self.trace) == epoch and self.updates % self.updates_of_epoch == 1:
            breaks(self)
        return whole(self, *arguments)

    monkeypatch.setattr(Trainer, "update", update)


def spoil(trainer: Trainer) -> None:
    with torch.no_grad():
        next(iter(trainer.networks.parameters()))[...] = torch.nan


def press(_: Trainer) -> None:
    signal.raise_signal(signal.SIGINT)


def test_seeds_of_numpy_and_generators_can_be_resumed(tmp_path: Any) -> None:
    path = tmp_path / "run.safetensors"
    whole = model(3, schedule="constant", random_state=np.int64(3)).fit(text())
    same(whole, model(3, schedule="constant", random_state=3).fit(text()))
    model(2, schedule="constant", random_state=np.int64(3)).fit(text(), checkpoint=path)
    same(whole, model(3, schedule="constant", random_state=3).fit(text(), checkpoint=path, resume=True))
    path.unlink()
    generators = [np.random.default_rng(5) for _ in range(3)]
    whole = model(3, schedule="constant", random_state=generators[0]).fit(text())
    model(2, schedule="constant", random_state=generators[1]).fit(text(), checkpoint=path)
    same(whole, model(3, schedule="constant", random_state=generators[2]).fit(text(), checkpoint=path, resume=True))


def test_a_resumed_run_without_a_seed_ends_in_the_bits_of_one_that_was_not_stopped(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.safetensors"
    monkeypatch.setattr("subchain.neural.preparation.seed_sequence", lambda _: np.random.SeedSequence(7))
    whole = model(4, random_state=None).fit(text())
    break_at(monkeypatch, 2, press)
    with pytest.warns(UserWarning, match="interrupted"):
        model(4, random_state=None).fit(text(), checkpoint=path)
    monkeypatch.undo()
    resumed = model(4, random_state=None).fit(text(), checkpoint=path, resume=True)
    same(whole, resumed)
    with pytest.raises(InputError, match="belongs to another run: random_state differ"):
        model(4, random_state=5).fit(text(), checkpoint=path, resume=True)


@pytest.mark.parametrize("settings", [{"n_states": 13}, {"device": "meta"}, {"groups": [0, 0, 1, 1]}])
def test_a_fit_that_is_refused_leaves_the_model_as_it_was(settings: dict[str, Any], tmp_path: Any) -> None:
    fitted = model(1).fit(text())
    before = fitted.score(text(1))
    with pytest.raises(InputError):
        fitted.set_params(**settings).fit(text(2))
    assert fitted.score(text(1)) == before
    fitted.save(tmp_path / "model.safetensors")
    assert NeuralHMM.load(tmp_path / "model.safetensors", "cpu").score(text(1)) == before


def test_a_run_that_diverges_leaves_model_and_checkpoint(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.safetensors"
    fitted = model(3).fit(text())
    before = fitted.score(text(1))
    whole = model(3).fit(text())
    break_at(monkeypatch, 1, spoil)
    with pytest.raises(InferenceError, match="training diverged in epoch 2: the training perplexity is nan"):
        fitted.fit(text(), checkpoint=path)
    assert fitted.score(text(1)) == before
    monkeypatch.undo()
    same(model(3).fit(text(), checkpoint=path, resume=True), whole)


def test_a_last_update_that_spoils_the_parameters_is_noticed_without_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = torch.optim.AdamW.step

    def spoiled(self: Any, *arguments: Any) -> None:
        step(self, *arguments)
        if self.state[self.param_groups[0]["params"][0]]["step"] == 5:
            with torch.no_grad():
                self.param_groups[0]["params"][0][...] = torch.inf

    monkeypatch.setattr(torch.optim.AdamW, "step", spoiled)
    run = Trainer.epoch

    def short(self: Trainer, *arguments: Any) -> None:
        self._pieces = self._pieces[:5]
        run(self, *arguments)

    monkeypatch.setattr(Trainer, "epoch", short)
    with pytest.raises(InferenceError, match="parameters are not finite"):
        model(1).fit(text())


def test_an_interrupted_fit_is_that_of_the_last_whole_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model(2, schedule="constant").fit(text(), validation=text(1))
    break_at(monkeypatch, 2, press)
    with pytest.warns(UserWarning, match="the model is that of the last whole epoch"):
        fitted = model(4, schedule="constant").fit(text(), validation=text(1))
    same(fitted, whole)
    assert len(fitted.trace_) == 2
    monkeypatch.undo()
    break_at(monkeypatch, 0, press)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(text())
    same(fitted, whole)


def test_checkpoints_that_cannot_be_written_are_refused_before_training(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="does not exist"):
        model(1).fit(text(), checkpoint=tmp_path / "nowhere" / "run.safetensors")
    with pytest.raises(InputError, match="resume=True needs checkpoint="):
        model(1).fit(text(), resume=True)
    with pytest.warns(UserWarning, match="begins afresh"):
        model(1).fit(text(), checkpoint=tmp_path / "run.safetensors", resume=True)


def test_a_full_disk_does_not_end_a_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("subchain.neural.checkpoints.write_arrays", full)
    with pytest.warns(UserWarning, match="could not be written .No space left"):
        model(1).fit(text(), checkpoint=tmp_path / "run.safetensors")


@pytest.mark.parametrize("array", ["best.first_vector", "optimizer.0.exp_avg_sq", "networks.first_vector"])
def test_forged_checkpoints_are_refused(array: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.core.files import read_arrays, write_arrays

    path = tmp_path / "run.safetensors"
    model(1, schedule="constant").fit(text(), checkpoint=path)
    arrays, header = read_arrays(path, "neural checkpoint")
    for forged in (arrays[array].ravel()[:1], np.full_like(arrays[array], np.nan)):
        write_arrays(path, arrays | {array: forged}, header)
        with pytest.raises(FileFormatError):
            model(2, schedule="constant").fit(text(), checkpoint=path, resume=True)
    write_arrays(path, arrays, header | {"updates": 1})
    with pytest.raises(FileFormatError, match="number of updates"):
        model(2, schedule="constant").fit(text(), checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"n_states": 12 * 2**40}, "shapes"), ({"end": 9}, "end is 9"), ({"joined": "no"}, "joined"),
     ({"transition": {"name": "Table"}}, "unknown transition")],
)  # fmt: skip
def test_forged_models_are_refused(change: dict[str, Any], says: str, tmp_path: Any) -> None:
    from subchain.core.files import read_arrays, write_arrays

    path = tmp_path / "model.safetensors"
    model(1).fit(text()).save(path)
    arrays, header = read_arrays(path, "neural model")
    write_arrays(path, arrays, header | change)
    with pytest.raises(FileFormatError, match=says):
        NeuralHMM.load(path, "cpu")


def test_fitted_models_are_pickled_and_settings_cloned() -> None:
    fitted = model(1).fit(text())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(fitted))
    assert again.score(text(1)) == fitted.score(text(1))
    assert not clone(fitted).__sklearn_is_fitted__()
