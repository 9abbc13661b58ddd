"""What a family of emissions is made of: a specification, a conjugate distribution, its parameters and its sums.

A family is written as four small classes in one file:

* an `Emission`: what the user writes, `Poisson(shape=2.0)`; it checks data and builds the prior;
* a `Conjugate`: a distribution over the parameters of all K states, the same class for prior and posterior; it knows
  the three surrogates that inference algorithms ask for;
* a `Parameters`: one point in parameter space, which is at the same time the `Likelihood` of the point surrogate;
* a `Sums`: the expected sufficient statistics.

The engine sees nothing of this but `Likelihood`. Tables are state-major: row k holds state k at all n positions of a
block, so that kernels run along positions.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.records import Record, Sums
from subchain.data.legal_states import LegalStates
from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.emissions.incremental import Incremental
from subchain.emissions.listed import exponentiate, pick, put
from subchain.emissions.scaling import exponentiate_in_place
from subchain.errors import InputError

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts

Values = NDArray[Any]
Table = NDArray[np.float64]


class Likelihood(ABC):
    """What K states say about observations; possibly unnormalised, as under a variational surrogate."""

    @property
    @abstractmethod
    def n_states(self) -> int:
        """Number of states."""

    @abstractmethod
    def log_likelihood(self, values: Values) -> Table:
        """Log likelihood of n observations in each state, (K, n); 0 where the observation is missing."""

    def scaled(self, values: Values, out: Table) -> NDArray[np.float64]:
        """Write likelihoods divided by exp(shift) into `out` (K, n) and return shift (n,).

        The largest entry of each column is 1 or thereabouts, between 1e-30 and 1e30, unless all of them are zero.
        Families that can do without logarithms and exponentials override this.
        """
        np.copyto(out, self.log_likelihood(values))
        return exponentiate_in_place(out)

    @abstractmethod
    def zeros(self) -> Sums:
        """Empty sums for this family and number of states."""

    @abstractmethod
    def accumulate(self, values: Values, marginals: Table, sums: Any) -> None:
        """Add the sufficient statistics of n observations, weighted by `marginals` (K, n), to `sums` in place."""

    # Where few states are legal, the same for lists of them; families that can do without tables override these.

    def log_likelihood_listed(self, values: Values, legal: LegalStates) -> NDArray[np.float64]:
        """Log likelihood of n observations in their legal states, (nnz,)."""
        out = np.empty(legal.n_entries)
        pick(np.ascontiguousarray(self.log_likelihood(values)), legal.offsets, legal.states, out)
        return out

    def scaled_listed(self, values: Values, legal: LegalStates, out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Write likelihoods of legal states divided by exp(shift) into `out` (nnz,) and return shift (n,).

        The largest of each position is between 1e-30 and 1e30 unless all are zero; zero means impossible.
        """
        shift = np.empty(len(values))
        out[:] = self.log_likelihood_listed(values, legal)
        exponentiate(out, legal.offsets, shift)
        return shift

    def accumulate_listed(self, values: Values, legal: LegalStates, marginals: NDArray[np.float64], sums: Any) -> None:
        """Add the sufficient statistics of n observations, weighted by `marginals` (nnz,), to `sums` in place."""
        table = np.empty((self.n_states, len(values)))
        put(marginals, legal.offsets, legal.states, table)
        self.accumulate(values, table, sums)


@dataclasses.dataclass
class Parameters(Record, Likelihood):
    """One point in parameter space. The fields are what users read: `probabilities`, `means`, `rates`, ..."""

    @abstractmethod
    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        """Draw one observation for each entry of `states`."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters, for information criteria."""

    @abstractmethod
    def expectation(self) -> NDArray[np.float64]:
        """Mean observation of each state, (K, D); for codes the probabilities of the symbols, (K, W)."""

    def fill(self, values: Values, marginals: Table) -> Values:
        """Observations with every missing entry replaced by its expectation under state `marginals` (K, n).

        Floating numbers, except for symbols, of which the most probable one is taken. Families whose columns depend on
        each other within a state override this.
        """
        expected = (marginals.T @ self.expectation()).reshape(values.shape)
        filled = np.where(is_missing(values), expected, values)
        return filled.astype(values.dtype) if values.dtype.kind == "f" else filled

    def fixed_counts(self, values: Values) -> EmissionCounts | None:
        """What kernels of collapsed inference are given of this point if it does not change: all likelihoods at once.

        None if there are too many.
        """
        from subchain.emissions.collapsed.counts import tabled_counts

        return tabled_counts(self, values)

    def marginals(self) -> Any:
        """The distribution of each column in each state: a frozen distribution of scipy.stats, broadcast to (K, D).

        None where the columns are not of one kind of number.
        """
        return None


class Posterior(Protocol):
    """What inference asks of a component: a `Conjugate`, or a `Frozen` one."""

    @property
    def is_learned(self) -> bool: ...
    def update(self, sums: Any) -> Posterior: ...
    def mean(self) -> Parameters: ...
    def mode(self) -> Parameters: ...
    def expected_log(self) -> Likelihood: ...
    def predictive(self) -> Likelihood: ...
    def sample(self, rng: np.random.Generator) -> Parameters: ...
    def kl(self, prior: Any) -> float: ...
    def log_density(self, parameters: Any) -> float: ...
    def log_partition(self) -> NDArray[np.float64]: ...
    def log_evidence(self, sums: Any) -> float | None: ...
    def update_hyperparameters(self, sums: Any, rate: float) -> Posterior: ...
    def log_hyperprior(self) -> float: ...
    def incremental(self, sums: Any) -> Incremental: ...
    def counts(self, sums: Any, values: Values) -> EmissionCounts | None: ...


