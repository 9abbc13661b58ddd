"""Automatic choices for options that are not given: emission family by kind of data, algorithm by their size.

Every choice comes with a sentence that names it and the option that changes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.cli.calls import Call, parse
from subchain.errors import InputError, unknown_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from subchain.data import Sequences

#: Classes by the short names that options take.
EMISSIONS = {
    "categorical": "Categorical",
    "gaussian": "Gaussian",
    "diagonal_gaussian": "DiagonalGaussian",
    "poisson": "Poisson",
    "bernoulli": "Bernoulli",
    "product": "Product",
    "block_sparse": "BlockSparse",
    "block-sparse": "BlockSparse",
}
INFERENCES = {"vi": "VI", "em": "EM", "cvi": "CVI", "svi": "SVI", "scvi": "SCVI", "gibbs": "Gibbs",
              "hastings": "Hastings", "beam": "Beam"}  # fmt: skip
TRANSITIONS = {"dirichlet": "Dirichlet", "hdp": "HDP", "low_rank": "LowRank", "low-rank": "LowRank"}
BOUNDARIES = ("Buffer", "GrowBuffer", "Guards", "Stationary")
#: Example limits of algorithms without `max_iter`.
LIMITS = {
    "SVI": "max_passes=3",
    "SCVI": "max_passes=3",
    "Gibbs": "n_samples=200",
    "Hastings": "n_samples=200",
    "Beam": "n_samples=200",
}
#: Algorithms that can learn the number of states.
FINDS_STATES = ("VI", "CVI", "SVI", "SCVI", "Beam")

#: Numbers of observations from which minibatches are used: of symbols, for which marginals are kept, and of numbers.
MANY_SYMBOLS, MANY_NUMBERS = 1_000_000, 3_000_000
#: Default maximum number of states, and minimum number of observations per state.
MOST_STATES, FOR_EACH = 30, 20
#: Number of rows per block when data are scanned.
BLOCK = 1 << 20


@dataclasses.dataclass
class Choices:
    """Constructor call of the model to fit, and sentences about the automatic choices."""

    model: Call
    reasons: list[str]


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """Options of the model and the run; None if not given."""

    emission: str | None = None
    states: int | None = None
    infinite: bool = False
    max_states: int | None = None
    transition: str | None = None
    inference: str | None = None
    time_limit: float | None = None
    max_iter: int | None = None
    init: str | None = None
    restarts: int = 1
    seed: int = 0
    jobs: int | None = None
    tolerance: float | None = None
    groups: str | None = None

    @property
    def chosen_emission(self) -> str | None:
        """Value of --emission; None if the family is to be chosen by the data."""
        return None if self.emission == "auto" else self.emission


def choose(options: ModelOptions, data: Sequences) -> Choices:
    """Return the constructor call of `HMM` for these options and data."""
    _check_numbers(options)
    if options.chosen_emission is None:
        _check_mixed(data)
    _check_variation(data)
    reasons: list[str] = []
    emission = _emission(options, data, reasons)
    _check_symbols(emission, data)
    infinite = _is_infinite(options)
    if infinite and emission.name == "BlockSparse":
        raise InputError("--emission block-sparse divides the states among groups: give --states K.")
    n_states = _n_states(options, data, infinite, reasons)
    inference = _inference(options, data, emission, reasons)
    if infinite and inference.name not in FINDS_STATES:
        raise InputError(
            f"--inference {inference.name} cannot learn the number of states: give --states K, or use one of "
            f"{', '.join(FINDS_STATES).lower()}."
        )
    transition = _transition(options, infinite)
    model = Call("HMM", (n_states, emission)).with_settings(
        transition=transition, inference=inference, n_init=None if options.restarts == 1 else options.restarts,
        init=options.init, random_state=options.seed, n_jobs=options.jobs,
    )  # fmt: skip
    return Choices(model, reasons)


def check_options(options: ModelOptions) -> None:
    """Raise an `InputError` for invalid options, before any data are read."""
    from subchain.inference.start.starts import STARTS
    from subchain.structures.chain.local_starts import LOCAL_STARTS

    _check_numbers(options)
    _is_infinite(options)
    family = None if options.chosen_emission is None else parse_emission(options.chosen_emission)
    if options.groups is not None and (family is None or family.name != "BlockSparse"):
        raise InputError("--groups FILE is for --emission block-sparse; give both.")
    if family is not None and family.name == "BlockSparse" and options.groups is None and not family.has("groups"):
        raise InputError("--emission block-sparse needs --groups FILE, with a word and its group in each line.")
    for text, option, kinds, inner in (
        (options.chosen_emission, "--emission", EMISSIONS, EMISSIONS.values()),
        (options.inference, "--inference", INFERENCES, BOUNDARIES),
        (options.transition, "--transition", TRANSITIONS, ()),
    ):
        if text is not None:
            parse(text, option, kinds, inner).evaluate()
    if options.init is not None and options.init not in (*STARTS, *LOCAL_STARTS):
        raise unknown_name("value of --init:", options.init, (*STARTS, *LOCAL_STARTS))


def _check_numbers(options: ModelOptions) -> None:
    if options.infinite and options.states is not None:
        raise InputError(
            "--infinite and --states contradict each other: leave one out. --states K fits exactly K states, "
            "--infinite learns the number of states, at most --max-states K."
        )
    if options.states is not None and options.max_states is not None:
        raise InputError("--states and --max-states contradict each other: leave one out.")
    least = {
        "--states": (options.states, 1),
        "--max-states": (options.max_states, 2),
        "--restarts": (options.restarts, 1),
        "--max-iter": (options.max_iter, 1),
    }
    for option, (number, smallest) in least.items():
        if number is not None and number < smallest:
            raise InputError(f"{option} must be at least {smallest}, not {number}.")
    if options.time_limit is not None and not options.time_limit > 0.0:
        raise InputError(f"--time-limit must be a positive number of seconds, not {options.time_limit:g}.")
    if options.tolerance is not None and not options.tolerance >= 0.0:
        raise InputError(f"--tolerance must be a positive number or 0, not {options.tolerance:g}.")


def _is_infinite(options: ModelOptions) -> bool:
    """Return whether the number of states is learned."""
    if options.transition is not None and options.states is None and not options.infinite:
        return parse(options.transition, "--transition", TRANSITIONS).name == "HDP"
    return options.states is None


# ---- emissions -------------------------------------------------------------------------------------------------------


def parse_emission(text: str) -> Call:
    """Parse the value of --emission: a name, or a call, also that of a `Product` with families for its parts."""
    return parse(text, "--emission", EMISSIONS, EMISSIONS.values())


def _emission(options: ModelOptions, data: Sequences, reasons: list[str]) -> Call:
    from subchain.emissions import choose_emission

    if options.chosen_emission is not None:
        return parse_emission(options.chosen_emission).with_settings(groups=options.groups)
    choice = choose_emission(data)
    reasons.append(f"emission: {choice.reason} (--emission changes it.)")
    return parse_emission(repr(choice.emission))


# ---- states and algorithms -------------------------------------------------------------------------------------------


def _n_states(options: ModelOptions, data: Sequences, infinite: bool, reasons: list[str]) -> int:
    n = data.n_observations
    wanted = options.max_states if infinite else options.states
    if wanted is not None:
        if 2 * wanted > n:
            option = "--max-states" if infinite else "--states"
            raise InputError(
                f"{wanted} states are too many for {n} observations; {option} can be at most {max(n // 2, 1)} here, "
                "and should be much smaller."
            )
        return wanted
    if not infinite:
        raise InputError("--transition Dirichlet cannot learn the number of states: give --states K.")
    most = max(2, min(MOST_STATES, n // FOR_EACH))
    if not options.infinite:
        reasons.append(f"the number of states is learned, at most {most} (--max-states); --states K fixes it.")
    return most


def _transition(options: ModelOptions, infinite: bool) -> Call | None:
    if options.transition is None:
        return Call("HDP") if infinite else None
    given = parse(options.transition, "--transition", TRANSITIONS)
    if options.infinite and given.name != "HDP":
        raise InputError(f"--infinite needs --transition HDP(...), not {given}; leave one of the two out.")
    return given


def _inference(options: ModelOptions, data: Sequences, emission: Call, reasons: list[str]) -> Call:
    if options.inference is not None:
        call = parse(options.inference, "--inference", INFERENCES, BOUNDARIES)
    elif emission.name == "BlockSparse":
        call = Call("VI")
    else:
        counts = emission.name == "Categorical"
        if data.n_observations > (MANY_SYMBOLS if counts else MANY_NUMBERS):
            call = Call("SCVI" if counts else "SVI")
            reasons.append(f"{data.n_observations} observations are learned in minibatches (--inference {call.name}).")
        else:
            call = Call("CVI" if counts else "VI")
    if options.max_iter is not None and call.name in LIMITS:
        raise InputError(
            f"--max-iter is for vi, em and cvi; {call.name} has other limits: use --inference "
            f"'{call.name}({LIMITS[call.name]})', or --time-limit."
        )
    if options.tolerance is not None and call.name in LIMITS:
        raise InputError(f"--tolerance is for vi, em and cvi; a run of {call.name} has no test of convergence.")
    return call.with_settings(max_iter=options.max_iter, tolerance=options.tolerance, time_limit=options.time_limit)


# ---- data that are probably not what the user expects ----------------------------------------------------------------


def _blocks(data: Sequences) -> Iterator[NDArray[Any]]:
    table = data.values.reshape(len(data.values), -1)
    for start in range(0, len(table), BLOCK):
        yield np.asarray(table[start : start + BLOCK])


def _check_variation(data: Sequences) -> None:
    """Raise an `InputError` for constant columns; the scan stops once all columns have varied."""
    low = np.full(data.n_features, np.inf)
    high = np.full(data.n_features, -np.inf)
    for block in _blocks(data):
        low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
        if (low < high).all():
            return
    constant = np.flatnonzero(~(low < high))
    column = int(constant[0])
    value = _shown(data, column, low[column])
    if data.n_features == 1:
        raise InputError(
            f"all {data.n_observations} observations are {value}: there is nothing to learn from constant data. Check "
            "the file and the column."
        )
    name = column if data.columns is None else data.columns[column]
    raise InputError(
        f"column {name!r} is {value} everywhere and gives no information about states; choose other columns with "
        "--columns."
    )


def _shown(data: Sequences, column: int, value: float) -> str:
    vocabulary = data.vocabularies[column]
    if not np.isfinite(value) or (vocabulary is not None and value < 0):
        return "missing"
    return repr(vocabulary.to_list()[int(value)]) if vocabulary is not None else f"{value:g}"


def _check_mixed(data: Sequences) -> None:
    """Raise an `InputError` for columns of text that consist mostly of numbers."""
    for column, vocabulary in enumerate(data.vocabularies):
        if vocabulary is None:
            continue
        symbols = [symbol for symbol in vocabulary if symbol != vocabulary.unknown]
        texts = [symbol for symbol in symbols if not _is_number(symbol)]
        longest = max(map(len, symbols), default=0)
        if not symbols or longest < 2 or len(texts) > len(symbols) // 2:
            continue
        what = "the text" if data.columns is None else f"column {data.columns[column]!r}"
        also = f", but also {texts[0]!r}" if texts else ""
        raise InputError(
            f"{what} holds numbers such as {next(s for s in symbols if _is_number(s))!r}{also}. If they are "
            "measurements, save them as .csv or .npy with missing entries left empty; if they are names of symbols, "
            "give --emission categorical."
        )


def _check_symbols(emission: Call, data: Sequences) -> None:
    """Raise an `InputError` for text if the emission family needs numbers."""
    if emission.name in ("Categorical", "Product", "BlockSparse"):
        return
    for column, vocabulary in enumerate(data.vocabularies):
        if vocabulary is not None:
            what = "the data are text" if data.columns is None else f"column {data.columns[column]!r} holds text"
            raise InputError(
                f"{what}, such as {vocabulary.to_list()[0]!r}, but --emission {emission.name} needs numbers; use "
                "--emission categorical, or choose other columns with --columns."
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
