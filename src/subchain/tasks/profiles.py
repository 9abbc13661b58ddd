"""Readable description of the emissions of all states: probabilities of symbols, or mean and spread of each column.

Tables, cards and plots use these descriptions, so that none of them depends on a family. A family that is not known
here is described by its expectations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.data import Vocabulary
from subchain.data.columns import resolve_columns
from subchain.emissions import Emission, Parameters
from subchain.emissions.bernoulli import BernoulliParameters
from subchain.emissions.categorical import CategoricalParameters
from subchain.emissions.product import ProductParameters
from subchain.tasks.numbers import significant, with_spread

Array = NDArray[np.float64]
Vocabularies = Sequence[Vocabulary | None]


@dataclasses.dataclass(frozen=True)
class Symbols:
    """Emissions of a column of symbols.

    Attributes
    ----------
    name : name of the column
    column : index of the column in the data
    place : its columns in `Parameters.expectation()`
    labels : names of the symbols, (W,)
    chances : probability of each symbol in each state, (K, W)
    """

    name: str
    column: int
    place: slice
    labels: Sequence[str]
    chances: Array

    def top(self, state: int, n: int) -> NDArray[np.int64]:
        """Return the codes of the n most probable symbols of a state, the most probable first."""
        row = self.chances[state]
        best = np.argpartition(-row, min(n, len(row)) - 1)[:n]
        return best[np.argsort(-row[best], kind="stable")]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Emissions of a column of numbers.

    Attributes
    ----------
    name, column, place : as for `Symbols`
    means : (K,)
    spreads : standard deviations, (K,); None if the family does not provide them
    is_chance : whether the means are probabilities of a one
    """

    name: str
    column: int
    place: slice
    means: Array
    spreads: Array | None
    is_chance: bool


Profile = list[Symbols | Numbers]


def profile(
    emission: Parameters, family: Emission, vocabularies: Vocabularies = (), columns: Sequence[str] | None = None
) -> Profile:
    """Describe all columns that a family emits.

    Parameters
    ----------
    emission : parameters of the states
    family : specification of the family, which may have selected some columns
    vocabularies, columns : vocabularies and names of the data's columns, if they have any

    Examples
    --------
    >>> from subchain import Categorical
    >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    >>> part, = profile(emission, Categorical(), [Vocabulary(["no", "yes"])])
    >>> [part.labels[symbol] for symbol in part.top(1, n=2)]
    ['yes', 'no']
    """
    if isinstance(emission, ProductParameters):
        slots = emission.layout.slots()
        found: Profile = []
        for (name, part), numbers in zip(emission.parts.items(), slots, strict=True):
            before = found[-1].place.stop if found else 0
            found += _describe(part, numbers, vocabularies, columns, before, name)
        return found
    names = columns or ()
    width = 1 if isinstance(emission, CategoricalParameters) else emission.expectation().shape[1]
    numbers = (
        np.arange(width)
        if family.columns is None
        else resolve_columns(family.columns, columns, max(len(names), len(vocabularies), width))
    )
    return list(_describe(emission, numbers, vocabularies, columns, 0, None))


def _describe(
    emission: Parameters,
    numbers: NDArray[np.int64],
    vocabularies: Vocabularies,
    columns: Sequence[str] | None,
    before: int,
    part: str | None,
) -> Iterator[Symbols | Numbers]:
    """Yield the columns of one family, whose expectations begin at column `before` of all expectations."""
    if isinstance(emission, CategoricalParameters):
        number, chances = int(numbers[0]), emission.probabilities
        known = vocabularies[number] if number < len(vocabularies) else None
        labels = _labels(known, chances.shape[1])
        yield Symbols(_name(number, columns, part), number, slice(before, before + len(labels)), labels, chances)
        return
    means, law = emission.expectation(), emission.marginals()
    is_chance = isinstance(emission, BernoulliParameters)
    spreads = None if law is None or is_chance else np.broadcast_to(law.std(), means.shape)
    for index in range(means.shape[1]):
        number = int(numbers[index]) if index < len(numbers) else index
        spread = None if spreads is None else spreads[:, index]
        place = slice(before + index, before + index + 1)
        yield Numbers(_name(number, columns, part), number, place, means[:, index], spread, is_chance)


def _labels(vocabulary: Vocabulary | None, n: int) -> Sequence[str]:
    known = [] if vocabulary is None else vocabulary.to_list()
    return known + [str(code) for code in range(len(known), n)]


def _name(number: int, columns: Sequence[str] | None, part: str | None) -> str:
    if columns is not None and number < len(columns):
        return columns[number]
    return f"column {number}" if part is None else f"{part}, column {number}"


def in_words(part: Symbols | Numbers, state: int, n: int = 5) -> str:
    """Describe the emissions of a state in a column on one line.

    Examples
    --------
    >>> from subchain import Poisson
    >>> part, = profile(Poisson.from_parameters([[4.0], [9.0]]), Poisson())
    >>> in_words(part, 1)
    '9.0 ± 3.0'
    """
    if isinstance(part, Symbols):
        return " ".join(shown(part.labels[symbol]) for symbol in part.top(state, n) if part.chances[state, symbol] > 0)
    mean = float(part.means[state])
    return significant(mean, 3) if part.spreads is None else with_spread(mean, float(part.spreads[state]))


#: Invisible symbols and what is shown in their place.
INVISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "⍽", "": "∅"}
#: Length of the longest symbol that is shown unabridged.
LONGEST = 24


def shown(symbol: str) -> str:
    """Return a symbol for display: blanks are made visible, the middle of long symbols is left out.

    Examples
    --------
    >>> shown(" "), shown("a b")
    ('␣', 'a b')
    """
    visible = INVISIBLE.get(symbol) or "".join(INVISIBLE.get(c, c) if c in "\n\t\r" else c for c in symbol)
    return visible if len(visible) <= LONGEST else f"{visible[: LONGEST // 2]}…{visible[1 - LONGEST // 2 :]}"
