"""The estimator `NeuralHMM`: a hidden Markov model with many states whose distributions are functions of embeddings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.core.files import read_arrays, reading, write_arrays
from subchain.data import Sequences, as_sequences, as_sequences_like
from subchain.data.digest import digest
from subchain.data.missing import is_missing
from subchain.data.vocabulary import Vocabulary
from subchain.data.word_groups import word_groups
from subchain.errors import FileFormatError, InputError, not_fitted
from subchain.neural import files
from subchain.neural.batches import Text
from subchain.neural.device import resolve_device
from subchain.neural.emissions import WordTable
from subchain.neural.evaluation import best_states, sample, scores, whole_weights
from subchain.neural.exporting import plain_hmm
from subchain.neural.parameters import PRECISIONS, Networks, Weights
from subchain.neural.progress import printer
from subchain.neural.settings import Training, whole_number
from subchain.neural.training import NeuralTrace, Trainer
from subchain.neural.transitions import transition_of
from subchain.tasks.question import comes_in_list
from subchain.tasks.sampling import Sample

Array = NDArray[np.float64]


class NeuralHMM(Component):
    """A hidden Markov model of text with many states, trained by gradients of the likelihood.

    Distributions of first states, transitions and emissions are functions of embeddings of states and words, so that
    the number of parameters grows slowly with the number of states. With groups of words, a word is emitted only by the
    states of its group, and a step visits (K / G)² transitions. (Chiu & Rush, Scaling Hidden Markov Language Models,
    2020; Chiu, Deng & Rush, Low-Rank Constraints for Fast Inference in Structured Models, 2021.)

    Parameters
    ----------
    n_states : int
        Number of states, K; a multiple of the number of groups.
    groups : (W,) of int, or path, optional
        Group of each word, from 0, or a text file with a word and its group in each line. Without groups every state
        emits every word.
    transition : Softmax or LowRank, optional
        `Softmax()` by default; `LowRank(features=f)` has a generalised softmax, with O(K f) a step without groups.
    embedding : int
        Length of embeddings.
    training : Training, optional
        How it is trained; `Training()` by default.
    joined : bool
        Whether the sequences are one text, so that the first state of a sequence follows the last one of the sequence
        before. By default sequences are independent.
    random_state : int or None
        Seed.
    device : "auto", "cpu" or "cuda"
        Where it is trained and used; "auto" takes a GPU if there is one.
    progress : bool
        Whether to print a line after every epoch.

    Attributes
    ----------
    trace_ : NeuralTrace
        Perplexities and step sizes by epoch.
    networks_ : torch.nn.Module
        The trained parameters.
    n_parameters_ : int
        Number of parameters.
    vocabulary_ : Vocabulary or None
        The words, in the order of their codes.

    Examples
    --------
    >>> from subchain.neural import NeuralHMM, Training
    >>> text = [["a", "b", "."], ["b", "a", "."]] * 20
    >>> model = NeuralHMM(4, embedding=8, training=Training(epochs=2, streams=4, length=6), random_state=0)
    >>> model.fit(text).perplexity(text) < 4
    True
    """

    networks_: Networks
    trace_: NeuralTrace
    vocabulary_: Vocabulary | None
    _weights_cache: Weights | None

    def __init__(
        self,
        n_states: int = 1024,
        groups: Any = None,
        transition: Any = None,
        embedding: int = 256,
        training: Training | None = None,
        joined: bool = False,
        random_state: int | None = None,
        device: str = "auto",
        progress: bool = False,
    ) -> None:
        self.n_states = n_states
        self.groups = groups
        self.transition = transition
        self.embedding = embedding
        self.training = training
        self.joined = joined
        self.random_state = random_state
        self.device = device
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self, x: Any, *, validation: Any = None, checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:  # fmt: skip
        """Learn from sequences of words or codes.

        Parameters
        ----------
        x : Sequences, list of lists of words, array of codes, or path
            Words that end sentences have to be part of the data, so that they count.
        validation : as x, optional
            Held-out data; their perplexity is computed after every epoch, and the best weights are kept.
        checkpoint : path, optional
            File in which the state of the run is stored after every epoch.
        resume : bool, optional
            True continues from the checkpoint, False begins again. Without either, a checkpoint that exists is an
            error.
        """
        settings = Training() if self.training is None else self.training
        settings.check(has_validation=validation is not None)
        data = as_sequences(x)
        self.vocabulary_ = data.vocabulary
        n_words = max(int(data.value_range()[1]) + 1, 1) if data.vocabulary is None else len(data.vocabulary)
        groups = np.zeros(n_words, dtype=np.int64)
        if self.groups is not None:
            groups = word_groups(self.groups, data.vocabulary)
        text = self._text(data, len(groups))
        self._build(groups, settings)
        held_out = None if validation is None else self._text(self._like(validation), len(groups))
        seed = int(np.random.SeedSequence(self.random_state).generate_state(1)[0])
        self._initialise(seed)
        trainer = Trainer(self.networks_, self._table, settings, text, held_out, seed)
        identity = self._identity(settings, text, held_out)
        if checkpoint is not None:
            _check_target(checkpoint, resume)
            if resume and Path(checkpoint).exists():
                files.read_checkpoint(checkpoint, trainer, identity)

        def save(run: Trainer) -> None:
            if checkpoint is not None:
                files.write_checkpoint(checkpoint, run, identity)

        trainer.run(printer(self.progress), save)
        self.networks_.load_state_dict(trainer.best)
        self.trace_ = trainer.trace
        self._end = _common_end(data)
        self._weights_cache = None
        return self

    def _build(self, groups: NDArray[np.int64], settings: Training) -> None:
        """Make the networks for the groups of the words."""
        n_groups = int(groups.max()) + 1
        n_states, width = whole_number("n_states", self.n_states), whole_number("embedding", self.embedding)
        if n_states % n_groups or n_states < n_groups:
            raise InputError(
                f"n_states={n_states} cannot be divided among {n_groups} groups of words; give a multiple of "
                f"{n_groups}."
            )
        if width < 2:
            raise InputError("embedding must be at least 2.")
        device = resolve_device(self.device)
        self._groups, self._table = groups, WordTable.of(groups, device)
        networks = Networks(len(groups), n_groups, n_states // n_groups, width, transition_of(self.transition))
        self.networks_ = networks.to(device=device, dtype=PRECISIONS[settings.precision][0])
        self._weights_cache = None

    def _initialise(self, seed: int) -> None:
        """Draw the parameters, with a generator of the processor, so that they do not depend on the device."""
        state = torch.random.get_rng_state()
        torch.manual_seed(seed)
        fresh = Networks(
            len(self._groups), self._table.n_groups, self.networks_.size, int(self.embedding),
            transition_of(self.transition),
        )  # fmt: skip
        torch.random.set_rng_state(state)
        self.networks_.load_state_dict(fresh.state_dict())

    def _identity(self, settings: Training, text: Text, held_out: Text | None) -> dict[str, Any]:
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "n_states": int(self.n_states), "embedding": int(self.embedding), "joined": bool(self.joined),
            "transition": files.plain_transition(transition_of(self.transition)),
            "training": settings.identity(),
            "groups": digest(self._groups), "random_state": self.random_state,
            "text": digest([text.words, text.begins]),
            "validation": None if held_out is None else digest([held_out.words, held_out.begins]),
        }  # fmt: skip

    # ---- data --------------------------------------------------------------------------------------------------------

    def _like(self, x: Any) -> Sequences:
        """Return data coded with the vocabulary of the training data."""
        return as_sequences_like(x, () if self.vocabulary_ is None else (self.vocabulary_,))

    def _text(self, data: Sequences, n_words: int) -> Text:
        """Return sequences as text; raise an `InputError` for what are not codes of words."""
        if data.n_features != 1 or data.values.dtype.kind not in "iu":
            raise InputError(f"NeuralHMM needs one column of words or of codes, not {data!r}.")
        values = np.asarray(data.values).reshape(-1)
        if not len(values):
            raise InputError("the data hold no words.")
        wrong = np.flatnonzero(is_missing(values) | (values < 0) | (values >= n_words))
        if len(wrong):
            where = data.describe(int(wrong[0]))
            raise InputError(
                f"there is no word at {where}: the code is {values[wrong[0]]}, but words have codes from 0 to "
                f"{n_words - 1}. Missing words are not supported here; to_hmm() gives a model that takes them."
            )
        return Text.of(values, data.offsets, joined=bool(self.joined))

    def _ask(self, x: Any) -> tuple[Sequences, Text, Weights]:
        """Return data, the same as text, and the weights of all states."""
        if "networks_" not in vars(self):
            raise not_fitted(type(self).__name__)
        data = self._like(x)
        text = self._text(data, len(self._groups))
        return data, text, self._weights()

    def _weights(self) -> Weights:
        if self._weights_cache is None:
            self._weights_cache = whole_weights(self.networks_, self._table)
        return self._weights_cache

    # ---- use ---------------------------------------------------------------------------------------------------------

    def score(self, x: Any) -> float:
        """Return the log probability of all sequences."""
        _, text, weights = self._ask(x)
        return float(scores(weights, text).sum())

    def perplexity(self, x: Any) -> float:
        """Return exp of the mean negative log probability of a word; words that end sentences count like others."""
        _, text, weights = self._ask(x)
        return float(np.exp(-scores(weights, text).sum() / len(text.words)))

    def predict(self, x: Any) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        """Return the most probable path of states, as a list if there are several sequences.

        State k belongs to group k // (K / G).
        """
        data, text, weights = self._ask(x)
        states = best_states(weights, text)
        return data.split(states) if comes_in_list(x, data) else states

    def sample(self, n: int, random_state: int | None = None) -> Sample:
        """Draw a text of n words.

        If all training sequences ended with the same word, and sequences are independent, a first state follows it.
        """
        self._check_fitted()
        seed = int(np.random.SeedSequence(random_state).generate_state(1)[0])
        end = None if self.joined else self._end
        words, states = sample(self._weights(), whole_number("n", n), end, seed)
        return Sample(words, states)

    def decode(self, words: NDArray[np.int64]) -> list[str | None]:
        """Return the words with the given codes, for data that had a vocabulary."""
        self._check_fitted()
        if self.vocabulary_ is None:
            raise InputError("the model was fitted to codes, so it knows no words.")
        return self.vocabulary_.decode(words)

    def to_hmm(self) -> Any:
        """Return a plain `HMM` with the same distributions, whose transition matrix is (K, K).

        It scores independent sequences in the same way. States keep their numbers.
        """
        self._check_fitted()
        return plain_hmm(self._weights(), self._groups, self.vocabulary_)

    @property
    def n_parameters_(self) -> int:
        """Number of parameters."""
        self._check_fitted()
        return sum(parameter.numel() for parameter in self.networks_.parameters())

    def _check_fitted(self) -> None:
        if "networks_" not in vars(self):
            raise not_fitted(type(self).__name__)

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, exactly and atomically; `NeuralHMM.load` reads it."""
        self._check_fitted()
        arrays = files.plain_tensors("networks", self.networks_.state_dict())
        arrays["groups"] = self._groups
        for name in files.TRACE:
            arrays[f"trace.{name}"] = np.array(getattr(self.trace_, name), dtype=np.float64)
        precision = (self.training or Training()).precision
        header = {
            "kind": files.MODEL, "version": files.VERSION, "n_states": int(self.n_states),
            "embedding": int(self.embedding), "joined": bool(self.joined), "precision": precision,
            "transition": files.plain_transition(transition_of(self.transition)), "end": self._end,
            "vocabulary": files.plain_vocabulary(self.vocabulary_),
        }  # fmt: skip
        write_arrays(path, arrays, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Self:
        """Return the model of a file that `save` wrote, on a device."""
        arrays, header = read_arrays(path, files.MODEL)
        files.check_version(header, path)
        with reading(path):
            training = Training(precision=header["precision"])
            training.check(has_validation=False)
            groups = word_groups(arrays["groups"], None)
            model = cls(
                header["n_states"], groups, files.transition_from(header["transition"]), header["embedding"], training,
                header["joined"], device=device,
            )  # fmt: skip
            model.vocabulary_ = files.vocabulary_from(header["vocabulary"])
            if model.vocabulary_ is not None and len(model.vocabulary_) != len(groups):
                raise FileFormatError(f"{path} is damaged: its vocabulary does not fit its groups.")
            model._build(groups, training)
            files.load_into(model.networks_, arrays, "networks", path)
            model.trace_ = NeuralTrace(**{name: arrays[f"trace.{name}"].tolist() for name in files.TRACE})
            model._end = header["end"]
        return model


def _check_target(checkpoint: str | os.PathLike[str], resume: bool | None) -> None:
    """Raise an `InputError` for a checkpoint that would be overwritten."""
    if resume is None and Path(checkpoint).exists():
        raise InputError(
            f"the checkpoint {os.fspath(checkpoint)!r} exists already: resume=True continues the run that wrote it, "
            "resume=False begins again and overwrites it."
        )


def _common_end(data: Sequences) -> int | None:
    """Return the word that all sequences end with, if it stands nowhere else."""
    lasts = data.offsets[1:][data.lengths > 0] - 1
    words = np.asarray(data.values).reshape(-1)
    ends = np.unique(words[lasts])
    is_end = len(ends) == 1 and np.count_nonzero(words == ends[0]) == len(lasts)
    return int(ends[0]) if is_end else None
