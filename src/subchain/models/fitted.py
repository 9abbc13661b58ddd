"""What a model holds once it has been fitted: its results, and its states in an order and with names of their own.

Attributes that are computed from others are properties; the rest is set by fitting, by loading, or by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.components import Component
from subchain.core.renamed import renamed_attribute
from subchain.core.samples import Samples
from subchain.data import Sequences, Vocabulary, as_sequences_like
from subchain.emissions import Emission, Frozen, Parameters
from subchain.engines import Engine
from subchain.engines.statistics import HMMStatistics
from subchain.errors import not_fitted
from subchain.inference.run.checkpoint import RunSummary
from subchain.inference.run.trace import Status, Trace
from subchain.inference.run.training import TrainingMarginals
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.markup import settings_table, states_table
from subchain.tasks.matching import emission_distance, match, overlap
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

Array = NDArray[np.float64]


class Fitted(Component):
    """The results of an HMM.

    Attributes
    ----------
    point_ : the HMM that is reported, chain and emission
    prior_ : distribution over HMMs before the data
    statistics_ : expected counts
    trace_, status_, runs_ : the course of the best run, why it ended, and every restart's objective
    family_ : the family of emissions
    end_marginal_ : what `partial_fit` believes of the last state it saw, (K,); None after `fit`
    training_marginals_ : what the run believes of each training position, where it has kept that (`CVI`, `Gibbs`,
        `VI(cluster="state")`); else None
    samples_ : draws from the posterior (`Gibbs`, `Beam`); else None
    n_batches_ : how many batches `partial_fit` has seen, a `fit` counting as one
    vocabularies_, columns_ : what the training data's codes and columns were
    """

    end_marginal_: Array | None = None
    training_marginals_: TrainingMarginals | None = None
    beliefs_ = renamed_attribute("beliefs_", "training_marginals_")
    end_belief_ = renamed_attribute("end_belief_", "end_marginal_")
    samples_: Samples | None = None
    point_: HMMPoint
    prior_: HMMPosterior
    statistics_: HMMStatistics
    trace_: Trace
    status_: Status
    runs_: list[RunSummary]
    n_states_: int
    n_sequences_: int
    n_batches_: int
    family_: Emission
    vocabularies_: tuple[Vocabulary | None, ...]
    columns_: tuple[str, ...] | None
    grouped_by_: str | None
    engine: str | Engine
    n_jobs: int | None

    def _become(self, point: HMMPoint, family: Emission) -> None:
        """Take a point as if it had been learned."""
        self.point_ = point
        self.prior_ = HMMPosterior(FrozenChain(point.chain), Frozen(point.emission))
        self.statistics_ = HMMStatistics.zeros(len(point.chain.initial), point.emission.zeros())
        self.trace_, self.status_, self.runs_ = Trace(), "converged", []
        self.n_states_ = len(point.chain.initial)
        self.family_ = family
        self.training_marginals_ = self.samples_ = None
        self.vocabularies_ = ()
        self.columns_ = self.grouped_by_ = None
        self.n_sequences_ = self.n_batches_ = 0
        self.state_names_ = [str(state) for state in range(self.n_states_)]

    def _read(self, x: Any) -> Sequences:
        """Data for a fitted model: coded with its vocabulary, checked by its family."""
        data = self.family_.prepare(as_sequences_like(x, self.vocabularies_, self.columns_, self.grouped_by_))
        self.family_.check_against(data, self.emission_)
        return data

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
    def posterior_(self) -> HMMPosterior:
        """Posterior of chain and emissions."""
        self._point()
        return self.prior_.update(self.statistics_)

    def _point(self) -> HMMPoint:
        if not hasattr(self, "point_"):
            raise not_fitted(type(self).__name__)
        return self.point_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "point_")

    def _repr_html_(self) -> str:
        """A small table for notebooks: the states and what they emit, or the settings of a model that is not fitted."""
        if not hasattr(self, "point_"):
            return settings_table(type(self).__name__, self.get_params(deep=False))
        return states_table(self)

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

    def align_to(self, other: Fitted, x: Any = None) -> Self:
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
            cost = -overlap(self.predict_proba_blocks(x), other.predict_proba_blocks(x))  # type: ignore[attr-defined]
        order, theirs = match(cost)
        self._reorder(order)
        self.state_names_ = inherit_names(self.state_names_, [other.state_names_[state] for state in theirs])
        return self

    def _reorder(self, order: NDArray[np.int64]) -> Self:
        self.point_, self.prior_ = self.point_.take(order), self.prior_.take(order)
        self.statistics_ = self.statistics_.take(order)
        self.end_marginal_ = None if self.end_marginal_ is None else self.end_marginal_[order]
        self.training_marginals_ = None if self.training_marginals_ is None else self.training_marginals_.take(order)
        self.samples_ = None if self.samples_ is None else self.samples_.take(order)
        numbers = [str(state) for state in range(self.n_states_)]
        if self.state_names_ != numbers:  # names go with their states, numbers count anew
            self.state_names_ = [self.state_names_[state] for state in order]
        return self
