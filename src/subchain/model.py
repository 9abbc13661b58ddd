"""The estimator: one class that wires data, families, priors, inference and engines together.

It follows scikit-learn's life cycle: the constructor only stores, `fit` learns, what was learned ends in an
underscore. What a fitted model can be used for lives in `subchain.tasks`; the methods here only pass on.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
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
        self.state_names_: list[str] = [str(state) for state in range(self.n_states)]
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
