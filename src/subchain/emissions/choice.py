"""Choice of the emission family by the data, for `HMM(emission="auto")` and the command line.

Each column is judged on its own:

- strings are symbols (`Categorical`);
- numbers with fractions are measurements (`Gaussian`);
- zeros and ones are flags (`Bernoulli`);
- whole numbers are counts (`Poisson`), codes of symbols (`Categorical`) or measurements (`Gaussian`).

Whole numbers are codes if they begin at 0 or 1 and their frequencies are not those of any mixture of Poisson
distributions: neighbouring codes have unrelated frequencies, neighbouring counts have similar ones. Large numbers, and
numbers that vary less than counts can, are measurements. Columns of several kinds get a `Product`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.missing import count_missing, is_missing
from subchain.data.number_symbols import numbers_as_symbols
from subchain.data.sequences import Sequences
from subchain.emissions.base import Emission
from subchain.emissions.bernoulli import Bernoulli
from subchain.emissions.categorical import Categorical
from subchain.emissions.checks import as_matrix
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.families import AUTO, resolve_emission
from subchain.emissions.gaussian import Gaussian
from subchain.emissions.moments import RealEmission
from subchain.emissions.poisson import Poisson
from subchain.emissions.product import Product

#: With more columns of measurements than this, covariances are diagonal.
FEW_COLUMNS = 10
#: Whole numbers with a larger mean are measurements: a Gaussian describes counts of that size, whatever their variance.
LARGE_MEAN = 50.0
#: Counts with a smaller ratio of variance to mean are measurements: no mixture of Poisson distributions is below 1.
SMALLEST_DISPERSION = 0.5
#: Maximum number of different values if some are negative, or if there are two that are not 0 and 1.
FEW_VALUES = 10
#: Codes are below this number, and use at least this share of the numbers between the smallest and the largest.
MANY_CODES, DENSE = 4096, 0.5
#: Codes are described better than counts by at least so many nats per observation.
LEAST_GAIN = 0.01
#: Level of the test of codes against counts, and the number of parameters of a mixture of two Poisson distributions.
SIGNIFICANCE, MIXTURE_PARAMETERS = 1e-4, 3
#: Rates of the mixture of Poisson distributions, and iterations of EM for their weights.
RATES, ITERATIONS = 60, 200
#: Data with more rows are judged by evenly spaced excerpts.
EXCERPTS, EXCERPT_ROWS = 64, 1 << 16

SYMBOLS, NUMBERS, FLAGS, COUNTS, CODES = "symbols", "numbers", "flags", "counts", "codes"
_FAMILIES: dict[str, type[Emission]] = {
    SYMBOLS: Categorical, CODES: Categorical, NUMBERS: Gaussian, COUNTS: Poisson, FLAGS: Bernoulli,
}  # fmt: skip


class Choice(NamedTuple):
    """The chosen family, and one sentence that says what was chosen and why."""

    emission: Emission
    reason: str


@dataclasses.dataclass
class Column:
    """What is known of one column.

    Attributes
    ----------
    is_whole : whether all observed numbers are whole
    values, counts : the different whole numbers, and how often each occurs; empty if they are not whole
    """

    is_whole: bool
    values: NDArray[np.float64]
    counts: NDArray[np.int64]


def emission_for(emission: str | Emission, data: Sequences) -> Choice:
    """Return the family for these data: the given one, or for "auto" the one that suits their columns.

    The reason is empty if the family was given.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions.choice import emission_for
    >>> emission_for("auto", Sequences(np.array([0.5, 1.5])))
    Choice(emission=Gaussian(), reason='Gaussian, because the data are numbers with fractions.')
    """
    is_open = isinstance(emission, str) and emission == AUTO
    return choose_emission(data) if is_open else Choice(resolve_emission(emission), "")


def choose_emission(data: Sequences) -> Choice:
    """Return the family for data, by the kinds of their columns, and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import as_sequences
    >>> rng = np.random.default_rng(0)
    >>> choose_emission(as_sequences(rng.poisson(7.0, 500))).emission
    Poisson()
    >>> choose_emission(as_sequences(rng.integers(0, 6, 500))).emission
    Categorical()
    """
    found = [_kind(data, column) for column in range(data.n_features)]
    kinds = [kind for kind, _ in found]
    names: list[Any] = list(data.columns) if data.columns is not None else list(range(data.n_features))
    several_symbols = data.n_features > 1 and (SYMBOLS in kinds or CODES in kinds)
    if len(set(kinds)) > 1 or several_symbols:
        emission: Emission = _product(names, kinds)
        whys = [f"{name} holds {why}" for name, (_, why) in zip(names, found, strict=True)]
        return Choice(emission, f"Product, one family for each kind of column: {'; '.join(_shortened(whys))}.")
    emission = _joint(kinds[0], data.n_features)
    what = "the data are" if data.n_features == 1 else f"all {data.n_features} columns are"
    whys = sorted({why for _, why in found})
    why = whys[0] if len(whys) == 1 else f"{kinds[0]}, such as {whys[0]}"
    if isinstance(emission, DiagonalGaussian):
        why += ", more columns than a full covariance suits"
    return Choice(emission, f"{type(emission).__name__}, because {what} {why}.")


def coded_numbers(emission: Emission, data: Sequences) -> Sequences:
    """Return the data with negative whole numbers of a table coded as symbols where the family describes symbols."""
    parts = emission.families.values() if isinstance(emission, Product) else [emission]
    symbols = [part for part in parts if isinstance(part, Categorical)]
    return numbers_as_symbols(data, [int(index) for part in symbols for index in data.column_indices(part.columns)])


def n_missing_entries(emission: Emission, data: Sequences) -> int:
    """Return the number of entries that a family takes as missing in its own columns, to which `data` are restricted.

    To real families −1 is a number in integers too.
    """
    if isinstance(emission, Product):
        return sum(n_missing_entries(part, part.prepare(data)) for part in emission.families.values())
    return 0 if isinstance(emission, RealEmission) and data.values.dtype.kind != "f" else count_missing(data.values)


def _shortened(whys: list[str], most: int = 6) -> list[str]:
    return whys if len(whys) <= most else [*whys[:most], f"and {len(whys) - most} more columns"]


def _joint(kind: str, n_columns: int, **settings: Any) -> Emission:
    """Return the family of columns of one kind."""
    if kind == NUMBERS and n_columns > FEW_COLUMNS:
        return DiagonalGaussian(**settings)
    return _FAMILIES[kind](**settings)


def _product(names: list[Any], kinds: list[str]) -> Product:
    """Return the `Product` with one family for each column of symbols, and one for all numbers of the same kind."""
    parts: dict[str, Emission] = {}
    for kind in (NUMBERS, COUNTS, FLAGS):
        columns = [name for name, of in zip(names, kinds, strict=True) if of == kind]
        if columns:
            parts[kind] = _joint(kind, len(columns), columns=columns)
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind in (SYMBOLS, CODES):
            plain = isinstance(name, str) and name.isidentifier() and "__" not in name and name not in _FAMILIES
            parts[name if plain else f"symbols_{number}"] = Categorical(columns=name)
    return Product(**parts)


def _kind(data: Sequences, column: int) -> tuple[str, str]:
    """Return the kind of a column, and what it holds in words."""
    if data.vocabularies[column] is not None:
        return SYMBOLS, "strings"
    seen = _column(data, column)
    if not seen.is_whole or not _type_is_explained(data):
        return NUMBERS, "numbers with fractions" if not seen.is_whole else "floating-point numbers"
    if not len(seen.values):
        return NUMBERS, "missing everywhere"
    low, high = int(seen.values[0]), int(seen.values[-1])
    shown = f"whole numbers from {low} to {high}"
    if data.values.dtype.kind == "i" and data.value_range()[0] == -1:
        shown += " (and -1, which is a number to a Gaussian and missing to other families)"
    if low >= 0 and high <= 1:
        return FLAGS, "zeros and ones"
    if low < 0 or len(seen.values) <= 2:
        few = len(seen.values) <= FEW_VALUES and high < MANY_CODES
        return (CODES, f"{len(seen.values)} different {shown}") if few else (NUMBERS, shown)
    if _are_codes(seen):
        return CODES, f"{shown} whose frequencies are not those of counts"
    mean, variance = _moments(seen)
    if mean > LARGE_MEAN:
        return NUMBERS, f"large {shown}"
    if variance < SMALLEST_DISPERSION * mean:
        return NUMBERS, f"{shown} that vary less than counts"
    return COUNTS, f"small {shown}"


def _column(data: Sequences, column: int) -> Column:
    """Return the different values of a column and their counts; the scan ends at the first fraction."""
    values, counts = np.empty(0), np.empty(0, dtype=np.int64)
    for start, stop in _blocks(data.n_observations):
        block = as_matrix(np.asarray(data.values[start:stop]))[:, column]
        observed = block if block.dtype.kind == "i" and block.min(initial=0) < -1 else block[~is_missing(block)]
        if observed.dtype.kind == "f" and (np.floor(observed) != observed).any():
            return Column(False, np.empty(0), np.empty(0, dtype=np.int64))
        fresh, n = np.unique(observed, return_counts=True)
        joint, place = np.unique(np.concatenate([values, fresh]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, n]), len(joint)).astype(np.int64)
        values = joint
    return Column(True, values, counts)


def _blocks(n: int) -> list[tuple[int, int]]:
    """Return starts and stops of all blocks of rows, or of evenly spaced ones if there are many."""
    if n <= EXCERPTS * EXCERPT_ROWS:
        return [(start, min(start + EXCERPT_ROWS, n)) for start in range(0, n, EXCERPT_ROWS)]
    starts = np.linspace(0, n - EXCERPT_ROWS, EXCERPTS).astype(np.int64)
    return [(int(start), int(start) + EXCERPT_ROWS) for start in starts]


def _type_is_explained(data: Sequences) -> bool:
    """Return whether whole numbers may have a floating type for another reason than being measurements.

    Tables have one type for all columns, and integers with missing entries become floating numbers.
    """
    if data.values.dtype.kind != "f" or data.columns is not None:
        return True
    for start, stop in _blocks(data.n_observations):
        block = np.asarray(data.values[start:stop])
        if (np.floor(block) != block).any():  # true for nan too
            return True
    return False


def _moments(seen: Column) -> tuple[float, float]:
    mean = float(np.average(seen.values, weights=seen.counts))
    return mean, float(np.average((seen.values - mean) ** 2, weights=seen.counts))


def _are_codes(seen: Column) -> bool:
    """Return whether the numbers are codes: their frequencies differ from those of every mixture of Poissons.

    It is a likelihood-ratio test. In large data, small differences are not enough.
    """
    from scipy.stats import chi2

    low, high = seen.values[0], seen.values[-1]
    n, n_values = int(seen.counts.sum()), len(seen.values)
    if low > 1 or high >= MANY_CODES or n_values < DENSE * (high - low + 1):
        return False
    gain = float((seen.counts * np.log(seen.counts / n)).sum()) - _poisson_mixture(seen)
    freedom = max(n_values - 1 - MIXTURE_PARAMETERS, 1)
    return gain > max(0.5 * float(chi2.isf(SIGNIFICANCE, freedom)), LEAST_GAIN * n)


def _poisson_mixture(seen: Column) -> float:
    """Return the log likelihood of the best mixture of Poisson distributions.

    The rates are fixed and close to each other; their weights are estimated by EM.
    """
    from scipy.stats import poisson

    rates = np.linspace(0.1, np.sqrt(seen.values[-1] + 1.0), RATES) ** 2
    likelihood = poisson.pmf(seen.values[:, None], rates)
    weights, shares = np.full(RATES, 1.0 / RATES), seen.counts / seen.counts.sum()
    for _ in range(ITERATIONS):
        weights = weights * (likelihood.T @ (shares / np.maximum(likelihood @ weights, 1e-300)))
    return float((seen.counts * np.log(np.maximum(likelihood @ weights, 1e-300))).sum())
