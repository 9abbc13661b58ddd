"""The estimator: one class that wires data, families, priors, inference and engines together.

It follows scikit-learn's life cycle: the constructor only stores, `fit` learns, what was learned ends in an
underscore. What a fitted model can be used for lives in `subchain.tasks`; the methods here only pass on.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.components import clone
from subchain.core.renamed import renamed_arguments
from subchain.emissions import Emission, Parameters, family_of
from subchain.engines import Engine
from subchain.engines.statistics import HMMStatistics
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference import Algorithm
from subchain.inference.run.checkpoint import RunSummary, stored_entropy
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.loop import RunState
from subchain.models.fitting import FitCall
from subchain.models.persistence import load_model, save_model
from subchain.models.streaming import learn_on
from subchain.models.usage import Usable
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.states import rising
from subchain.transitions import TransitionPrior, check_chain
from subchain.transitions.hdp.hierarchy import learns_top

Array = NDArray[np.float64]


class HMM(Usable):
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
        "vi", "em", "cvi", "svi", "scvi", "gibbs", "beam", or an object with settings, `VI(max_iter=50)`.
    n_init : int
        Number of runs from different starts; the best by its objective is kept.
    init : str or HMM
        "auto", "kmeans", "context" (k-means on observations beside their neighbours), "random", "exponential";
        "posteriors" or "states": marginals, or states, of every position are drawn from the legal ones, as "auto" does
        for symbols with legal states; or a model whose parameters the run starts from, exactly.
    random_state : int, numpy Generator or None
        Seed; each restart has its own stream.
    n_jobs : int, optional
        Processor cores, all by default. Results do not depend on it.
    engine : str or Engine
        What runs the chains: "auto", "cpu", or an object with the verbs of `subchain.engines.Engine`, which has its own
        number of jobs and is not written to model files.
    progress : bool or "auto"
        Whether to show progress; "auto" only on a terminal.

    Attributes
    ----------
    initial_, transition_ : (K,), (K, K)
        Posterior means (EM: the estimate).
    emission_ : Parameters
        `probabilities`, `means`, `covariances`, `variances` or `rates`, by family.
    posterior_ : HMMPosterior
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
        engine: str | Engine = "auto",
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

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; a start that is a model stays that model."""
        settings = self.get_params(deep=False)
        init = settings.pop("init")
        return type(self)(**{name: clone(value) for name, value in settings.items()}, init=init)

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
        x : array, list of arrays, dictionary of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the hidden states: legal states per symbol or position (or a `TagDictionary`), known states
            (−1 unknown), log weights per position and state.
        sample_weight : (n_sequences,), optional
            How often each sequence counts.
        validation : as x, or HoldOut, optional
            Held-out data, scored after every iteration; `HoldOut(0.05)` takes positions out of `x` itself.
        checkpoint : path, optional
            File that keeps the state of the run.
        resume : bool
            Continue from the checkpoint.
        """
        entropy = stored_entropy(checkpoint) if resume and self.random_state is None else None
        fit = FitCall(self, x, allowed, states, evidence, sample_weight, validation, entropy)
        with fit.problem.structure.engine.running():
            journey = fit_problem(
                fit.problem, fit.algorithm, fit.starts(), fit.root,
                identity={} if checkpoint is None else fit.identity(), checkpoint=checkpoint, resume=resume,
                progress=self.progress,
            )  # fmt: skip
        assert journey.best is not None
        self._adopt(fit, journey.best, journey.summaries)
        self.n_batches_, self.end_marginal_ = 1, None
        self._warn(fit.algorithm)
        return self

    def fit_predict(self, x: Any, y: None = None, **settings: Any) -> Any:
        """Learn from sequences and return their states: `fit`, then `predict` with the same knowledge of them."""
        known = {name: settings[name] for name in ("allowed", "states", "evidence") if name in settings}
        return self.fit(x, **settings).predict(x, **known)

    def _adopt(self, fit: FitCall, state: RunState, runs: list[RunSummary]) -> None:
        """Make the end of a run this model's results."""
        self._become(cast(HMMPoint, state.point), fit.emission)
        self.prior_ = cast(HMMPosterior, state.results.prior or fit.problem.prior)
        self.statistics_ = cast(HMMStatistics, state.results.reported or fit.empty)
        self.trace_ = state.trace
        self.status_ = state.status or "max_iter"
        self.runs_ = runs
        self.vocabularies_ = fit.raw.vocabularies
        self.columns_, self.grouped_by_ = fit.raw.columns, fit.raw.grouped_by
        self.n_sequences_ = fit.data.n_sequences
        self.training_marginals_, self.samples_ = fit.marginals(state), fit.algorithm.samples(state)
        if fit.numbers_are_free:
            self._reorder(rising(-self.state_occupancy_, self.n_states_))
            self.state_names_ = [str(state) for state in range(self.n_states_)]

    def _warn(self, algorithm: Algorithm) -> None:
        """Say so if the run did not end by itself."""
        complaint = algorithm.complaint(self.trace_, self.status_)
        if complaint is not None:
            warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
        chain, visits = self.prior_.chain, self.statistics_.initial + self.statistics_.pairs.sum(axis=0)
        if learns_top(chain) and bool((visits >= 1.0).all()):
            warnings.warn(
                f"all n_states={self.n_states_} states are in use, so that the data may ask for more; raise n_states.",
                stacklevel=3,
            )
        if self.status_ == "interrupted":
            warnings.warn("the fit was interrupted; the model is that of the last whole iteration.", stacklevel=3)

    def partial_fit(self, x: Any, y: None = None, *, total: float | None = None, continues: bool = False) -> Self:
        """Learn from one more batch: new sequences, or the next piece of a chain that goes on.

        Parameters
        ----------
        x : as in `fit`
        total : float, optional
            Number of observations of the whole stream, if it is known. Then every batch stands for all of it, and the
            statistics move towards the batch's by a step that shrinks with the number of batches, as fast as the
            inference algorithm says. Without it batches simply add up, as new data do.
        continues : bool
            Whether `x`, a single sequence, goes on where the last one ended: its first state then follows the last
            state of the piece before.
        """
        learn_on(self, x, total, continues)
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
        -2.486...
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
        model._become(HMMPoint(chain, emission), family)
        return model

    @renamed_arguments(beliefs="marginals")
    def save(self, path: str | os.PathLike[str], *, marginals: bool = True) -> None:
        """Write the model to a file, exactly and atomically; `HMM.load` reads it back.

        Parameters
        ----------
        path : where to
        marginals : bool
            Whether what a run has kept of the training data (`training_marginals_`, `samples_`) goes into the file too.
        """
        self._point()
        save_model(self, path, marginals=marginals)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return load_model(cls, path)
