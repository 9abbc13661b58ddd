"""The estimator `HMM`, which combines data, emission families, priors, inference algorithms and engines.

It follows scikit-learn's conventions: the constructor only stores its arguments, `fit` learns, and names of results end
in an underscore. Predictions, scores and draws are computed in `subchain.tasks`.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Self, cast

from numpy.typing import ArrayLike

from subchain.core.components import clone
from subchain.core.files import naming
from subchain.core.renamed import renamed_arguments
from subchain.data.annotations import Annotations
from subchain.data.lengths import with_lengths
from subchain.emissions import Emission, Parameters, family_of
from subchain.engines import Engine
from subchain.engines.statistics import HMMStatistics
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference import Algorithm
from subchain.inference.run.checkpoint import stored_entropy
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.journey import RunSummary
from subchain.inference.run.loop import RunState
from subchain.inference.run.progress import Progress
from subchain.inference.run.restarts_table import print_restarts
from subchain.models.fitting import FitCall
from subchain.models.persistence import load_model, save_model
from subchain.models.prediction import PredictionMethods
from subchain.models.sampling_methods import SamplingMethods
from subchain.models.scoring import ScoringMethods
from subchain.models.streaming import learn_on
from subchain.models.uncertainty import UncertaintyMethods
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.matching import are_alike
from subchain.tasks.states import rising
from subchain.transitions import TransitionPrior
from subchain.transitions.final import final_of
from subchain.transitions.hdp.hierarchy import learns_top
from subchain.transitions.low_rank import LowRankChain, given_chain
from subchain.transitions.operators import Factored


class HMM(PredictionMethods, ScoringMethods, SamplingMethods, UncertaintyMethods):
    """A hidden Markov model.

    Parameters
    ----------
    n_states : int
        Number of hidden states.
    emission : str or Emission
        Emission family: "categorical", "gaussian", "diagonal_gaussian", "poisson", "bernoulli", or an object. "auto"
        chooses by the columns of the data: strings and codes are "categorical", zeros and ones "bernoulli", small whole
        numbers "poisson", other numbers "gaussian", and columns of several kinds get a `Product`. `family_` is the
        chosen family, and `family_reason_` says why.
    transition : str or TransitionPrior, optional
        Prior over the hidden chain; `Dirichlet()` by default.
    inference : str or Algorithm
        "vi", "em", "cvi", "svi", "scvi", "gibbs", "beam", or an object with settings, `VI(max_iter=50)`.
    n_init : int
        Number of restarts; the run with the best objective is kept.
    init : str or HMM
        Where runs begin: "kmeans", "context" (k-means on windows of neighbouring observations), "random" (the nearest
        of K random observations), "exponential" (random counts), "stochastic" (a short run of `SVI`), "parts" (equal
        parts of each sequence, for left-right models), "known" (the positions whose states are known), "posteriors" or
        "states" (random marginals, or random states, among the legal states of every position). Or a model whose
        parameters are the exact start. "auto" takes the best of "kmeans", "context" and, with `states=`, "known" after
        a few iterations on an excerpt, and other kinds for restarts; "exponential" or, from 50,000 observations on,
        "stochastic" for symbols; "parts" for left-right models; "posteriors" for symbols with legal states. `runs_`
        says which kind each run began with.
    random_state : int, numpy Generator or None
        Seed; each restart has its own random stream.
    n_jobs : int, optional
        Number of processor cores, all by default. Results do not depend on it.
    engine : str or Engine
        Engine that runs the recursions: "auto", "cpu", `Cpu(precision="single")`, or an object with the methods of
        `subchain.engines.Engine`, which has its own number of jobs and is not written to model files.
    progress : bool or "auto"
        Whether to show progress; "auto" shows it on a terminal only.

    Attributes
    ----------
    initial_, transition_ : (K,), (K, K)
        Posterior means (for EM, the estimates).
    emission_ : Parameters
        `probabilities`, `means`, `covariances`, `variances` or `rates`, depending on the family.
    posterior_ : HMMPosterior
        The full posterior of chain and emissions.
    statistics_ : Statistics
        Expected sufficient statistics, from which the posterior is computed.
    trace_, status_, runs_
        History of the best run, the reason why it ended, and the objective of every restart.

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
        emission: str | Emission = "auto",
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
        """Return an unfitted copy; a model as `init`, and an engine, are the same objects in the copy."""
        settings = self.get_params(deep=False)
        shared = {name: settings.pop(name) for name in ("init", "engine")}
        return type(self)(**{name: clone(value) for name, value in settings.items()}, **shared)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
        sample_weight: ArrayLike | None = None,
        validation: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:
        """Learn from sequences.

        Parameters
        ----------
        x : array, list of arrays, dictionary of arrays, (X, lengths), Sequences, path, or table
        y : None, or lengths of sequences
            For callers that pass two arguments: `fit(X, lengths)` is `fit((X, lengths))`. Labels are refused; known
            states are `states`.
        allowed, states, evidence
            Evidence about the hidden states: legal states per symbol or position (or a `TagDictionary`), known states
            (−1 unknown), log weights per position and state.
        sample_weight : (n_sequences,), optional
            Weight of each sequence. A sequence of weight zero is left out, except that its symbols stay in the
            vocabulary.
        validation : as x, or HoldOut, optional
            Held-out data, scored after every iteration; `HoldOut(0.05)` holds out positions of `x`.
        checkpoint : path, optional
            File in which the states of all restarts are stored, of those that are not the best up to 64 MB. A limit
            that is raised continues all of them; where a state was left out, that restart begins again.
        resume : bool, optional
            True continues from the checkpoint, False begins again and overwrites it. Without either, a checkpoint that
            exists is an error.
        """
        x = with_lengths(x, y, "fit")
        entropy = stored_entropy(checkpoint) if resume and self.random_state is None else None
        fit = FitCall(self, x, Annotations(allowed, states, evidence, sample_weight), validation, entropy)
        with fit.problem.structure.engine.running(), Progress(self.progress) as progress:
            fit.measure()
            journey = fit_problem(
                fit.problem, fit.algorithm, fit.starts(), fit.root,
                identity={} if checkpoint is None else fit.identity(), checkpoint=checkpoint, resume=resume,
                progress=progress,
            )  # fmt: skip
        assert journey.best is not None
        with naming(checkpoint if resume else None):
            self._adopt(fit, journey.best, journey.summaries)
        self.n_batches_, self.end_marginal_ = 1, None
        if progress.visible and progress.is_alone and len(self.runs_) > 1:
            print_restarts(self.runs_)
        self._warn(fit.algorithm, states_are_open=all(known is None for known in fit.knowledge))
        return self

    def fit_predict(self, x: Any, y: Any = None, **settings: Any) -> Any:
        """Call `fit`, then return `predict` with the same evidence about the states."""
        x = with_lengths(x, y, "fit_predict")
        known = {name: settings[name] for name in ("allowed", "states", "evidence") if name in settings}
        return self.fit(x, **settings).predict(x, **known)

    def _adopt(self, fit: FitCall, state: RunState, runs: list[RunSummary]) -> None:
        """Set the results of this model to the final state of a run."""
        marginals = fit.marginals(state)  # reads the data, and may fail
        self._set_parameters(cast(HMMPoint, state.point), fit.emission)
        self.family_reason_ = fit.choice
        self.prior_ = cast(HMMPosterior, state.results.prior or fit.problem.prior)
        self.statistics_ = cast(HMMStatistics, state.results.reported or fit.empty)
        self.trace_ = state.trace
        self.status_ = state.status or "max_iter"
        self.runs_ = runs
        self.vocabularies_ = fit.raw.vocabularies
        self.columns_, self.grouped_by_ = fit.raw.columns, fit.raw.grouped_by
        self.n_sequences_ = fit.data.n_sequences
        self.training_marginals_, self.samples_ = marginals, fit.algorithm.samples(state)
        if fit.numbers_are_free:
            self._reorder(rising(-self.state_occupancy_, self.n_states_))
            self.state_names_ = [str(state) for state in range(self.n_states_)]

    def _warn(self, algorithm: Algorithm, *, states_are_open: bool) -> None:
        """Warn if the run did not converge or was interrupted, found states that are alike, or used all there are."""
        chain, visits = self.prior_.chain, self.statistics_.visits
        complaint = algorithm.complaint(self.trace_, self.status_)
        if complaint is not None:
            warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
        is_judged = self.status_ == "converged" and states_are_open and not self.family_.has_frozen
        if complaint is None and is_judged and are_alike(self.emission_, visits):
            warnings.warn(
                f"one state explains the data as well: no difference between states was found with {self.family_!r}. "
                "The data may have no states, another family may suit them better (emission=), or another start (init=,"
                " n_init=).",
                stacklevel=3,
            )
        if learns_top(chain) and bool((visits >= 1.0).all()):
            warnings.warn(
                f"all n_states={self.n_states_} states are in use, so more states may fit better; raise n_states.",
                stacklevel=3,
            )
        if self.status_ == "interrupted":
            warnings.warn("the fit was interrupted; the model is that of the last whole iteration.", stacklevel=3)
        elif len(self.runs_) < self.n_init and isinstance(self.init, str):
            warnings.warn(
                f"the time limit ended the fit after {len(self.runs_)} of n_init={self.n_init} restarts; raise "
                f"time_limit={algorithm.time_limit:g}, or resume from a checkpoint.",
                stacklevel=3,
            )

    def partial_fit(self, x: Any, y: Any = None, *, total: float | None = None, continues: bool = False) -> Self:
        """Learn from one more batch: new sequences, or the continuation of a sequence.

        Parameters
        ----------
        x, y : as in `fit`
        total : float, optional
            Number of observations of the whole stream, if it is known. The statistics of a batch are then scaled to the
            whole stream and averaged into the current ones with a decreasing step size, that of the inference
            algorithm. Without `total`, the statistics of all batches are added.
        continues : bool
            Whether `x`, a single sequence, continues the previous one: its first state follows the last state of the
            previous batch.
        """
        learn_on(self, with_lengths(x, y, "partial_fit"), total, continues)
        return self

    @classmethod
    def from_parameters(
        cls,
        initial: ArrayLike,
        transition: ArrayLike | Factored,
        emission: Parameters,
        *,
        final: Any = None,
        **settings: Any,
    ) -> Self:
        """Return a model with given parameters, for prediction or as the start of a fit.

        Parameters
        ----------
        initial : (K,)
        transition : (K, K), or `LowRank.from_parameters(left, right)`
        emission : parameters, for example `Categorical.from_parameters(probabilities)`
        final : (K,) of bool, list of states, or (K,) probabilities of ending, optional
            How sequences end, as in `Dirichlet`.
        settings : further arguments of the constructor

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).score([0, 0, 1])
        -2.486...
        """
        chain = given_chain(initial, transition)
        if not isinstance(emission, Parameters):
            raise InputError(
                f"emission must be parameters, such as Categorical.from_parameters(...), not {type(emission).__name__}."
            )
        if emission.n_states != len(chain.initial):
            raise InputError(f"emission has {emission.n_states} states, but the chain has {len(chain.initial)}.")
        family = family_of(emission)
        model = cls(n_states=len(chain.initial), emission=family, **settings)
        if final is not None and isinstance(chain, LowRankChain):
            raise InputError("final= needs a transition matrix: low-rank chains do not say how sequences end.")
        ending = final_of(final, len(chain.initial))
        if ending.is_learned:
            raise InputError("final='learned' is for a fit; give from_parameters the probabilities of ending, (K,).")
        model._set_parameters(HMMPoint(ending.closed(chain, "mean"), emission), family)
        return model

    @renamed_arguments(beliefs="marginals")
    def save(self, path: str | os.PathLike[str], *, marginals: bool = True) -> None:
        """Write the model to a file, exactly and atomically; `HMM.load` reads it.

        Parameters
        ----------
        path : file to write
        marginals : bool
            Whether to include `training_marginals_` and `samples_`.
        """
        self._point()
        save_model(self, path, marginals=marginals)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file by `save`."""
        return load_model(cls, path)
