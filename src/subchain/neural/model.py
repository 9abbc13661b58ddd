"""The estimator `NeuralHMM`: a hidden Markov model with many states whose distributions are functions of embeddings."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.data import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError, not_fitted
from subchain.neural import files
from subchain.neural.batches import Text
from subchain.neural.evaluation import best_states, perplexity, posteriors, sample, scores
from subchain.neural.exporting import plain_hmm
from subchain.neural.fitted import Trained
from subchain.neural.parameters import Networks
from subchain.neural.preparation import NeuralFit
from subchain.neural.reading import data_like, text_of
from subchain.neural.settings import Training, whole_number
from subchain.neural.training import NeuralTrace
from subchain.numerics.seeds import seed_sequence
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
    random_state : int, numpy Generator or None
        Seed.
    device : "auto", "cpu", "cuda" or "cuda:0"
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

    _found: Trained | None = None

    def __init__(
        self,
        n_states: int = 1024,
        groups: Any = None,
        transition: Any = None,
        embedding: int = 256,
        training: Training | None = None,
        joined: bool = False,
        random_state: Any = None,
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

        Ctrl-C ends the fit with the result of the last whole epoch, if there is one, and a warning. A fit that is
        refused or fails leaves the model as it was.

        Parameters
        ----------
        x : Sequences, list of lists of words, array of codes, or path
            Words that end sentences have to be part of the data, so that they count. Empty sequences are passed over.
        validation : as x, optional
            Held-out data; their perplexity is computed after every epoch, and the best weights are kept.
        checkpoint : path, optional
            File in which the state of the run is stored after every epoch.
        resume : bool, optional
            True continues from the checkpoint, False begins again. Without either, a checkpoint that exists is an
            error.

        Raises
        ------
        InferenceError
            If training diverges: a perplexity or a parameter is not finite. The checkpoint is that of the epoch before.
        """
        self._found = NeuralFit(self, x, validation, checkpoint, resume).run()
        return self

    @property
    def _trained(self) -> Trained:
        if self._found is None:
            raise not_fitted(type(self).__name__)
        return self._found

    def __sklearn_is_fitted__(self) -> bool:
        return self._found is not None

    @property
    def networks_(self) -> Networks:
        """The trained parameters."""
        return self._trained.networks

    @property
    def trace_(self) -> NeuralTrace:
        """Perplexities and step sizes by epoch."""
        return self._trained.trace

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """The words, in the order of their codes."""
        return self._trained.vocabulary

    @property
    def n_parameters_(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.networks_.parameters())

    # ---- use ---------------------------------------------------------------------------------------------------------

    def _read(self, x: Any) -> tuple[Sequences, Text]:
        """Return data, and the same as text."""
        trained = self._trained
        data = data_like(x, trained.vocabulary)
        return data, text_of(data, trained.table.n_words, joined=trained.joined)

    def score(self, x: Any) -> float:
        """Return the log probability of all sequences."""
        return float(scores(self._trained.weights, self._read(x)[1]).sum())

    def score_sequences(self, x: Any) -> Array:
        """Return the log probability of each sequence, (n_sequences,); that of an empty one is zero.

        Joined sequences are one text, with one log probability, (1,).
        """
        data, text = self._read(x)
        found = scores(self._trained.weights, text)
        if self._trained.joined:
            return found
        out = np.zeros(data.n_sequences)
        out[data.lengths > 0] = found
        return out

    def perplexity(self, x: Any) -> float:
        """Return exp of the mean negative log probability of a word; words that end sentences count like others."""
        text = self._read(x)[1]
        return perplexity(float(scores(self._trained.weights, text).sum()), len(text.words))

    def predict(self, x: Any) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        """Return the most probable path of states, as a list if there are several sequences.

        State k belongs to group k // (K / G).
        """
        data, text = self._read(x)
        states = best_states(self._trained.weights, text)
        return data.split(states) if comes_in_list(x, data) else states

    def predict_proba(self, x: Any) -> Array | list[Array]:
        """Return the posterior marginals of the states, (N, K), as a list if there are several sequences."""
        data, text = self._read(x)
        found = posteriors(self._trained.weights, text)
        return data.split(found) if comes_in_list(x, data) else found

    def sample(self, n: int, random_state: Any = None) -> Sample:
        """Draw a text of n words.

        If all training sequences ended with the same word, and sequences are independent, a first state follows it.
        """
        trained = self._trained
        rng = np.random.default_rng(seed_sequence(random_state))
        return Sample(*sample(trained.weights, whole_number("n", n), None if trained.joined else trained.end, rng))

    def decode(self, words: NDArray[np.int64]) -> list[str | None]:
        """Return the words with the given codes, for data that had a vocabulary."""
        if self.vocabulary_ is None:
            raise InputError("the model was fitted to codes, so it knows no words.")
        return self.vocabulary_.decode(words)

    def to_hmm(self) -> Any:
        """Return a plain `HMM` with the same distributions.

        Its transition matrix is (K, K), or a product of factors for `LowRank`. It scores independent sequences in the
        same way. States keep their numbers.
        """
        trained = self._trained
        return plain_hmm(trained.weights, trained.groups, trained.vocabulary)

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, exactly and atomically; `NeuralHMM.load` reads it."""
        files.write_model(path, self._trained)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Self:
        """Return the model of a file that `save` wrote, on a device."""
        found = files.read_model(path, device)
        networks = found.networks
        model = cls(
            networks.n_groups * networks.size, found.groups, found.transition, networks.width,
            Training(precision=found.precision), found.joined, device=device,
        )  # fmt: skip
        model._found = found
        return model
