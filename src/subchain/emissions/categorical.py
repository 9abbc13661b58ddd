"""Categorical emissions: each state has a distribution over W symbols, with a Dirichlet prior.

Tables are symbol-major, (W, K), so that an observation reads one row (one or two cache lines) whatever W is.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from subchain.core.ranges import COUNTS, POSITIVE, probabilities
from subchain.core.records import Sums, array
from subchain.data.legal_states import LegalStates
from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Emission, Likelihood, Parameters, Table, Values
from subchain.emissions.checks import (
    as_vector,
    check_probabilities,
    first_where,
    integer_range,
    positive,
    suits_kernels,
    where_is,
)
from subchain.emissions.hyperparameters import check_mode
from subchain.emissions.incremental import Incremental
from subchain.emissions.symbol_kernels import SMALL, add_up, gather, look_up, scale_lists, scatter
from subchain.errors import InputError
from subchain.numerics import simplex

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts
    from subchain.emissions.compiled.symbols import SymbolLogs, SymbolTable

#: Smallest log weight: exp of less could underflow to zero, which would mean impossible instead of improbable.
SMALLEST_LOG = -690.0


def as_symbols(values: Values) -> NDArray[np.int64]:
    """Return observations as integer codes (n,), −1 where missing."""
    column = as_vector(values)
    if column.dtype.kind == "f":  # codes in a table of floating-point numbers, nan where missing
        column = np.where(np.isnan(column), -1.0, column)
    return column.astype(np.int64, copy=False)


@dataclasses.dataclass
class CategoricalSums(Sums):
    """Expected number of emissions of each symbol by each state, `counts` (W, K)."""

    counts: NDArray[np.float64] = array("WK", COUNTS)

    @property
    def pieces(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """The sums as one block of symbols (W,) and their rows (W, K), the form that incremental posteriors take."""
        return [(np.arange(len(self.counts)), self.counts)]


class CategoricalLikelihood(Likelihood):
    """Likelihood given by a (W, K) table of weights; a missing symbol (−1) has weight 1 in every state."""

    weights: NDArray[np.float64]

    @property
    def n_states(self) -> int:
        return int(self.weights.shape[1])

    @property
    def n_categories(self) -> int:
        return int(self.weights.shape[0])

    def log_likelihood(self, values: Values) -> Table:
        symbols = as_symbols(values)
        out = np.empty((self.n_states, len(symbols)))
        gather(np.ascontiguousarray(self.weights), symbols, out)
        with np.errstate(divide="ignore"):
            return np.log(out)

    def scaled(self, values: Values, out: Table) -> NDArray[np.float64]:
        """Look the symbols up in a table of weights: no exponentials are needed, and rarely a shift."""
        table, shift = self._scaled_table
        symbols = as_symbols(values)
        gather(table, symbols, out)
        return np.zeros(len(symbols)) if shift is None else shift[symbols]

    @property
    def _scaled_table(self) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Scaled weights (W, K), and the log scale of each row (W + 1,) or None if all are 0.

        The last log scale is that of the missing symbol, index −1. Rows are divided by their largest entries only if
        one of these is outside [SMALL, 1 / SMALL].
        """
        cached = self.__dict__.get("_scaled_cache")
        if cached is None:
            table, shift = np.ascontiguousarray(self.weights), None
            total, n_states = table @ np.ones(table.shape[1]), table.shape[1]  # faster than the largest entries
            if not (total.min(initial=np.inf) >= n_states * SMALL and total.max(initial=0.0) <= 1.0 / SMALL):
                largest = table.max(axis=1, initial=0.0)
                largest[largest <= 0.0] = 1.0
                if largest.min(initial=1.0) < SMALL or largest.max(initial=1.0) > 1.0 / SMALL:
                    table, shift = table / largest[:, None], np.append(np.log(largest), 0.0)
            cached = self.__dict__["_scaled_cache"] = (table, shift)
        return cached

    def zeros(self) -> CategoricalSums:
        return CategoricalSums(np.zeros(self.weights.shape))

    def accumulate(self, values: Values, marginals: Table, sums: CategoricalSums) -> None:
        scatter(sums.counts, as_symbols(values), np.ascontiguousarray(marginals))

    def compiled(self, values: Values) -> SymbolTable | None:
        from subchain.emissions.compiled.symbols import SymbolTable

        column = as_vector(np.asarray(values))
        if not suits_kernels(column):
            return None
        table, shift = self._scaled_table
        return SymbolTable(column, table, np.empty(0) if shift is None else shift)

    def compiled_logs(self, values: Values) -> SymbolLogs | None:
        from subchain.emissions.compiled.symbols import SymbolLogs

        column = as_vector(np.asarray(values))
        if not suits_kernels(column):
            return None
        with np.errstate(divide="ignore"):
            return SymbolLogs(column, np.log(np.ascontiguousarray(self.weights)))

    def log_likelihood_listed(self, values: Values, legal: LegalStates) -> NDArray[np.float64]:
        out = np.empty(legal.n_entries)
        look_up(self.weights, as_symbols(values), legal.offsets, legal.states, out)
        with np.errstate(divide="ignore"):
            return np.log(out)

    def scaled_listed(self, values: Values, legal: LegalStates, out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Look the weights up for legal states only; the rest of the table is not read."""
        symbols, shift = as_symbols(values), np.empty(len(values))
        look_up(self.weights, symbols, legal.offsets, legal.states, out)
        scale_lists(out, legal.offsets, shift)
        return shift

    def accumulate_listed(
        self, values: Values, legal: LegalStates, marginals: NDArray[np.float64], sums: CategoricalSums
    ) -> None:
        add_up(sums.counts, as_symbols(values), legal.offsets, legal.states, marginals)


@dataclasses.dataclass
class CategoricalTable(CategoricalLikelihood):
    """Surrogate: weights (W, K) that need not sum to one."""

    weights: NDArray[np.float64]


@dataclasses.dataclass
class CategoricalParameters(CategoricalLikelihood, Parameters):
    """Probabilities of the symbols in each state; `weights` is (W, K), `probabilities` its transpose."""

    weights: NDArray[np.float64] = array("WK", probabilities(axis=0))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each symbol in each state, (K, W)."""
        return np.ascontiguousarray(self.weights.T)

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        cumulative = np.cumsum(self.weights, axis=0)
        draws = rng.random(len(states))
        symbols = np.empty(len(states), dtype=np.int64)
        for state in np.unique(states):
            chosen = states == state
            column = cumulative[:, state]
            symbols[chosen] = np.searchsorted(column, draws[chosen] * column[-1], side="right")
        return np.minimum(symbols, self.n_categories - 1)

    @property
    def n_free(self) -> int:
        return self.n_states * (self.n_categories - 1)

    def expectation(self) -> NDArray[np.float64]:
        return self.probabilities

    def fixed_counts(self, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.categorical import fixed_table

        return fixed_table(self.weights, values)

    def fill(self, values: Values, marginals: Table) -> Values:
        """Return the codes with each missing one replaced by the most probable symbol."""
        filled, missing = values.copy(), is_missing(as_vector(values))
        as_vector(filled)[missing] = (self.weights @ marginals[:, missing]).argmax(axis=0)
        return filled

    def log_tails(self, values: Values) -> NDArray[np.float64]:
        """Return the tails of the symbols' codes, as if these were numbers, (3, n, K, 1)."""
        codes, none = np.maximum(as_symbols(values), 0), np.zeros((1, self.n_states))
        below = np.vstack([none, np.cumsum(self.weights[:-1], axis=0)])
        above = np.vstack([np.cumsum(self.weights[:0:-1], axis=0)[::-1], none])
        with np.errstate(divide="ignore"):
            return np.log(np.stack([table[codes] for table in (below, self.weights, above)]))[..., None]


@dataclasses.dataclass
class DirichletTable(Conjugate):
    """Independent Dirichlet distributions over the symbols, one per state; `concentration` is (W, K)."""

    concentration: NDArray[np.float64] = array("WK", POSITIVE)

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=0)

    def update(self, sums: CategoricalSums) -> Self:
        return dataclasses.replace(self, concentration=self.concentration + sums.counts)

    def mean(self) -> CategoricalParameters:
        return CategoricalParameters(simplex.normalized(self.concentration, axis=0))

    def mode(self) -> CategoricalParameters:
        return CategoricalParameters(simplex.mode(self.concentration, axis=0))

    def expected_log(self) -> CategoricalTable:
        return CategoricalTable(np.exp(np.maximum(self._moments.expected, SMALLEST_LOG)))

    def predictive(self) -> CategoricalTable:
        return CategoricalTable(self.mean().weights)

    def sample(self, rng: np.random.Generator) -> CategoricalParameters:
        return CategoricalParameters(simplex.draw(self.concentration, 0, rng))

    def kl(self, prior: DirichletTable) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_partition(self) -> NDArray[np.float64]:
        moments = self._moments
        return np.asarray(moments.gammaln.sum(axis=0) - moments.total_gammaln[0])

    def evidence_by_state(self, sums: CategoricalSums) -> NDArray[np.float64]:
        """Return the log probability of the counts of each state, (K,); symbols that do not occur cost nothing."""
        seen = np.flatnonzero(sums.counts.any(axis=1))
        before, counts = self.concentration[seen], sums.counts[seen]
        possible = before > 0.0
        gained = gammaln(np.where(possible, before + counts, 1.0)) - gammaln(np.where(possible, before, 1.0))
        total = self._total
        return np.asarray(gained.sum(axis=0) - gammaln(total + counts.sum(axis=0)) + gammaln(total))

    @cached_property
    def _total(self) -> NDArray[np.float64]:
        return np.asarray(self.concentration.sum(axis=0))

    def log_density(self, parameters: CategoricalParameters) -> float:
        return simplex.log_density(self.concentration, parameters.weights)

    def log_evidence(self, sums: CategoricalSums) -> float:
        return simplex.log_evidence(self.concentration, np.maximum(sums.counts, 0.0), axis=0)

    def incremental(self, sums: CategoricalSums) -> Incremental:
        from subchain.emissions.incremental_table import IncrementalTable

        return IncrementalTable(self, sums)

    def counts(self, sums: CategoricalSums, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.categorical import learned_table

        return learned_table(self.concentration, sums, values)


#: Values of `concentration` that ask for a learned one.
LEARNED = ("learned", "learned per symbol")


class Categorical(Emission):
    """Symbols from a finite vocabulary; observations are codes 0 … W−1, −1 where missing.

    Parameters
    ----------
    concentration : float or (W,) or (K, W), "learned" or "learned per symbol", optional
        Concentration of the Dirichlet prior. By default it is 0.1 for variational and collapsed inference, and 1 for
        EM (maximum likelihood), which accepts nothing below 1. Variational and collapsed inference can learn it: one
        number for all symbols, or one per symbol, shared by all states.
    n_categories : int, optional
        Number of symbols W; by default the size of the data's vocabulary, or the largest code plus one.
    columns : name or index, optional
        Column that holds the codes.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> from subchain.emissions import Categorical
    >>> Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]]).n_categories
    2
    """

    name = "categorical"
    parameters_type = CategoricalParameters

    def __init__(
        self, concentration: Any = None, n_categories: int | None = None, columns: Any = None, frozen: Any = False
    ) -> None:
        self.concentration = concentration
        self.n_categories = n_categories
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(probabilities: ArrayLike) -> CategoricalParameters:
        """Build parameters from the probabilities of the symbols, (K, W)."""
        table = check_probabilities("probabilities", probabilities)
        return CategoricalParameters(np.ascontiguousarray(table.T))

    def _size(self, data: Sequences) -> int:
        if self.n_categories is not None:
            if not isinstance(self.n_categories, (int, np.integer)) or self.n_categories < 1:
                raise InputError(f"n_categories must be a whole number of at least 1, not {self.n_categories!r}.")
            return int(self.n_categories)
        if data.vocabulary is not None:
            return len(data.vocabulary)
        return max(integer_range(data, "Categorical", trains=True)[1] + 1, 1)

    def check(self, data: Sequences, *, trains: bool = True) -> None:
        smallest, largest = integer_range(data, "Categorical", trains=trains)
        if smallest < -1:
            where = where_is(data, first_where(data, lambda block: block < -1))
            raise InputError(
                f"Categorical data hold a code below −1 at {where} (the smallest is {smallest}); "
                "codes run from 0, and −1 alone means missing."
            )
        size = self._size(data)
        if largest >= size:
            position = first_where(data, lambda block: block >= size)
            symbol = as_vector(data.values)[position]
            raise InputError(
                f"Categorical data hold a symbol too large at {where_is(data, position)}: {symbol}; there are only "
                f"{size} categories (0 to {size - 1}); set n_categories={largest + 1} or encode the data with the "
                "model's vocabulary."
            )

    def check_against(self, data: Sequences, parameters: CategoricalParameters) -> None:
        Categorical(n_categories=parameters.n_categories).check(data, trains=False)

    @classmethod
    def for_parameters(cls, parameters: CategoricalParameters) -> Self:
        return cls(n_categories=parameters.n_categories)

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> DirichletTable:
        if isinstance(self.concentration, str):
            return self._learned(self._size(data), n_states, flat)
        if flat and self.concentration is not None:
            check_mode("concentration", self.concentration)
        given = self.concentration if self.concentration is not None else (1.0 if flat else 0.1)
        value = positive("concentration", given)
        if value.ndim == 2:
            value = value.T
        elif value.ndim == 1:
            value = value[:, None]
        try:
            table = np.broadcast_to(value, (self._size(data), n_states)).copy()
        except ValueError:
            raise InputError(
                f"Categorical concentration has shape {np.shape(given)}; expected a number, ({self._size(data)},) or "
                f"({n_states}, {self._size(data)}) for {n_states} states and {self._size(data)} categories."
            ) from None
        return DirichletTable(table)

    def _learned(self, size: int, n_states: int, flat: bool) -> DirichletTable:
        from subchain.emissions.learned_table import LearnedTable

        if self.concentration not in LEARNED:
            known = " or ".join(map(repr, LEARNED))
            raise InputError(f"concentration must be positive and finite, or {known}, not {self.concentration!r}.")
        if flat or self.frozen:
            raise InputError(
                f"Categorical: concentration={self.concentration!r} is for variational and collapsed inference of "
                "tables that are not frozen; give a number."
            )
        return LearnedTable(np.full((size, n_states), 0.1), self.concentration == LEARNED[1])

    def features(self, data: Sequences, index: NDArray[np.int64]) -> None:
        return None

    def sized_as(self, parameters: CategoricalParameters) -> Categorical:
        if self.n_categories is not None:
            return self
        return Categorical(self.concentration, parameters.n_categories, self.columns, self.frozen)

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> CategoricalSums:
        """Return counts that are exponential with mean N / (K W), independent of the data."""
        counts = reference.zeros().counts  # type: ignore[attr-defined]
        return CategoricalSums(rng.exponential(data.n_observations / counts.size, counts.shape))
