"""The estimator: one class that wires data, families, priors, inference and engines together.

It follows scikit-learn's life cycle: the constructor only stores, `fit` learns, what was learned ends in an
underscore. What a fitted model can be used for lives in `subchain.tasks`; the methods here only pass on.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from subchain.data import Evidence, Sequences, as_sequences
from subchain.emissions import Emission, Frozen, Parameters, family_of, resolve_emission
from subchain.engines import resolve_engine
from subchain.errors import ConvergenceWarning, InputError, unknown_name
from subchain.inference import Algorithm, resolve_inference
from subchain.inference.checkpoint import Checkpoint, Journey, RunSummary
from subchain.inference.loop import RunState
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Part, Problem
from subchain.inference.progress import Progress
from subchain.inference.restarts import best_of
from subchain.inference.starts import STARTS, start_statistics
from subchain.inference.trace import Status, Trace
from subchain.persistence import load_model, save_model
from subchain.settings import describe
from subchain.statistics import Statistics
from subchain.tasks.beliefs import filtered, smoothed
from subchain.tasks.blocks import smoothed_blocks
from subchain.tasks.decoding import decode_states
from subchain.tasks.forecast import forecast
from subchain.tasks.imputation import impute
from subchain.tasks.matching import emission_distance, match, overlap
from subchain.tasks.output import Out
from subchain.tasks.question import Question, comes_in_list
from subchain.tasks.sampling import sample, sample_onward, sample_parameters, sample_paths
from subchain.tasks.scores import aic, bic, n_parameters, score_sequences
from subchain.tasks.states import (
    checked_names,
    dwell_times,
    effective_states,
    inherit_names,
    occupancy,
    rising,
    state_keys,
)
from subchain.tasks.stream import Stream
from subchain.tasks.surprise import score_left_out, score_masked, score_steps
from subchain.transitions import FrozenChain, TransitionPrior, check_chain, resolve_transition

Array = NDArray[np.float64]


class HMM(BaseEstimator):  # type: ignore[misc]
    """A hidden Markov model.

    Parameters
    ----------
    n_states : int
        Number of hidden states.
    emission : str or Emission
        What states emit: "categorical", "gaussian", "diagonal_gaussian", "poisson", "bernoulli", or an object.
    transition : str or TransitionPrior, optional
        Prior over the hidden chain; `Dirichlet()` by default.
    inference : str or Algorithm
        "vi", "em", or an object with settings, `VI(max_iter=50)`.
    n_init : int
        Number of runs from different starts; the best by its objective is kept.
    init : str or HMM
        "auto", "kmeans", "random", "exponential", or a model whose parameters the run starts from, exactly.
    random_state : int, numpy Generator or None
        Seed; each restart has its own stream.
    n_jobs : int, optional
        Processor cores, all by default. Results do not depend on it.
    engine : str
        "auto" or "cpu".
    progress : bool or "auto"
        Whether to show progress; "auto" only on a terminal.

    Attributes
    ----------
    initial_, transition_ : (K,), (K, K)
        Posterior means (EM: the estimate).
    emission_ : Parameters
        `probabilities`, `means`, `covariances`, `variances` or `rates`, by family.
    posterior_ : ModelPosterior
        The full posterior of chain and emissions.
    statistics_ : Statistics
        Expected counts that the posterior was made from.
    trace_, status_, runs_
        The course of the best run, why it ended, and every restart's objective.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM
    >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
    >>> model = HMM(n_states=2, emission="categorical", random_state=0).fit(x)
    >>> model.transition_.shape
    (2, 2)
    """

    def __init__(
        self,
        n_states: int = 2,
        emission: str | Emission = "gaussian",
        transition: str | TransitionPrior | None = None,
        inference: str | Algorithm | None = "vi",
        n_init: int = 1,
        init: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        engine: str = "auto",
        progress: bool | str = "auto",
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.transition = transition
        self.inference = inference
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: None = None,
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
        sample_weight: ArrayLike | None = None,
        validation: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from sequences.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the hidden states: legal states per symbol or position, known states (−1 unknown), log
            weights per position and state.
        sample_weight : (n_sequences,), optional
            How often each sequence counts.
        validation : as x, optional
            Held-out data, scored after every iteration.
        checkpoint : path, optional
            File that keeps the state of the run.
        resume : bool
            Continue from the checkpoint.
        """
        fit = _Fit(self, x, allowed, states, evidence, sample_weight, validation)
        marks = Checkpoint(checkpoint, fit.identity())
        journey = marks.load() if resume else Journey()
        with Progress(self.progress, fit.algorithm.max_iter, fit.data.n_observations, self.n_init) as progress:
            best_of(fit.problem, fit.algorithm, fit.starts(), journey, marks, progress)
        self._adopt(fit, journey)
        return self

    def _adopt(self, fit: _Fit, journey: Journey) -> None:
        best = journey.best
        assert best is not None
        assert best.status is not None
        self.point_: Point = best.point
        self.prior_: ModelPosterior = fit.problem.prior
        self.statistics_: Statistics = best.statistics if best.statistics is not None else fit.empty
        self.trace_: Trace = best.trace
        self.status_: Status = best.status
        self.runs_: list[RunSummary] = journey.summaries
        self.n_states_: int = self.n_states
        self.family_: Emission = fit.emission
        self.vocabularies_ = fit.data.vocabularies
        self.columns_ = fit.data.columns
        self.n_sequences_: int = fit.data.n_sequences
        self.state_names_ = [str(state) for state in range(self.n_states)]
        if self.status_ == "max_iter" and fit.algorithm.tolerance > 0.0:
            warnings.warn(
                f"{type(fit.algorithm).__name__} stopped after {best.iteration} iterations before it settled; "
                f"raise max_iter, or loosen tolerance={fit.algorithm.tolerance:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.status_ == "interrupted":
            warnings.warn("the fit was interrupted; the model is that of the last whole iteration.", stacklevel=3)

    def partial_fit(self, x: Any, y: None = None, *, total: float | None = None) -> Self:
        """Learn from one more batch of sequences.

        Parameters
        ----------
        x : as in `fit`
        total : float, optional
            Number of observations of the whole stream, if it is known. Then every batch stands for all of it, and the
            statistics move towards the batch's by a step that shrinks with the number of batches. Without it batches
            simply add up, as new data do.
        """
        if not hasattr(self, "point_"):
            fit = _Fit(self, x, None, None, None, None, None)
            self._adopt(fit, Journey(best=fit.starts()[0](), current=None))
            self.statistics_ = fit.empty
            self.n_batches_ = 0
        part = Part(self._read(x))
        algorithm = resolve_inference(self.inference)
        posterior = self.posterior_
        first = self.n_batches_ == 0
        surrogate = self.point_.surrogate() if first else algorithm.surrogate(posterior, self.point_)
        engine = resolve_engine(self.engine, self.n_jobs)
        fresh = engine.statistics(surrogate, part.data)
        if total is None:
            self.statistics_ = self.statistics_ + fresh
        else:
            rate = (1.0 + self.n_batches_) ** -0.5
            scale = total / max(fresh.n_observations, 1.0)
            self.statistics_ = self.statistics_.scale(1.0 - rate) + fresh.scale(rate * scale)
        self.n_batches_ += 1
        self.point_, _ = algorithm.point(self.posterior_, self.statistics_, self.point_)
        return self

    @classmethod
    def from_parameters(cls, initial: ArrayLike, transition: ArrayLike, emission: Parameters, **settings: Any) -> Self:
        """A model with known parameters, ready for use or as the start of a fit.

        Parameters
        ----------
        initial : (K,)
        transition : (K, K)
        emission : parameters, for example `Categorical.from_parameters(probabilities)`
        settings : further arguments of the constructor

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).score([0, 0, 1])
        -2.0
        """
        chain = check_chain(initial, transition)
        if not isinstance(emission, Parameters):
            raise InputError(
                f"emission must be parameters, such as Categorical.from_parameters(...), not {type(emission).__name__}."
            )
        if emission.n_states != len(chain.initial):
            raise InputError(f"emission has {emission.n_states} states, the chain {len(chain.initial)}.")
        family = family_of(emission)
        model = cls(n_states=len(chain.initial), emission=family, **settings)
        model._become(Point(chain, emission), family)
        return model

    def _become(self, point: Point, family: Emission) -> None:
        """Take a point as if it had been learned."""
        self.point_ = point
        self.prior_ = ModelPosterior(FrozenChain(point.chain), Frozen(point.emission))
        self.statistics_ = Statistics.zeros(len(point.chain.initial), point.emission.zeros())
        self.trace_, self.status_, self.runs_ = Trace(), "converged", []
        self.n_states_ = len(point.chain.initial)
        self.family_ = family
        self.vocabularies_ = ()
        self.columns_ = None
        self.n_sequences_ = 0
        self.state_names_ = [str(state) for state in range(self.n_states_)]

    def _read(self, x: Any) -> Sequences:
        """Data for a fitted model: coded with its vocabulary, checked by its family."""
        data = as_sequences(x, vocabulary=self.vocabularies_ if any(self.vocabularies_) else None)
        self.family_.check_against(data, self.emission_)
        return data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, exactly and atomically; `HMM.load` reads it back."""
        check_is_fitted(self, "point_")
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return load_model(cls, path)

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def initial_(self) -> Array:
        """Probabilities of the first state, (K,)."""
        return self._point().chain.initial

    @property
    def transition_(self) -> Array:
        """Probabilities of moves from row to column, (K, K)."""
        return self._point().chain.transition

    @property
    def emission_(self) -> Parameters:
        """Parameters of what the states emit."""
        return self._point().emission

    @property
    def posterior_(self) -> ModelPosterior:
        """Posterior of chain and emissions."""
        check_is_fitted(self, "point_")
        return self.prior_.update(self.statistics_)

    def _point(self) -> Point:
        check_is_fitted(self, "point_")
        return self.point_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "point_")

    # ---- use ---------------------------------------------------------------------------------------------------------

    def predict(
        self,
        x: Any,
        decoding: str = "posterior",
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
        out: Out = None,
    ) -> Any:
        """Find the hidden states, using the whole of each sequence, the future included.

        For states that know the past alone take the largest of `filter`.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        decoding : "posterior" or "viterbi"
            The most probable state of each position, or the states of the most probable path. The first is right at the
            most positions; the second never makes an impossible move.
        allowed, states, evidence
            What is known of the states, as in `fit`.
        out : array of integers (N,), or path of an .npy file, optional
            Where the states are written.

        Returns
        -------
        array of int, shape (T,); a list of them for several sequences

        Raises
        ------
        ImpossibleSequenceError
            If no path of states explains a sequence; the message says where.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.predict([0, 0, 0, 1, 1, 1])
        array([0, 0, 0, 1, 1, 1], dtype=int32)
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(decode_states(question, decoding, out))

    def predict_proba(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None
    ) -> Any:
        """Probability of each state at each position, given the whole sequence, the future included.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the states, as in `fit`.
        out : array of floating numbers (N, K), or path of an .npy file, optional
            Where the probabilities are written. A path is for answers larger than memory: what comes back is
            memory-mapped.

        Returns
        -------
        array, shape (T, K); a list of them for several sequences

        See Also
        --------
        filter : given the past alone
        predict_proba_blocks : block by block, for answers that are never kept

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.predict_proba([0, 0, 1]).round(3)
        array([[0.824, 0.176],
               [0.763, 0.237],
               [0.407, 0.593]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(smoothed(question, out))

    def predict_proba_blocks(
        self, x: Any, block: int = 1 << 16, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> Iterator[tuple[int, Array]]:
        """Probabilities of the states, block by block, for data whose answer fits neither into memory nor on the disk.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        block : int
            Largest number of positions in a block. No block crosses the border between two sequences.
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Yields
        ------
        start : int
            Number of the block's first position, counted over all sequences.
        probabilities : array, shape (n, K)

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> for start, probabilities in model.predict_proba_blocks([0, 0, 1], block=2):
        ...     print(start, probabilities.round(3).tolist())
        0 [[0.824, 0.176], [0.763, 0.237]]
        2 [[0.407, 0.593]]
        """
        return smoothed_blocks(self._ask(x, allowed, states, evidence), block)

    def filter(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None
    ) -> Any:
        """Probability of each state at each position, given the observations up to there: no look into the future.

        Parameters
        ----------
        x, allowed, states, evidence, out
            As in `predict_proba`.

        Returns
        -------
        array, shape (T, K); a list of them for several sequences

        See Also
        --------
        stream : the same, one observation at a time

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.filter([0, 0, 1]).round(3)
        array([[0.818, 0.182],
               [0.933, 0.067],
               [0.407, 0.593]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(filtered(question, out))

    def stream(self, lag: int = 0) -> Stream:
        """A filter to be told one observation at a time.

        Parameters
        ----------
        lag : int
            How many positions back `smoothed` looks, given everything since.

        Returns
        -------
        Stream
            `update(x)` takes an observation and returns the probabilities of the states now; `probabilities`,
            `predicted`, `smoothed`, `log_likelihood` and `step_log_likelihood` say how things stand.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> stream = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).stream()
        >>> stream.update(0).round(3)
        array([0.818, 0.182])
        >>> stream.update(None).round(3)
        array([0.755, 0.245])
        """
        point = self._point()
        return Stream(point, self.family_, self.vocabularies_[0] if len(self.vocabularies_) == 1 else None, lag)

    def score(self, x: Any, y: None = None, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> float:
        """Log likelihood of all sequences together, under the posterior mean of the parameters.

        An impossible sequence makes it −inf, with a warning that says which and where.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> round(HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).score([0, 0, 1]), 4)
        -2.4864
        """
        return float(score_sequences(self._ask(x, allowed, states, evidence)).sum())

    def score_sequences(self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> Array:
        """Log likelihood of each sequence, shape (n_sequences,); −inf for impossible ones, with one warning.

        Divide by the lengths to compare sequences of unequal length.

        Parameters
        ----------
        x, allowed, states, evidence
            As in `score`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_sequences([[0, 0, 1], [1]]).round(4)
        array([-2.4864, -0.7985])
        """
        return score_sequences(self._ask(x, allowed, states, evidence))

    def score_samples(self, x: Any, mask: Any = None) -> Any:
        """Log probability of each observation given all others of its sequence, before it and after it.

        Low values are observations that do not fit where they stand. Missing observations have 0.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        mask : booleans (N,), or a list with an array for each sequence, optional
            Positions to hold out: all of them are taken as missing at once, and each is scored given what is left.
            Positions that are not masked have 0.

        Returns
        -------
        array, shape (T,); a list of them for several sequences

        See Also
        --------
        score_steps : given the past alone

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_samples([0, 0, 1, 0, 0]).round(2)
        array([-0.36, -0.38, -2.1 , -0.38, -0.36])
        """
        question = self._ask(x)
        scores = score_left_out(question) if mask is None else score_masked(question, mask)
        return question.answer(scores)

    def score_steps(self, x: Any) -> Any:
        """Log probability of each observation given those before it; a sequence's sum is its log likelihood.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table

        Returns
        -------
        array, shape (T,); a list of them for several sequences

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_steps([0, 0, 1]).round(4)
        array([-0.5978, -0.3172, -1.5714])
        """
        question = self._ask(x)
        return question.answer(score_steps(question))

    def sample(self, n: int, given: Any = None, random_state: Any = None) -> Any:
        """Draw a sequence from the model, or the continuation of a sequence.

        Parameters
        ----------
        n : int
            Number of observations.
        given : sequence or sequences, optional
            The past; what is drawn follows it.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.

        Returns
        -------
        Sample
            `observations` (n,) or (n, D) and `states` (n,); a list of them if several sequences are given.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[1.0, 0.0], [0.0, 1.0]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], emission)
        >>> model.sample(5, given=[0, 1, 0], random_state=0).observations
        array([1, 0, 1, 0, 1])
        """
        rng = np.random.default_rng(_seeds(random_state))
        if given is None:
            return sample(self._point(), n, rng)
        question = self._ask(given)
        return question.answers(sample_onward(question, n, rng))

    def sample_paths(
        self,
        x: Any,
        n: int,
        random_state: Any = None,
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
    ) -> Any:
        """Draw hidden paths from their distribution given the whole sequence.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        n : int
            Number of paths.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Returns
        -------
        array of int, shape (n, T); a list of them for several sequences

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.sample_paths([0, 0, 1], n=1000, random_state=0).shape
        (1000, 3)
        """
        question = self._ask(x, allowed, states, evidence)
        paths = sample_paths(question, n, _seeds(random_state))
        return [part.T for part in question.data.split(paths.T)] if question.in_list else paths

    def sample_parameters(self, n: int, random_state: Any = None) -> list[Point]:
        """Draw models from the posterior, for intervals of anything that is computed from parameters.

        Components that are frozen or were given stay as they are.

        Parameters
        ----------
        n : int
            Number of draws.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.

        Returns
        -------
        list of Point
            Each with `chain.initial`, `chain.transition` and `emission`, as `HMM.from_parameters` takes them.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
        >>> draws = model.sample_parameters(200, random_state=0)
        >>> np.array([point.chain.transition[0, 0] for point in draws]).std() < 0.1
        np.True_
        """
        return sample_parameters(self.posterior_, n, np.random.default_rng(_seeds(random_state)))

    def forecast(self, x: Any, steps: int) -> Any:
        """The distribution of the observations that follow: at each step the exact mixture over the states.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
            The past.
        steps : int
            How far to look ahead.

        Returns
        -------
        Forecast
            `states` (steps, K), `mean`, `variance`, `quantiles(q)`, `cdf`, and, for symbols and counts, `probabilities`
            and `pmf`; a list of them for several sequences.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.forecast([0, 0, 1], steps=2).states.round(3)
        array([[0.426, 0.574],
               [0.441, 0.559]])
        """
        question = self._ask(x)
        return question.answers(forecast(question, steps))

    def impute(self, x: Any) -> Any:
        """The data with missing entries replaced by what the model expects there, given everything observed.

        Numbers are replaced by their expectation, symbols by the most probable one. Observed entries stay as they are.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table

        Returns
        -------
        array of the shape of x, or a list of them for several sequences; codes for symbols, floating numbers otherwise

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.impute([0, 0, -1, 0, 1, 1, -1])
        array([0, 0, 0, 0, 1, 1, 1])
        """
        question = self._ask(x)
        return question.answer(impute(question))

    def expected_statistics(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> Statistics:
        """Expected counts of states, moves and emissions, given the data; those of parts of the data add up.

        Parameters
        ----------
        x, allowed, states, evidence
            As in `score`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.expected_statistics([0, 0, 1]).pairs.round(3)
        array([[1.149, 0.438],
               [0.022, 0.392]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.engine.statistics(question.surrogate, question.data, question.evidence)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters that were learned; those frozen or given do not count."""
        return n_parameters(self._point(), self.prior_)

    def aic(self, x: Any) -> float:
        """Akaike's information criterion of the data, −2 log L + 2 p; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.aic(x) < one.aic(x)
        True
        """
        return aic(self._ask(x), self.n_parameters_)

    def bic(self, x: Any) -> float:
        """Schwarz's Bayesian information criterion of the data, −2 log L + p log n; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.bic(x) < one.bic(x)
        True
        """
        return bic(self._ask(x), self.n_parameters_)

    # ---- states ------------------------------------------------------------------------------------------------------

    @property
    def dwell_times_(self) -> Array:
        """Expected number of positions that a visit of each state lasts, 1 / (1 − A_kk), (K,)."""
        return dwell_times(self.transition_)

    @property
    def state_occupancy_(self) -> Array:
        """Share of the training data's positions in each state, (K,); of a model without data, in the long run."""
        return occupancy(self.transition_, self.statistics_)

    def effective_states(self, coverage: float = 0.99) -> int:
        """The least number of states that together hold this share of the positions.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> HMM(5, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50)).effective_states() <= 5
        True
        """
        return effective_states(self.state_occupancy_, coverage)

    @property
    def state_names_(self) -> list[str]:
        """Names of the states, one for each; they can be set, and stay with their states."""
        self._point()
        return self._state_names

    @state_names_.setter
    def state_names_(self, names: Iterable[str]) -> None:
        self._state_names = checked_names(names, len(self._point().chain.initial))

    def order_states(self, by: str | Callable[[Self], ArrayLike] = "occupancy", column: str | int = 0) -> Self:
        """Put the states in order, so that those of one fit can be told from those of the next.

        Everything that was learned is reordered, names included.

        Parameters
        ----------
        by : "occupancy", "mean", "dwell", or a function
            Most visited first; smallest mean of a column first; longest lasting first; or a function of the model that
            gives one number a state, smallest first.
        column : str or int
            The column whose mean counts.

        Returns
        -------
        self

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.7, 0.3], [0.1, 0.9]], emission)
        >>> model.order_states(by="dwell").transition_
        array([[0.9, 0.1],
               [0.3, 0.7]])
        """
        keys = by(self) if callable(by) else state_keys(by, self._point(), self.state_occupancy_, self.columns_, column)
        return self._reorder(rising(keys, self.n_states_))

    def align_to(self, other: HMM, x: Any = None) -> Self:
        """Put the states in the order of another model's, each beside the one that it resembles, and take their names.

        Where this model has more states, those without a counterpart come last and keep their names.

        Parameters
        ----------
        other : HMM
        x : data, optional
            Match states that are found at the same positions of these data, instead of states that emit alike.

        Returns
        -------
        self

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.7, 0.3], [0.1, 0.9]], emission)
        >>> other = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], emission.take([1, 0]))
        >>> model.align_to(other).transition_
        array([[0.9, 0.1],
               [0.3, 0.7]])
        """
        if x is None:
            cost = emission_distance(self.emission_, other.emission_)
        else:
            cost = -overlap(self.predict_proba_blocks(x), other.predict_proba_blocks(x))
        order, theirs = match(cost)
        self._reorder(order)
        self.state_names_ = inherit_names(self.state_names_, [other.state_names_[state] for state in theirs])
        return self

    def _reorder(self, order: NDArray[np.int64]) -> Self:
        self.point_, self.prior_ = self.point_.take(order), self.prior_.take(order)
        self.statistics_ = self.statistics_.take(order)
        self.state_names_ = [self.state_names_[state] for state in order]
        return self

    def _ask(self, x: Any, allowed: Any = None, states: Any = None, evidence: Any = None) -> Question:
        """The data as a question to this model."""
        point, data = self._point(), self._read(x)
        n_symbols = getattr(point.emission, "n_categories", None)
        known = Evidence.build(data, self.n_states_, allowed, states, evidence, n_symbols)
        return Question(point, resolve_engine(self.engine, self.n_jobs), data, known, comes_in_list(x, data))


class _Fit:
    """One call of `fit`, its arguments checked and understood."""

    def __init__(
        self, model: HMM, x: Any, allowed: Any, states: Any, evidence: Any, sample_weight: Any, validation: Any
    ) -> None:
        self.model = model
        if not isinstance(model.n_states, (int, np.integer)) or model.n_states < 1:
            raise InputError(f"n_states must be a whole number of at least 1, not {model.n_states!r}.")
        if not isinstance(model.n_init, (int, np.integer)) or model.n_init < 1:
            raise InputError(f"n_init must be a whole number of at least 1, not {model.n_init!r}.")
        n_states = int(model.n_states)
        self.algorithm = resolve_inference(model.inference)
        self.algorithm.check()
        self.emission = resolve_emission(model.emission)
        self.transition = resolve_transition(model.transition)
        self.data = as_sequences(x)
        self.emission.check(self.data)
        self.start_point = self._given_start(n_states)
        flat = self.algorithm.flat
        likely = self.emission.prior(self.data, n_states, flat=False).mean()
        self.reference = Point(self.transition.prior(n_states, flat=False).mean(), likely)
        self.empty = Statistics.zeros(n_states, likely.zeros())
        prior = ModelPosterior(
            self.transition.prior(n_states, flat=flat), self.emission.prior(self.data, n_states, flat=flat)
        )
        engine = resolve_engine(model.engine, model.n_jobs)
        whole = Part(
            self.data,
            Evidence.build(
                self.data, n_states, allowed, states, evidence, n_symbols=getattr(likely, "n_categories", None)
            ),
            _weights(sample_weight, self.data.n_sequences),
        )
        held_out = None if validation is None else Part(self._like_training(validation))
        self.problem = Problem(whole, prior, engine, self.transition.exact, held_out)
        self.seeds = _seeds(model.random_state).spawn(int(model.n_init))
        self._freeze()

    def _like_training(self, x: Any) -> Sequences:
        vocabularies = self.data.vocabularies
        data = as_sequences(x, vocabulary=vocabularies if any(vocabularies) else None)
        self.emission.check(data)
        return data

    def _given_start(self, n_states: int) -> Point | None:
        init = self.model.init
        if isinstance(init, str):
            if init not in STARTS:
                raise unknown_name("start", init, STARTS)
            return None
        if not isinstance(init, HMM):
            raise InputError(f"init must be one of {', '.join(map(repr, STARTS))} or a fitted HMM, not {init!r}.")
        point = init._point()
        if len(point.chain.initial) != n_states:
            raise InputError(f"init has {len(point.chain.initial)} states, the model {n_states}.")
        if not isinstance(point.emission, self.emission.parameters_type()):
            raise InputError(
                f"init emits {type(point.emission).__name__}, but emission={self.emission!r} "
                f"needs {self.emission.parameters_type().__name__}."
            )
        return point

    def _freeze(self) -> None:
        """Put frozen components at the start's point, once and for all restarts."""
        if not (self.emission.has_frozen or self.transition.frozen):
            return
        start = self.start_point or self._guess(np.random.default_rng(self.seeds[0])).point
        prior = self.problem.prior
        chain = FrozenChain(start.chain) if self.transition.frozen else prior.chain
        self.problem.prior = ModelPosterior(chain, self.emission.freeze(prior.emission, start.emission))

    def starts(self) -> list[Callable[[], RunState]]:
        if self.start_point is not None:
            point = self.start_point
            return [lambda: RunState(None, point)]
        return [lambda seed=seed: self._guess(np.random.default_rng(seed)) for seed in self.seeds]  # type: ignore[misc]

    def _guess(self, rng: np.random.Generator) -> RunState:
        init = "auto" if not isinstance(self.model.init, str) else self.model.init
        statistics = start_statistics(self.data, self.emission, self.reference.emission, init, rng)
        point, _ = self.algorithm.point(self.problem.prior.update(statistics), statistics, None)
        return RunState(statistics, point)

    def identity(self) -> dict[str, Any]:
        """What must agree for a checkpoint to be resumed."""
        model = self.model
        return {
            "data": self.data.fingerprint(),
            "n_states": int(model.n_states),
            "emission": describe(self.emission, model.n_states),
            "transition": describe(self.transition, model.n_states),
            "inference": type(self.algorithm).__name__,
            "n_init": int(model.n_init),
            "random_state": repr(model.random_state),
        }


def _weights(given: ArrayLike | None, n_sequences: int) -> Array | None:
    if given is None:
        return None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n_sequences,):
        raise InputError(f"sample_weight has shape {weights.shape}; expected one for each of {n_sequences} sequences.")
    if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
        raise InputError("sample_weight must be finite, not negative, and not all zero.")
    return weights


def _seeds(random_state: Any) -> np.random.SeedSequence:
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.SeedSequence(random_state)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    raise InputError(f"random_state must be a whole number, a numpy Generator or None, not {random_state!r}.")
