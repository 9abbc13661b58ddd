"""Training, checkpoints, files and the interface of `NeuralHMM`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

from neural_examples import GROUPS, model, same, text  # noqa: E402

from subchain import HMM  # noqa: E402
from subchain.data import Sequences, Vocabulary, as_sequences  # noqa: E402
from subchain.errors import FileFormatError, InputError, NotFittedError  # noqa: E402
from subchain.neural import LowRank, NeuralHMM  # noqa: E402
from subchain.neural.training import Trainer  # noqa: E402


@pytest.mark.parametrize("batch", ["pieces", "sentences"])
@pytest.mark.parametrize("transition", [None, LowRank(5)], ids=["softmax", "low rank"])
@pytest.mark.parametrize("groups", [GROUPS, None], ids=["groups", "one group"])
def test_training_comes_near_the_entropy_of_the_text(batch: str, transition: Any, groups: Any) -> None:
    fitted = model(20, groups=groups, batch=batch, transition=transition, state_dropout=0.0, random_state=2).fit(
        text(), validation=text(1)
    )
    assert fitted.perplexity(text(2)) < 3.6  # at best 3.0; 3.2 with one state for each group; 5.0 by frequencies
    assert fitted.trace_.train[-1] < fitted.trace_.train[0]
    assert len(fitted.trace_) == 20


def test_the_same_seed_gives_the_same_bits() -> None:
    same(model().fit(text()), model().fit(text()))
    different = model(random_state=1).fit(text())
    assert different.score(text()) != model().fit(text()).score(text())


@pytest.mark.parametrize("batch", ["pieces", "sentences"])
@pytest.mark.parametrize("schedule", ["cosine", "plateau"])
def test_a_run_that_was_stopped_goes_on_in_the_same_bits(
    batch: str, schedule: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"validation": text(1)}
    whole = model(4, batch=batch, schedule=schedule).fit(text(), **arguments)

    class Killed(Exception):
        pass

    run = Trainer.epoch

    def dies(self: Trainer, pause: Any) -> None:
        if len(self.trace) == 2:
            raise Killed
        run(self, pause)

    path = tmp_path / "run.safetensors"
    monkeypatch.setattr(Trainer, "epoch", dies)
    with pytest.raises(Killed):
        model(4, batch=batch, schedule=schedule).fit(text(), checkpoint=path, **arguments)
    monkeypatch.setattr(Trainer, "epoch", run)
    resumed = model(4, batch=batch, schedule=schedule).fit(text(), checkpoint=path, resume=True, **arguments)
    same(whole, resumed)
    for name in ("train", "validation", "averaged", "learning_rate"):
        np.testing.assert_array_equal(getattr(whole.trace_, name), getattr(resumed.trace_, name))


def test_checkpoints_of_other_runs_are_refused_and_stay_usable(tmp_path: Any) -> None:
    path = tmp_path / "run.safetensors"
    model(2, schedule="constant").fit(text(), checkpoint=path)
    with pytest.raises(InputError, match="exists already"):
        model(2, schedule="constant").fit(text(), checkpoint=path)
    with pytest.raises(InputError, match="belongs to another run: n_states differ"):
        model(2, schedule="constant", n_states=6).fit(text(), checkpoint=path, resume=True)
    with pytest.raises(InputError, match="belongs to another run: text differ"):
        model(2, schedule="constant").fit(text(5), checkpoint=path, resume=True)
    longer = model(3, schedule="constant").fit(text(), checkpoint=path, resume=True)
    same(longer, model(3, schedule="constant").fit(text()))
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(FileFormatError):
        model(3, schedule="constant").fit(text(), checkpoint=path, resume=True)


def test_averages_and_early_stopping_keep_the_best_weights() -> None:
    fitted = model(30, learning_rate=0.5, schedule="constant", patience=2, averaging=0.9).fit(
        text(), validation=text(1)
    )
    assert len(fitted.trace_) < 30
    assert int(np.argmin(fitted.trace_.best)) == len(fitted.trace_) - 3
    assert np.isclose(fitted.perplexity(text(1)), min(fitted.trace_.best), rtol=1e-12)


def test_without_validation_the_averaged_weights_are_the_result() -> None:
    fitted, raw = model(2).fit(text()), model(2, averaging=0.0).fit(text())
    assert np.isnan(fitted.trace_.validation).all()
    assert fitted.score(text()) != raw.score(text())


def test_a_plateau_cuts_the_step_size() -> None:
    fitted = model(12, schedule="plateau", learning_rate=0.3).fit(text(), validation=text(1))
    rates, best = fitted.trace_.learning_rate, fitted.trace_.best
    expected, rate = [], 0.3
    for epoch in range(12):
        if epoch and best[epoch] >= min(best[:epoch]):
            rate *= 0.25
        expected.append(rate)
    np.testing.assert_allclose(rates, expected)
    assert rates[-1] < 0.3


@pytest.mark.parametrize("transition", [None, LowRank(5)], ids=["softmax", "low rank"])
@pytest.mark.parametrize("groups", [GROUPS, None], ids=["groups", "one group"])
def test_the_plain_model_scores_and_decodes_the_same(transition: Any, groups: Any) -> None:
    fitted = model(2, groups=groups, transition=transition).fit(text())
    plain = fitted.to_hmm()
    assert isinstance(plain, HMM)
    assert np.isclose(plain.score(text(1)), fitted.score(text(1)), rtol=1e-10)
    np.testing.assert_allclose(plain.score_sequences(text(1)), fitted.score_sequences(text(1)), rtol=1e-10)
    for one, other in zip(plain.predict(text(1), "viterbi"), fitted.predict(text(1)), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(plain.predict_proba(text(1)), fitted.predict_proba(text(1)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_the_plain_model_of_words_takes_words() -> None:
    words = [["a", "b", "."], ["b", "b", "a", "."]] * 10
    fitted = model(2, groups=[0, 0, 1], n_states=4).fit(words)
    assert np.isclose(fitted.to_hmm().score(words), fitted.score(words), rtol=1e-10)


def test_perplexity_counts_every_word() -> None:
    fitted = model(1).fit(text())
    x = text(1)
    assert np.isclose(fitted.perplexity(x), np.exp(-fitted.score(x) / x.n_observations))


def test_joined_sequences_are_one_chain() -> None:
    x = text()
    fitted = model(1, joined=True).fit(x)
    assert np.isclose(fitted.score(x), fitted.score(Sequences(x.values)), rtol=1e-12)
    apart = model(1).fit(x)
    assert not np.isclose(apart.score(x), apart.score(Sequences(x.values)))


def test_samples_follow_the_model() -> None:
    fitted = model(20, state_dropout=0.0).fit(text())
    drawn = fitted.sample(3000, random_state=0)
    np.testing.assert_array_equal(GROUPS[drawn.observations], drawn.states // 4)
    share = np.bincount(drawn.observations, minlength=5) / 3000
    trained = np.bincount(text().values, minlength=5) / text().n_observations
    np.testing.assert_allclose(share, trained, atol=0.06)
    np.testing.assert_array_equal(drawn.observations, fitted.sample(3000, random_state=0).observations)


@pytest.mark.parametrize("transition", [None, LowRank(5)], ids=["softmax", "low rank"])
def test_models_come_back_from_files(transition: Any, tmp_path: Any) -> None:
    words = as_sequences([["a", "b", "."], ["b", "b", "a", "."]] * 10)
    fitted = model(2, groups=[0, 0, 1], n_states=4, transition=transition).fit(words, validation=words)
    fitted.save(tmp_path / "model.safetensors")
    loaded = NeuralHMM.load(tmp_path / "model.safetensors", device="cpu")
    same(fitted, loaded)
    assert loaded.score(words) == fitted.score(words)
    assert loaded.trace_ == fitted.trace_
    assert loaded.decode(loaded.sample(5, random_state=0).observations) == fitted.decode(
        fitted.sample(5, random_state=0).observations
    )
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError):
        NeuralHMM.load(tmp_path / "model.safetensors")


def test_mixed_and_single_precision_are_near_double() -> None:
    double, single, mixed = (model(2, precision=kind).fit(text()) for kind in ("double", "single", "mixed"))
    assert np.isclose(single.perplexity(text(1)), double.perplexity(text(1)), rtol=1e-3)
    assert np.isclose(mixed.perplexity(text(1)), double.perplexity(text(1)), rtol=3e-2)


def test_progress_prints_a_line_for_each_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    model(2, progress=True).fit(text(), validation=text(1))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["epoch 1", "epoch 2"]
    assert "averaged" in lines[0]


def test_the_number_of_parameters_of_the_published_size() -> None:
    """2^15 states in 128 groups and 10,000 words; 7.7 million are published for such a model."""
    from subchain.neural.parameters import Networks
    from subchain.neural.transitions import Softmax

    with torch.device("meta"):
        n = sum(parameter.numel() for parameter in Networks(10_000, 128, 256, 256, Softmax()).parameters())
    assert 7.0e6 < n < 7.8e6


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_states": 13}, "n_states=13 cannot be divided among 3 groups"),
        ({"n_states": 0}, "n_states must be a whole number"),
        ({"groups": [0, 1]}, "there is no word at sequence 0"),
        ({"groups": [0, 0, 0, -1, 1]}, "word 3 has no group"),
        ({"groups": [0, 0, 0, 9, 1]}, "there cannot be more groups than words"),
        ({"embedding": 1}, "embedding must be at least 2"),
        ({"transition": "softmax"}, "transition must be Softmax"),
        ({"transition": LowRank(0)}, "features must be a whole number of at least 1"),
        ({"device": "toaster"}, "device must be"),
        ({"batch": "words"}, "unknown batch 'words'"),
        ({"schedule": "linear"}, "unknown schedule"),
        ({"precision": "half"}, "unknown precision"),
        ({"state_dropout": 1.0}, "state_dropout must be a number at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"device": "meta"}, "device must be"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"batch": "sentences", "joined": True}, "batch='sentences' needs independent sequences"),
        ({"groups": "missing.txt"}, "the file 'missing.txt' does not exist|have no vocabulary"),
        ({"patience": 3}, "need the perplexity of validation data"),
        ({"schedule": "plateau"}, "need the perplexity of validation data"),
        ({"epochs": 0}, "epochs must be a whole number"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        model(**({"epochs": 1} | settings)).fit(text())


def test_with_one_group_no_table_of_all_steps_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("subchain.neural.chain.steps")
    fitted = model(1, groups=None).fit(text(), validation=text(1))
    assert np.isfinite(fitted.score(text(1)))


def test_long_sentences_are_decoded_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model(1, groups=None).fit(text())
    x = text(1, 200)
    one = Sequences(np.append(x.values[x.values != 4], 4))
    whole, decoded = fitted.score(one), fitted.predict(one)
    monkeypatch.setattr("subchain.neural.evaluation.ENTRIES", 12 * 7)
    assert np.isclose(fitted.score(one), whole, rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(one), decoded)


@pytest.mark.parametrize("batch", ["pieces", "sentences"])
def test_sentences_may_be_longer_than_a_batch(batch: str) -> None:
    x = text()
    long = Sequences(np.concatenate((x.values[:150], x.values)), np.concatenate(([0], x.offsets + 150)))
    assert np.isfinite(model(1, batch=batch, streams=2, length=4).fit(long).trace_.train[0])


def test_empty_sentences_are_passed_over() -> None:
    x = text()
    gaps = Sequences(x.values, np.sort(np.concatenate((x.offsets, [0, x.offsets[7], x.offsets[-1]]))))
    fitted = model(1).fit(gaps)
    same(fitted, model(1).fit(x))
    assert fitted.perplexity(gaps) == fitted.perplexity(x)
    found = fitted.score_sequences(gaps)
    assert len(found) == gaps.n_sequences
    assert (found[gaps.lengths == 0] == 0.0).all()
    np.testing.assert_allclose(found[gaps.lengths > 0], fitted.score_sequences(x), rtol=1e-12)
    assert [len(path) for path in fitted.predict(gaps)] == gaps.lengths.tolist()


def test_the_score_is_the_sum_over_sequences() -> None:
    fitted, x = model(1).fit(text()), text(1)
    found = fitted.score_sequences(x)
    assert np.isclose(found.sum(), fitted.score(x), rtol=1e-12)
    assert np.isclose(found[3], fitted.score(x[3]), rtol=1e-12)


def test_posteriors_of_very_long_sequences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model(1).fit(text())
    monkeypatch.setattr("subchain.neural.evaluation.MOST_POSTERIOR", 4 * 4 * 5)
    with pytest.raises(InputError, match="at most 5 words are possible. Use to_hmm"):
        fitted.predict_proba(text(1))


def test_a_large_plain_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = model(1).fit(text())
    monkeypatch.setattr("subchain.neural.exporting.MOST_BYTES", 1000)
    with pytest.raises(InputError, match="a plain HMM of 12 states and 5 words needs tables of"):
        fitted.to_hmm()


def test_priors_of_low_rank_transitions_are_refused() -> None:
    with pytest.raises(InputError, match="concentration belong to the prior of an HMM"):
        model(1, transition=LowRank(5, concentration=2.0)).fit(text())


def test_unknown_words_are_scored_as_such_or_refused() -> None:
    words = [["a", "b", "."], ["b", "b", "a", "."]] * 10
    fitted = model(1, groups=[0, 0, 1], n_states=4).fit(words)
    with pytest.warns(UserWarning, match="zebra"), pytest.raises(InputError, match="not in the vocabulary"):
        fitted.score([["a", "zebra", "."]])
    vocabulary = Vocabulary.build([word for line in words for word in line], unknown="<unk>")
    coded = as_sequences(words, vocabulary=vocabulary)
    fitted = model(1, groups=None, n_states=4).fit(coded)
    assert fitted.score([["a", "zebra", "."]]) == fitted.score([["a", "<unk>", "."]])


def test_data_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="there is no word at sequence 0, position 1"):
        model(1).fit([np.array([0, -1, 4])])
    with pytest.raises(InputError, match="one column of words or of codes"):
        model(1).fit(np.array([0.5, 1.0]))
    with pytest.raises(NotFittedError):
        model(1).score(text())
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="needs a GPU"):
            model(1, device="cuda").fit(text())