@dataclasses.dataclass
class Conjugate(Record, FixedHyperparameters, ABC):
    """A conjugate distribution over the parameters of K states."""

    @abstractmethod
    def update(self, sums: Any) -> Self:
        """The posterior, this distribution being the prior."""

    @abstractmethod
    def mean(self) -> Parameters:
        """Posterior mean of the parameters."""

    @abstractmethod
    def mode(self) -> Parameters:
        """The most probable parameters; under a flat prior the maximum-likelihood estimate."""

    @abstractmethod
    def expected_log(self) -> Likelihood:
        """exp E[log p(x | θ)], the surrogate of variational inference; not normalised."""

    @abstractmethod
    def predictive(self) -> Likelihood:
        """E[p(x | θ)], the surrogate of collapsed inference."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Parameters:
        """Draw parameters."""

    @abstractmethod
    def kl(self, prior: Any) -> float:
        """Kullback-Leibler divergence from `prior`, summed over states; both proper."""

    @abstractmethod
    def log_density(self, parameters: Any) -> float:
        """Log density at `parameters`, up to a constant that depends on this distribution alone."""

    def log_partition(self) -> NDArray[np.float64]:
        """Logarithm of what the density of each state's parameters has to be divided by, (K,), up to a constant.

        Differences between posterior and prior are how probable the observations were, but for what does not depend on
        the parameters. A family that does not say has its states told apart by their moves alone when some are merged.
        """
        return np.zeros(self.mean().n_states)

    def log_evidence(self, sums: Any) -> float | None:
        """Log probability of what made these sums, the parameters being summed out; None if sums alone do not tell."""
        return None

    def incremental(self, sums: Any) -> Incremental:
        """The posterior that these sums make, this being the prior, ready to change in small steps."""
        return Incremental(self, sums)

    def counts(self, sums: Any, values: Values) -> EmissionCounts | None:
        """Counts of all observations for the kernels of collapsed inference, to begin with those that made `sums`.

        A family that has none (None) is visited in Python, one cluster after the other.
        """
        return None


@dataclasses.dataclass
class Frozen(Record, FixedHyperparameters):
    """A posterior that is one point and learns nothing: components that are frozen or were given by hand."""

    parameters: Parameters

    def update(self, sums: Any) -> Frozen:
        return self

    def mean(self) -> Parameters:
        return self.parameters

    mode = expected_log = predictive = mean

    def sample(self, rng: np.random.Generator) -> Parameters:
        return self.parameters

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, parameters: Any) -> float:
        return 0.0

    def log_partition(self) -> NDArray[np.float64]:
        return np.zeros(self.parameters.n_states)

    def log_evidence(self, sums: Any) -> float | None:
        return None

    def incremental(self, sums: Any) -> Incremental:
        return Incremental(self, sums)

    def counts(self, sums: Any, values: Values) -> EmissionCounts | None:
        return self.parameters.fixed_counts(values)


class Emission(Component, ABC):
    """What the user writes. The constructor only stores; `prior` fills in what was left open from the data."""

    #: What the family is called in `HMM(emission="…")`.
    name: ClassVar[str]
    #: The class of its parameters.
    parameters_type: ClassVar[type[Parameters]]
    columns: Any
    frozen: bool

    @abstractmethod
    def check(self, data: Sequences) -> None:
        """Raise an `InputError` that says what and where if the data cannot come from this family."""

    def check_against(self, data: Sequences, parameters: Any) -> None:
        """Raise an `InputError` if the data cannot be what a model with these parameters was made for."""
        self.check(data)
        n_columns = parameters.expectation().shape[1]
        if data.n_features != n_columns:
            raise InputError(
                f"the data have {data.n_features} columns, but the model was made for {n_columns}; "
                "give the columns that it was trained on, in the same order."
            )

    @classmethod
    def for_parameters(cls, parameters: Any) -> Self:
        """What the user would have written for a model with these parameters."""
        return cls()

    @abstractmethod
    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> Conjugate:
        """Build the prior. `flat` asks for maximum likelihood wherever the user has not set a hyperparameter."""

    @abstractmethod
    def features(self, data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Rows to cluster for a k-means start, (len(index), D), or None where distance means nothing."""

    def prepare(self, data: Sequences) -> Sequences:
        """The data as the family wants to see them: its own columns, if these were named."""
        if self.columns is None:
            return data
        index = data.column_indices(self.columns)
        return Sequences(
            data.select(index.tolist()),
            data.offsets,
            columns=None if data.columns is None else [data.columns[column] for column in index],
            names=data.names,
            vocabulary=[data.vocabularies[column] for column in index],
        )

    def sized_as(self, parameters: Any) -> Emission:
        """The family with the sizes that given parameters have and data may not show, such as the number of symbols."""
        return self

    @property
    def has_frozen(self) -> bool:
        """Whether any part of the family is to keep the parameters of the start."""
        return self.frozen

    def freeze(self, prior: Conjugate, start: Parameters) -> Conjugate | Frozen:
        """The prior, or the start's parameters for good if the family is frozen."""
        return Frozen(start) if self.frozen else prior

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> Sums:
        """Sums of a start that breaks symmetry and no more: every observation weighs at random in every state."""
        sums = reference.zeros()
        weights = rng.exponential(1.0 / reference.n_states, (reference.n_states, len(index)))
        reference.accumulate(np.take(data.values, index, axis=0), weights, sums)
        return sums.scale(data.n_observations / max(len(index), 1))
