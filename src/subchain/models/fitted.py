"""Results of a fitted model, and operations on its states: order, names, alignment with another model.

Attributes that are computed from others are properties; the rest is set by `fit`, `load` or `from_parameters`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.components import Component
from subchain.core.renamed import renamed_attribute
from subchain.core.samples import Samples
from subchain.data import Evidence, Sequences, Vocabulary, as_sequences_like
from subchain.data.digest import digest
from subchain.emissions import Emission, Frozen, Parameters
from subchain.engines import Engine, resolve_engine
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError, not_fitted
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.journey import RunSummary
from subchain.inference.run.trace import Status, Trace
from subchain.inference.run.training import TrainingMarginals, contents_of, knowledge_of
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.markup import settings_table, states_table
from subchain.tasks.matching import emission_distance, match, overlap
from subchain.tasks.question import Question, comes_in_list
from subchain.tasks.states import (
    checked_names,
    dwell_times,
    effective_states,
    inherit_names,
    occupancy,
    rising,
    state_keys,
)
from subchain.transitions import FrozenChain
from subchain.transitions.final import EndingChain

Array = NDArray[np.float64]


class Fitted(Component):
    """Results of an HMM.

    Attributes
    ----------
    point_ : the reported parameters, chain and emission
    prior_ : prior of the parameters, with learned hyperparameters
    statistics_ : expected sufficient statistics
    trace_, status_, runs_ : history of the best run, the reason why it ended, and the objective of every restart
    family_ : emission family
    family_reason_ : one sentence that says why `fit` chose this family; empty if it was given
    end_marginal_ : posterior marginal of the last state after `partial_fit`, (K,); None after `fit`
    training_marginals_ : posterior marginals of the training positions, if the run has kept them (`CVI`, `Gibbs`,
        `VI(cluster="state")`); else None
    samples_ : draws from the posterior (`Gibbs`, `Beam`); else None
    n_batches_ : number of batches given to `partial_fit`; a `fit` counts as one
    vocabularies_, columns_ : vocabularies and column names of the training data
    """

    end_marginal_: Array | None = None
    training_marginals_: TrainingMarginals | None = None
    beliefs_ = renamed_attribute("beliefs_", "training_marginals_")
    end_belief_ = renamed_attribute("end_belief_", "end_marginal_")
    samples_: Samples | None = None
    #: The algorithm that reports the point, and the point before, where `partial_fit` left that to the next reader.
    _unreported: tuple[Algorithm, HMMPoint] | None = None
    prior_: HMMPosterior
    statistics_: HMMStatistics
    trace_: Trace
    status_: Status
    runs_: list[RunSummary]
    n_states_: int
    n_sequences_: int
    n_batches_: int
    family_: Emission
    family_reason_: str = ""
    vocabularies_: tuple[Vocabulary | None, ...]
    columns_: tuple[str, ...] | None
    grouped_by_: str | None
    engine: str | Engine
    n_jobs: int | None

    @cached_property
    def point_(self) -> HMMPoint:
        """The reported parameters, chain and emission; `fit` sets them, and `partial_fit` has them computed here."""
        if self._unreported is None:
            raise AttributeError("point_")
        algorithm, previous = self._unreported
        self._unreported = None
        point: HMMPoint = algorithm.point(self.prior_.update(self.statistics_), self.statistics_, previous)[0]
        return point

    @property
    def _has_point(self) -> bool:
        """Whether the model has parameters; it does not have them computed."""
        return self._unreported is not None or "point_" in vars(self)

    def _report_later(self, algorithm: Algorithm) -> None:
        """Have the point computed from the present statistics, but not before it is read."""
        previous = vars(self).pop("point_", None)
        if previous is not None:
            self._unreported = algorithm, previous
        else:
            assert self._unreported is not None, "a fitted model has a point, or is going to"
            self._unreported = algorithm, self._unreported[1]

    def _set_parameters(self, point: HMMPoint, family: Emission) -> None:
        """Set all results for given parameters: frozen priors, zero statistics, no run."""
        self.point_ = point
        self.prior_ = HMMPosterior(FrozenChain(point.chain), Frozen(point.emission))
        self.statistics_ = HMMStatistics(point.chain.operator.zeros(), point.emission.zeros())
        self.trace_, self.status_, self.runs_ = Trace(), "converged", []
        self.n_states_ = len(point.chain.initial)
        self.family_ = family
        self.training_marginals_ = self.samples_ = None
        self.vocabularies_ = ()
        self.columns_ = self.grouped_by_ = None
        self.n_sequences_ = self.n_batches_ = 0
        self.state_names_ = [str(state) for state in range(self.n_states_)]

    def _read(self, x: Any) -> Sequences:
        """Return data coded with the model's vocabularies and checked by its emission family."""
        raw = as_sequences_like(x, self.vocabularies_, self.columns_, self.grouped_by_)
        with raw.intact():
            data = self.family_.prepare(raw)
            alike = self._point() if self._unreported is None else self._unreported[1]  # columns, symbols stay the same
            self.family_.check_against(data, alike.emission)
        return data

    def _ask(self, x: Any, allowed: Any = None, states: Any = None, evidence: Any = None) -> Question:
        """Return the model, its engine, whole sequences and the evidence about their states, as tasks take them."""
        question = self._ask_on(x, allowed, states, evidence)
        point, data = self._point(), question.data
        stored = self._stored(data, [allowed, states, evidence])
        return dataclasses.replace(
            question, point=point, evidence=point.evidence(data, question.evidence), stored=stored
        )

    def _ask_on(self, x: Any, allowed: Any = None, states: Any = None, evidence: Any = None) -> Question:
        """Return the same for sequences that may go on: their ends are not known."""
        point, data = self._point().unended(), self._read(x)
        n_symbols = getattr(point.emission, "n_categories", None)
        known = Evidence.build(data, self.n_states_, allowed, states, evidence, n_symbols)
        return Question(point, resolve_engine(self.engine, self.n_jobs), data, known, comes_in_list(x, data))

    def _stored(self, data: Sequences, knowledge: list[Any]) -> TrainingMarginals | None:
        """Return the marginals that the run has kept, if data and evidence are those of the training; else None."""
        kept = self.training_marginals_
        if kept is None or kept.n_positions != data.n_observations:
            return None
        if not np.array_equal(knowledge_of(digest(knowledge)), kept.knowledge):
            return None  # with other evidence the marginals differ, and given states must not appear as inferred ones
        return kept if np.array_equal(contents_of(data), kept.contents) else None

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def initial_(self) -> Array:
        """Probabilities of the first state, (K,)."""
        return self._point().chain.initial

    @property
    def transition_(self) -> Array:
        """Transition probabilities from row to column, (K, K)."""
        return self._point().chain.transition

    @property
    def final_(self) -> Array | None:
        """Probability of ending in each state, (K,); 1 and 0 if the states that end are given; None without `final`."""
        chain = self._point().chain
        return chain.final if isinstance(chain, EndingChain) else None

    @property
    def emission_(self) -> Parameters:
        """Parameters of the emissions."""
        return self._point().emission

    @property
    def posterior_(self) -> HMMPosterior:
        """Posterior of chain and emissions."""
        self._point()
        return self.prior_.update(self.statistics_)

    def _point(self) -> HMMPoint:
        """Return the parameters; raise a `NotFittedError` if there are none."""
        if not self._has_point:
            raise not_fitted(type(self).__name__)
        return self.point_

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_point

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks: states and emissions, or the settings of an unfitted model."""
        if not self._has_point:
            return settings_table(type(self).__name__, self.get_params(deep=False))
        return states_table(self)

    # ---- states ------------------------------------------------------------------------------------------------------

    @property
    def dwell_times_(self) -> Array:
        """Expected dwell time of each state in positions, 1 / (1 − A_kk), (K,)."""
        return dwell_times(self._point().chain.operator)

    @property
    def state_occupancy_(self) -> Array:
        """Fraction of the training positions in each state, (K,); without data, the stationary distribution."""
        return occupancy(self._point().chain.operator, self.statistics_)

    def effective_states(self, coverage: float = 0.99) -> int:
        """Return the smallest number of states that together hold a fraction `coverage` of the positions.

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
        """Names of the states; they can be set, and follow their states when these are reordered."""
        self._point()
        return self._state_names

    @state_names_.setter
    def state_names_(self, names: Iterable[str]) -> None:
        self._state_names = checked_names(names, len(self._point().chain.initial))

    def order_states(self, by: str | Callable[[Self], ArrayLike] = "occupancy", column: str | int = 0) -> Self:
        """Sort the states, so that the states of different fits can be compared.

        All results are reordered, including names.

        Parameters
        ----------
        by : "occupancy", "mean", "dwell", or a function
            Largest occupancy first; smallest mean of a column first; longest dwell time first; or a function of the
            model that returns one number per state, smallest first.
        column : str or int
            The column for "mean", by name or number; of a `Product` also the name of a part with one column.

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

    def align_to(self, other: Fitted, x: Any = None) -> Self:
        """Reorder the states to match those of another model, and copy their names.

        If this model has more states, those without a counterpart come last and keep their names.

        Parameters
        ----------
        other : HMM
        x : data, optional
            Match states by their posterior marginals on these data, instead of by their emissions.

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
        if not isinstance(other, Fitted):
            raise InputError(f"align_to needs a fitted model, not {other!r}.")
        if x is None:
            cost = emission_distance(self.emission_, other.emission_)
        else:
            cost = -overlap(self.predict_proba_blocks(x), other.predict_proba_blocks(x))  # type: ignore[attr-defined]
        order, theirs = match(cost)
        self._reorder(order)
        self.state_names_ = inherit_names(self.state_names_, [other.state_names_[state] for state in theirs])
        return self

    def _reorder(self, order: NDArray[np.int64]) -> Self:
        """Permute the states of all results: state k becomes the previous state ``order[k]``."""
        self.point_, self.prior_ = self.point_.take(order), self.prior_.take(order)
        self.statistics_ = self.statistics_.take(order)
        self.end_marginal_ = None if self.end_marginal_ is None else self.end_marginal_[order]
        self.training_marginals_ = None if self.training_marginals_ is None else self.training_marginals_.take(order)
        self.samples_ = None if self.samples_ is None else self.samples_.take(order)
        numbers = [str(state) for state in range(self.n_states_)]
        if self.state_names_ != numbers:  # names follow their states; default names stay the numbers 0 … K − 1
            self.state_names_ = [self.state_names_[state] for state in order]
        return self
