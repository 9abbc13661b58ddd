"""Base classes of emission families, and the reference for writing a new one.

A family describes p(x | state, θ) for observations x, together with a conjugate prior over the parameters θ of all K
states. It is written as a few small classes, best in this order:

1. `Sums` (a dataclass that inherits `core.records.Sums`): the expected sufficient statistics Σ_t γ_t(k) · T(x_t).
   Fields are arrays; axis 0 runs over states unless the field is declared with `states_on`. Addition, subtraction,
   scaling and files are inherited, so the fields must be plain sums: the statistics of two blocks of data are the sum
   of the blocks' statistics, whatever the order.
2. `Likelihood`: the log likelihood of n observations in K states, and the accumulation of weighted observations into
   `Sums`. Required: `n_states`, `log_likelihood`, `zeros`, `accumulate`.
3. `Parameters`: one point θ. It is a `Likelihood` (the normalised one) and a dataclass whose fields users read, such as
   `means` or `rates`. Required in addition: `sample`, `n_free`, `expectation`.
4. `Conjugate`: a distribution over θ; one class for prior and posterior. Required: `update` (prior + sums →
   posterior), the points `mean` and `mode`, the likelihoods `expected_log` and `predictive`, a draw `sample`, `kl` and
   `log_density`.
5. `Emission`: the specification that the user writes, `Poisson(shape=2.0)`. Required: the class attributes `name` and
   `parameters_type`, a constructor that only stores its arguments (among them `columns` and `frozen`), `check`,
   `prior`, `features`.

What must hold for every family (`tests/emission_laws.py` checks it):

* Conjugacy: log_density of `prior.update(sums)` equals log_density of `prior` plus the expected log likelihood, up to a
  constant that does not depend on θ.
* Surrogates: log `expected_log` is E[log p(x | θ)], `predictive` is E[p(x | θ)], both under the posterior over θ.
* Missing values (nan, or −1 where integers are symbols or counts): a missing observation has log likelihood 0 in every
  state and adds nothing to the sums. A row with some missing entries has the marginal likelihood of its known entries.
* An observation that is impossible in a state has log likelihood −inf there; nan never occurs.
* Shapes: observations are (n,) or (n, D). Tables over states and positions are state-major, (K, n), so that kernels run
  along positions.

Which algorithm uses what: EM runs on `mode`, VI and SVI on `expected_log`, collapsed inference (SCVI, CVI, Gibbs) on
`predictive`, Beam on `sample`. Engines see nothing of a family except `Likelihood`. `docs/own-family.md` shows a
complete family in ninety lines.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.core.frozen import freezes, frozen_states
from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.records import Record, Sums
from subchain.data.evidence import Evidence
from subchain.data.legal_states import LegalStates
from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.emissions.checks import as_matrix
from subchain.emissions.incremental import Incremental
from subchain.emissions.listed import exponentiate, pick, put
from subchain.emissions.scaling import exponentiate_in_place
from subchain.errors import InputError

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts

Values = NDArray[Any]
Table = NDArray[np.float64]


class Likelihood(ABC):
    """Likelihood of an observation in each of K states; it need not be normalised, as under a variational surrogate."""

    @property
    @abstractmethod
    def n_states(self) -> int:
        """Number of states."""

    @abstractmethod
    def log_likelihood(self, values: Values) -> Table:
        """Return the log likelihood of n observations in each state, (K, n).

        `values` is (n,) or (n, D). An entry is 0 where the observation is missing and −inf where it is impossible.
        """

    def scaled(self, values: Values, out: Table) -> NDArray[np.float64]:
        """Write the likelihoods divided by exp(shift) into `out` (K, n) and return shift (n,).

        The shift of a position is any number that brings its largest likelihood between 1e-30 and 1e30, so that
        products with marginals do not underflow; by default the largest log likelihood. A column of zeros means that
        the observation is impossible in every state. Families that need no exponentials (tables) override this method.
        """
        np.copyto(out, self.log_likelihood(values))
        return exponentiate_in_place(out)

    @abstractmethod
    def zeros(self) -> Sums:
        """Return sums of no observations, for this family and number of states."""

    @abstractmethod
    def accumulate(self, values: Values, marginals: Table, sums: Any) -> None:
        """Add the sufficient statistics of n observations, weighted by `marginals` (K, n), to `sums` in place.

        The weights are posterior marginals γ_t(k), or those times the weight of a sequence. Missing observations add
        nothing.
        """

    def evidence(self, data: Sequences, known: Evidence | None) -> Evidence | None:
        """Return what is `known` of the states, and what observations rule out: passes visit only the others."""
        return known

    def compiled(self, values: Values) -> Any:
        """Return what compiled passes see of this family and all observations: a tuple with verbs (`lanes.observing`).

        Families without such verbs (the default, None) are asked tile by tile, through the methods above.
        """
        return None

    def compiled_logs(self, values: Values) -> Any:
        """Return the same for the search of most probable paths, which asks for log likelihoods."""
        return self.compiled(values)

    # The same three methods for the nnz pairs of a position and a legal state. The defaults go through a (K, n) table.

    def log_likelihood_listed(self, values: Values, legal: LegalStates) -> NDArray[np.float64]:
        """Return the log likelihood of n observations in their legal states, (nnz,)."""
        out = np.empty(legal.n_entries)
        pick(np.ascontiguousarray(self.log_likelihood(values)), legal.offsets, legal.states, out)
        return out

    def scaled_listed(self, values: Values, legal: LegalStates, out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Write the likelihoods of legal states divided by exp(shift) into `out` (nnz,) and return shift (n,).

        The largest entry of each position is between 1e-30 and 1e30 unless all are zero; zero means impossible.
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
    """One point in parameter space; its fields are what users read: `probabilities`, `means`, `rates`, …"""

    @abstractmethod
    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        """Draw one observation for each entry of `states` (n,); return (n,) or (n, D)."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters of all states, for information criteria (AIC, BIC)."""

    @abstractmethod
    def expectation(self) -> NDArray[np.float64]:
        """Return the mean observation of each state, (K, D); for W symbols their probabilities, (K, W)."""

    def fill(self, values: Values, marginals: Table) -> Values:
        """Return a copy of the observations with missing entries replaced by their expectation, for imputation.

        The expectation is taken over the states with weights `marginals` (K, n). This default treats columns as
        independent given the state; families with dependent columns or with symbols override it.
        """
        expected = (marginals.T @ self.expectation()).reshape(values.shape)
        filled = np.where(is_missing(values), expected, values)
        return filled.astype(values.dtype) if values.dtype.kind == "f" else filled

    def draw_missing(self, values: Values, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        """Return a copy of n observations with missing entries drawn given the state of each, `states` (n,).

        This default treats columns as independent given the state; families with dependent columns override it.
        """
        drawn = np.where(is_missing(values), self.sample(states, rng).reshape(values.shape), values)
        return drawn.astype(values.dtype) if values.dtype.kind == "f" else drawn

    def log_tails(self, values: Values) -> NDArray[np.float64]:
        """Return log P(X < x), log P(X = x) and log P(X > x) of each column x of n observations in each state.

        The shape is (3, n, K, D). Values at missing entries mean nothing. This default asks `marginals`.
        """
        laws, points = self.marginals(), as_matrix(np.where(is_missing(values), 0, values))[:, None, :]
        if laws is None:
            raise InputError(f"{type(self).__name__} have no cumulative distribution of their columns.")
        if hasattr(laws, "pmf"):
            return np.stack([laws.logcdf(points - 1), laws.logpmf(points), laws.logsf(points)])
        below = laws.logcdf(points)
        return np.stack([below, np.full_like(below, -np.inf), laws.logsf(points)])

    def fixed_counts(self, values: Values) -> EmissionCounts | None:
        """What kernels of collapsed inference are given of this point if it does not change: all likelihoods at once.

        None if there are too many.
        """
        from subchain.emissions.collapsed.counts import tabled_counts

        return tabled_counts(self, values)

    def marginals(self) -> Any:
        """Return the distribution of each column in each state as one frozen scipy.stats distribution, (K, D).

        It is used for quantiles of forecasts and for standard deviations in reports. The default, None, is for families
        whose columns have no such common distribution (symbols, products).
        """
        return None


@runtime_checkable
class Posterior(Protocol):
    """Methods that inference calls on the distribution of the parameters; `Conjugate` and `Frozen` provide them."""

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
    def update_hyperparameters(self, sums: Any, rate: float = 1.0) -> Posterior: ...
    def begin(self, sums: Any) -> Posterior: ...
    def log_hyperprior(self) -> float: ...
    def incremental(self, sums: Any) -> Incremental: ...
    def counts(self, sums: Any, values: Values) -> EmissionCounts | None: ...


@dataclasses.dataclass
class Conjugate(Record, FixedHyperparameters, ABC):
    """Conjugate distribution over the parameters θ of K states; the same class is prior and posterior.

    A family whose hyperparameters are learned overrides `is_learned`, `update_hyperparameters` and `log_hyperprior`
    (`LearnedTable` is an example); by default they are fixed.
    """

    @abstractmethod
    def update(self, sums: Any) -> Self:
        """Return the posterior given sums, with this distribution as the prior; this object is not changed."""

    @abstractmethod
    def mean(self) -> Parameters:
        """Return the mean of the parameters."""

    @abstractmethod
    def mode(self) -> Parameters:
        """Return the most probable parameters; under a flat prior the maximum-likelihood estimate.

        A state without data under a flat prior must still get usable parameters.
        """

    @abstractmethod
    def expected_log(self) -> Likelihood:
        """Return the likelihood exp E[log p(x | θ)], the surrogate of variational inference; it is not normalised."""

    @abstractmethod
    def predictive(self) -> Likelihood:
        """Return the likelihood E[p(x | θ)] of one observation, the surrogate of collapsed inference."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Parameters:
        """Draw parameters from this distribution."""

    @abstractmethod
    def kl(self, prior: Any) -> float:
        """Return the Kullback-Leibler divergence KL(self ‖ prior), summed over states; both must be proper."""

    @abstractmethod
    def log_density(self, parameters: Any) -> float:
        """Return the log density at `parameters`, up to a constant that depends on this distribution alone."""

    def log_partition(self) -> NDArray[np.float64]:
        """Return the log normaliser of the density of each state's parameters, (K,), up to a constant.

        The posterior's minus the prior's is the log evidence of a state's observations, up to terms that do not depend
        on θ. The search for states to merge uses it; with the default of zeros it compares transitions only.
        """
        return np.zeros(self.mean().n_states)

    def evidence_by_state(self, sums: Any) -> NDArray[np.float64]:
        """Return the log probability of what each state emitted, (K,), up to what depends on the data alone."""
        return self.update(sums).log_partition() - self.log_partition()

    def log_evidence(self, sums: Any) -> float | None:
        """Return the log probability of the observations behind `sums` with θ integrated out.

        Return None (the default) where it has terms that sums do not determine, such as Σ log x!; callers then compute
        it from the observations.
        """
        return None

    def check_sums(self, sums: Any) -> None:
        """Raise a ValueError if sums from a file, each within its range, cannot be those of observations."""

    def incremental(self, sums: Any) -> Incremental:
        """Return the posterior given `sums`, with this distribution as the prior, for updates by small steps."""
        return Incremental(self, sums)

    def counts(self, sums: Any, values: Values) -> EmissionCounts | None:
        """Counts of all observations for the kernels of collapsed inference, to begin with those that made `sums`.

        A family that has none (None) is visited in Python, one cluster after the other.
        """
        return None


class Emission(Component, ABC):
    """Specification of a family as the user writes it.

    The constructor only stores its arguments under the same names. `prior` derives hyperparameters that the user left
    open (None) from the data.
    """

    #: Name of the family in `HMM(emission="…")`.
    name: ClassVar[str]
    #: Class of its parameters; a model file finds the family by it.
    parameters_type: ClassVar[type[Parameters]]
    #: Whether the family has estimates (`mode`) but no posterior of its parameters, so that only EM can learn it.
    em_only: ClassVar[bool] = False
    #: Whether states have meanings by their numbers: they are neither merged, split nor sorted by a fit.
    names_states: ClassVar[bool] = False
    #: Names or indices of the data columns that the family describes; None for all.
    columns: Any
    #: Whether the parameters of the start are kept, of all states or of those in a list.
    frozen: Any

    @abstractmethod
    def check(self, data: Sequences) -> None:
        """Raise an `InputError` that says what is wrong and where if this family cannot emit the data."""

    def check_against(self, data: Sequences, parameters: Any) -> None:
        """Raise an `InputError` if a model with these parameters cannot emit the data."""
        self.check(data)
        n_columns = parameters.expectation().shape[1]
        if data.n_features != n_columns:
            raise InputError(
                f"the data have {data.n_features} columns, but the model was made for {n_columns}; "
                "give the columns that it was trained on, in the same order."
            )

    def describes(self, parameters: Any) -> bool:
        """Return whether parameters are those of this family."""
        return isinstance(parameters, self.parameters_type)

    @classmethod
    def for_parameters(cls, parameters: Any) -> Self:
        """Return the specification of a model with these parameters."""
        return cls()

    @abstractmethod
    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> Conjugate:
        """Build the prior over the parameters of `n_states` states.

        If `flat`, hyperparameters that the user left open are chosen such that the posterior mode is the
        maximum-likelihood estimate (EM); otherwise such that the prior is proper and weak.
        """

    @abstractmethod
    def features(self, data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return rows to cluster for a k-means start, (len(index), D), without missing entries.

        `index` are flat positions. Return None where Euclidean distance is meaningless, as between symbols.
        """

    def prepare(self, data: Sequences) -> Sequences:
        """Return the data restricted to the family's columns."""
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
        """Return the family with sizes set from `parameters` that data may not show, such as the number of symbols."""
        return self

    def check_start(self, prior: Any, parameters: Any) -> None:
        """Raise an `InputError` if a fit with this prior cannot begin with given parameters of the family."""

    @property
    def has_frozen(self) -> bool:
        """Whether any part, or state, of the family keeps the parameters of the start."""
        return freezes(self.frozen)

    def freeze(self, prior: Conjugate, start: Parameters) -> Posterior:
        """Return the prior with a point mass on the parameters of the start for the states that are frozen."""
        from subchain.emissions.frozen import Frozen, PartlyFrozen

        kept = frozen_states(self.frozen, start.n_states, type(self).__name__)
        if kept.all() or not kept.any():
            return Frozen(start) if kept.any() else prior
        if prior.is_learned:
            raise InputError(
                f"{type(self).__name__}: a learned concentration and frozen={self.frozen!r} cannot be combined; give "
                "the concentration as a number."
            )
        return PartlyFrozen(prior, start, kept.astype(np.float64))

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> Sums:
        """Return sums for a random start: observations at flat positions `index` have exponential random weights.

        They are scaled up to all observations. `reference` is the likelihood under the prior's mean."""
        sums = reference.zeros()
        weights = rng.exponential(1.0 / reference.n_states, (reference.n_states, len(index)))
        reference.accumulate(np.take(data.values, index, axis=0), weights, sums)
        return sums.scale(data.n_observations / max(len(index), 1))

    def unseen_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> Sums | None:
        """Return sums, of all states alike or random, that make possible what the observations at `index` may lack.

        A start adds a small share of them: without it the maximum-likelihood estimate of a sample's statistics may say
        that other observations are impossible. None where that cannot be.
        """
        return None if self.features(data, index[:1]) is not None else self.random_sums(data, reference, index, rng)
