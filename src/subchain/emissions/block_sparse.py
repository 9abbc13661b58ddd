"""Block-sparse emissions: symbols and states are partitioned jointly, and a state emits the symbols of its group alone.

With G groups of K / G states, an observation leaves K / G of the K states possible, so that a step of the recursions
visits (K / G)² transitions instead of K². (Chiu & Rush, Scaling Hidden Markov Language Models, 2020, section 3.)

Column k of a table has the weights of the symbols of state k's group, in the order of their *ranks* within the group;
groups with fewer symbols than the largest have structural zeros behind. A table is (M, K), M symbols in the largest
group, instead of (W, K). The distribution of each column is that of the categorical family.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.ranges import NOT_NEGATIVE, Range, probabilities
from subchain.core.records import Record, array
from subchain.data.evidence import Evidence
from subchain.data.legal_states import LegalStates
from subchain.data.sequences import Sequences
from subchain.data.word_groups import word_groups
from subchain.emissions.base import Emission, Likelihood, Table, Values
from subchain.emissions.block_kernels import (
    Places,
    add_up_blocks,
    gather_blocks,
    look_up_blocks,
    scatter_blocks,
)
from subchain.emissions.categorical import (
    SMALLEST_LOG,
    CategoricalLikelihood,
    CategoricalParameters,
    CategoricalSums,
    DirichletTable,
    as_symbols,
)
from subchain.emissions.checks import as_vector, check_probabilities, first_where, integer_range, positive, where_is
from subchain.emissions.hyperparameters import check_mode
from subchain.emissions.incremental import Incremental
from subchain.emissions.scaling import exponentiate_in_place
from subchain.emissions.symbol_kernels import scale_lists
from subchain.errors import InputError
from subchain.numerics import simplex

Index = NDArray[np.int64]
Array = NDArray[np.float64]

#: Numbers of groups and ranks in files.
NUMBERS = Range("int64", least=0.0)


@dataclasses.dataclass
class Blocks(Record):
    """Which symbols and states belong together.

    Attributes
    ----------
    groups : (W,) group of each symbol
    states : (K,) group of each state
    """

    groups: Index = array("V", NUMBERS)
    states: Index = array("K", NUMBERS)

    def check_fields(self) -> None:
        if self.groups.max(initial=0) >= len(self.groups):
            raise ValueError("there are more groups than symbols")
        if self.states.max(initial=0) >= len(self.sizes) or not self.sizes[self.states].all():
            raise ValueError("a state belongs to a group without symbols")

    @cached_property
    def sizes(self) -> Index:
        """Number of symbols of each group, (G,)."""
        return np.bincount(self.groups)

    @cached_property
    def places(self) -> Places:
        """Groups and ranks of symbols, and groups of states, as kernels take them."""
        order = np.argsort(self.groups, kind="stable")
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        return Places(np.ascontiguousarray(self.groups), ranks, np.ascontiguousarray(self.states))

    @property
    def n_rows(self) -> int:
        """Number of symbols of the largest group, M."""
        return int(self.sizes.max())

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Which entries of a table (M, K) belong to a symbol."""
        return np.arange(self.n_rows)[:, None] < self.sizes[self.states]

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Which symbols each state emits, (W, K)."""
        return self.groups[:, None] == self.states

    def spread(self, table: Array) -> Array:
        """Return a table (M, K) as one over all symbols, (W, K), with zeros outside the groups."""
        return np.where(self.legal, table[self.places.ranks], 0.0)

    def packed(self, table: Array) -> Array:
        """Return a table over all symbols, (W, K), without what is outside the groups, (M, K)."""
        out = np.zeros((self.n_rows, table.shape[1]))
        symbols, states = np.nonzero(self.legal)
        out[self.places.ranks[symbols], states] = table[symbols, states]
        return out

    def rows(self, of_symbols: Array) -> Array:
        """Return numbers of symbols, (W,), in the form of tables, (M, K), with zeros behind the smaller groups."""
        by_group = np.zeros((self.n_rows, len(self.sizes)))
        by_group[self.places.ranks, self.groups] = of_symbols
        return by_group[:, self.states]


class BlockLikelihood(CategoricalLikelihood):
    """Likelihood given by an (M, K) table of weights; a missing symbol (−1) has weight 1 in every state."""

    blocks: Blocks

    @property
    def n_categories(self) -> int:
        return len(self.blocks.groups)

    def evidence(self, data: Sequences, known: Evidence | None) -> Evidence | None:
        """Return the evidence with the rule that an observation leaves the states of its group alone."""
        return Evidence.with_groups(known, self.blocks.groups, self.blocks.states)

    def log_likelihood(self, values: Values) -> Table:
        symbols = as_symbols(values)
        out = np.empty((self.n_states, len(symbols)))
        gather_blocks(np.ascontiguousarray(self.weights), symbols, self.blocks.places, out)
        return simplex.logs(out)

    def scaled(self, values: Values, out: Table) -> NDArray[np.float64]:
        np.copyto(out, self.log_likelihood(values))
        return exponentiate_in_place(out)

    def accumulate(self, values: Values, marginals: Table, sums: CategoricalSums) -> None:
        scatter_blocks(sums.counts, as_symbols(values), self.blocks.places, np.ascontiguousarray(marginals))

    def compiled(self, values: Values) -> None:
        """Return None: passes run over the legal states."""

    compiled_logs = compiled

    def log_likelihood_listed(self, values: Values, legal: LegalStates) -> NDArray[np.float64]:
        return simplex.logs(self._looked_up(values, legal, np.empty(legal.n_entries)))

    def scaled_listed(self, values: Values, legal: LegalStates, out: NDArray[np.float64]) -> NDArray[np.float64]:
        shift = np.empty(len(values))
        scale_lists(self._looked_up(values, legal, out), legal.offsets, shift)
        return shift

    def _looked_up(self, values: Values, legal: LegalStates, out: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.ascontiguousarray(self.weights)
        look_up_blocks(table, as_symbols(values), self.blocks.places, legal.offsets, legal.states, out)
        return out

    def accumulate_listed(
        self, values: Values, legal: LegalStates, marginals: NDArray[np.float64], sums: CategoricalSums
    ) -> None:
        places = self.blocks.places
        add_up_blocks(sums.counts, as_symbols(values), places, legal.offsets, legal.states, marginals)


@dataclasses.dataclass
class BlockTable(BlockLikelihood):
    """Surrogate: weights (M, K) that need not sum to one."""

    weights: NDArray[np.float64]
    blocks: Blocks


@dataclasses.dataclass
class BlockSparseParameters(BlockLikelihood, CategoricalParameters):
    """Probabilities of the symbols of each state's group; `weights` is (M, K), `probabilities` spreads them, (K, W)."""

    weights: NDArray[np.float64] = array("WK", probabilities(axis=0))
    blocks: Blocks  # type: ignore[misc]  # mypy takes the field before for one with a default

    def check_fields(self) -> None:
        _check_rows(self.weights, self.blocks)

    @property
    def dense(self) -> CategoricalParameters:
        """The same emissions as a categorical table with zeros, (W, K)."""
        return CategoricalParameters(self.blocks.spread(self.weights))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each symbol in each state, (K, W)."""
        return self.dense.probabilities

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        of_states = self.blocks.states[states]
        ranks = np.minimum(super().sample(states, rng), self.blocks.sizes[of_states] - 1)
        by_group = np.zeros((len(self.blocks.sizes), self.blocks.n_rows), dtype=np.int64)
        by_group[self.blocks.groups, self.blocks.places.ranks] = np.arange(self.n_categories)
        return by_group[of_states, ranks]

    @property
    def n_free(self) -> int:
        return int((self.blocks.sizes[self.blocks.states] - 1).sum())

    def fixed_counts(self, values: Values) -> Any:
        """Counts for collapsed inference where the emissions do not change: the likelihoods of all observations."""
        from subchain.emissions.collapsed.counts import tabled_counts

        return tabled_counts(self, values)

    def fill(self, values: Values, marginals: Table) -> Values:
        return self.dense.fill(values, marginals)

    def log_tails(self, values: Values) -> NDArray[np.float64]:
        return self.dense.log_tails(values)


@dataclasses.dataclass
class BlockDirichlet(DirichletTable):
    """Independent Dirichlet distributions over the symbols of each state's group; `concentration` is (M, K).

    Entries behind the symbols of smaller groups are zero.
    """

    concentration: NDArray[np.float64] = array("WK", NOT_NEGATIVE)
    blocks: Blocks  # type: ignore[misc]  # mypy takes the field before for one with a default

    def check_fields(self) -> None:
        _check_rows(self.concentration, self.blocks)
        if ((self.concentration > 0.0) != self.blocks.possible).any():
            raise ValueError(
                "concentrations must be positive for the symbols of each state's group, and zero elsewhere"
            )

    def mean(self) -> BlockSparseParameters:
        return self._parameters(super().mean())

    def mode(self) -> BlockSparseParameters:
        return self._parameters(super().mode())

    def sample(self, rng: np.random.Generator) -> BlockSparseParameters:
        return self._parameters(super().sample(rng))

    def _parameters(self, table: CategoricalParameters) -> BlockSparseParameters:
        return BlockSparseParameters(table.weights, self.blocks)

    def expected_log(self) -> BlockTable:  # type: ignore[override]
        weights = np.exp(np.maximum(self._moments.expected, SMALLEST_LOG))
        return BlockTable(np.where(self.concentration > 0.0, weights, 0.0), self.blocks)

    def predictive(self) -> BlockTable:  # type: ignore[override]
        return BlockTable(self.mean().weights, self.blocks)

    def incremental(self, sums: CategoricalSums) -> Incremental:
        return Incremental(self, sums)

    def counts(self, sums: CategoricalSums, values: Values) -> None:  # type: ignore[override]
        """Return None: visits of collapsed inference take likelihoods from a table."""


def _check_rows(table: Array, blocks: Blocks) -> None:
    """Raise a ValueError unless a table from a file has one row for each symbol of the largest group."""
    if table.shape[0] != blocks.n_rows:
        raise ValueError(f"a table has {table.shape[0]} rows, but the largest group has {blocks.n_rows} symbols")


class BlockSparse(Emission):
    """Symbols from a finite vocabulary in groups; each state emits the symbols of one group alone.

    The states are divided among the G groups in order, K / G for each: state k belongs to group ⌊k G / K⌋. Use it for
    many states: a step of the recursions visits (K / G)² transitions instead of K².

    Parameters
    ----------
    groups : (W,) of int, or path
        Group of each symbol, from 0; or a text file with one word and its group in each line.
    concentration : float or (W,), optional
        Concentration of the Dirichlet prior over the symbols of a state's group. By default it is 0.1 for variational
        and collapsed inference, and 1 for EM (maximum likelihood), which accepts nothing below 1.
    columns : name or index, optional
        Column that holds the codes.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, BlockSparse
    >>> x = np.array([0, 2, 1, 3] * 30)
    >>> model = HMM(4, BlockSparse(groups=[0, 0, 1, 1]), random_state=0).fit(x)
    >>> model.emission_.probabilities[:2, 2:]
    array([[0., 0.],
           [0., 0.]])
    """

    name = "block_sparse"
    parameters_type = BlockSparseParameters
    names_states = True

    def __init__(self, groups: Any = None, concentration: Any = None, columns: Any = None, frozen: Any = False) -> None:
        self.groups = groups
        self.concentration = concentration
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(probabilities: ArrayLike, groups: ArrayLike) -> BlockSparseParameters:
        """Build parameters from the probabilities of the symbols, (K, W), and the group of each symbol, (W,).

        Probabilities outside a state's group must be zero.
        """
        table, of_symbols = check_probabilities("probabilities", probabilities), word_groups(groups, None)
        if len(of_symbols) != table.shape[1]:
            raise InputError(f"groups has {len(of_symbols)} entries, but probabilities has {table.shape[1]} columns.")
        blocks = _blocks(of_symbols, len(table))
        outside = np.argwhere((table > 0.0) & ~blocks.legal.T)
        if len(outside):
            state, symbol = outside[0]
            raise InputError(
                f"state {state} emits symbol {symbol} with probability {table[state, symbol]:.3g}, but it belongs to "
                f"group {blocks.states[state]} and the symbol to group {of_symbols[symbol]}."
            )
        return BlockSparseParameters(blocks.packed(table.T), blocks)

    def _groups(self, data: Sequences) -> Index:
        if self.groups is None:
            raise InputError(
                "BlockSparse needs groups=, the group of each symbol: an array of numbers, or a file with a word and "
                "its group in each line."
            )
        return word_groups(self.groups, data.vocabulary)

    def check(self, data: Sequences, *, trains: bool = True) -> None:
        groups = self._groups(data)
        _check_codes(data, len(groups), trains=trains)

    def check_against(self, data: Sequences, parameters: BlockSparseParameters) -> None:
        _check_codes(data, parameters.n_categories, trains=False)

    @classmethod
    def for_parameters(cls, parameters: BlockSparseParameters) -> Self:
        return cls(groups=parameters.blocks.groups)

    def check_start(self, prior: BlockDirichlet, parameters: BlockSparseParameters) -> None:
        ours, theirs = prior.blocks, parameters.blocks
        if len(ours.groups) != len(theirs.groups):
            raise InputError(
                f"init knows {len(theirs.groups)} symbols, but groups has {len(ours.groups)} entries; give the groups "
                "of the model in init, or begin without it."
            )
        wrong = np.flatnonzero(ours.groups != theirs.groups)
        if len(wrong):
            raise InputError(
                f"init has other groups: symbol {wrong[0]} is in group {theirs.groups[wrong[0]]} there and in group "
                f"{ours.groups[wrong[0]]} here; give the groups of the model in init, or begin without it."
            )
        if (ours.states != theirs.states).any():
            raise InputError("init divides the states among the groups in another way; begin without it.")

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> BlockDirichlet:
        groups = self._groups(data)
        blocks = _blocks(groups, n_states)
        if flat and self.concentration is not None:
            check_mode("concentration", self.concentration)
        given = self.concentration if self.concentration is not None else (1.0 if flat else 0.1)
        value = positive("concentration", given)
        if value.shape not in ((), groups.shape):
            raise InputError(
                f"BlockSparse concentration has shape {value.shape}; expected a number, or ({len(groups)},) for "
                f"{len(groups)} symbols."
            )
        return BlockDirichlet(blocks.rows(np.broadcast_to(value, groups.shape)), blocks)

    def features(self, data: Sequences, index: NDArray[np.int64]) -> None:
        return None

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> CategoricalSums:
        """Return counts that are exponential, independent of the data, with the same mean for all symbols of states."""
        blocks = reference.blocks  # type: ignore[attr-defined]
        counts = np.where(blocks.possible, rng.exponential(1.0, blocks.possible.shape), 0.0)
        return CategoricalSums(counts * (data.n_observations / blocks.possible.sum()))


def _blocks(groups: Index, n_states: int) -> Blocks:
    """Return the partition with K / G states, one after the other, for each group; some have one more."""
    n_groups = int(groups.max()) + 1
    if n_states < n_groups:
        raise InputError(
            f"n_states={n_states} is less than the {n_groups} groups of symbols, so that some symbols would have no "
            f"state; give at least {n_groups} states, or fewer groups."
        )
    return Blocks(groups, np.arange(n_states) * n_groups // n_states)


def _check_codes(data: Sequences, n_symbols: int, *, trains: bool) -> None:
    """Raise an `InputError` for data that are not codes, or hold a symbol without a group."""
    smallest, largest = integer_range(data, "BlockSparse", trains=trains)
    if smallest < -1:
        raise InputError(
            f"BlockSparse data hold a code below −1 (the smallest is {smallest}); codes run from 0, and −1 alone means "
            "missing."
        )
    if largest >= n_symbols:
        position = first_where(data, lambda block: block >= n_symbols)
        raise InputError(
            f"the symbol {as_vector(data.values)[position]} at {where_is(data, position)} has no group: groups has "
            f"{n_symbols} entries, for the symbols 0 to {n_symbols - 1}. Give a group to each symbol, or encode the "
            "data with the model's vocabulary."
        )
