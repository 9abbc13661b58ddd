"""What is chosen for a user who has not said it: a family for the kind of data, an algorithm for their size.

Every choice comes with a sentence that says what was chosen and how to choose otherwise.
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

#: What users write, and the classes that are meant.
EMISSIONS = {
    "categorical": "Categorical",
    "gaussian": "Gaussian",
    "diagonal_gaussian": "DiagonalGaussian",
    "poisson": "Poisson",
    "bernoulli": "Bernoulli",
}
INFERENCES = {"vi": "VI", "em": "EM", "cvi": "CVI", "svi": "SVI", "scvi": "SCVI", "gibbs": "Gibbs", "beam": "Beam"}
TRANSITIONS = {"dirichlet": "Dirichlet", "hdp": "HDP"}
BOUNDARIES = ("Buffer", "GrowBuffer", "Guards", "Stationary")
#: Limits of algorithms that do not count iterations.
LIMITS = {"SVI": "max_passes=3", "SCVI": "max_passes=3", "Gibbs": "n_samples=200", "Beam": "n_samples=200"}
#: Algorithms that learn how many states there are.
FINDS_STATES = ("VI", "CVI", "SVI", "SCVI", "Beam")

#: More observations than this are learned from in small parts: symbols, for which marginals are kept, and numbers.
MANY_SYMBOLS, MANY_NUMBERS = 1_000_000, 3_000_000
#: The largest number of states that is tried if nobody has said it, and observations that a state should have then.
MOST_STATES, FOR_EACH = 30, 20
#: Whole numbers up to this are taken for symbols, larger ones for counts.
MOST_SYMBOLS = 256
#: More columns of numbers than this get variances alone, without covariances.
FEW_COLUMNS = 10
#: Rows that are looked at together.
BLOCK = 1 << 20


@dataclasses.dataclass
class Choices:
    """A model to fit, and why it is this one."""

    model: Call
    reasons: list[str]


@dataclasses.dataclass(frozen=True)
class Wishes:
    """What the user has said of the model; None where nothing."""

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


def choose(wishes: Wishes, data: Sequences) -> Choices:
    """The call of `HMM` for these data."""
    _check_numbers(wishes)
    if wishes.emission is None:
        _check_mixed(data)
    _check_variation(data)
    reasons: list[str] = []
    emission = _emission(wishes, data, reasons)
    _check_symbols(emission, data)
    infinite = _is_infinite(wishes)
    n_states = _n_states(wishes, data, infinite, reasons)
    inference = _inference(wishes, data, emission, reasons)
    if infinite and inference.name not in FINDS_STATES:
        raise InputError(
            f"--inference {inference.name} needs to be told the number of states: give --states K, or use one of "
            f"{', '.join(FINDS_STATES).lower()}."
        )
    transition = _transition(wishes, infinite)
    model = Call("HMM", (n_states, emission)).having(
        transition=transition, inference=inference, n_init=None if wishes.restarts == 1 else wishes.restarts,
        init=wishes.init, random_state=wishes.seed, n_jobs=wishes.jobs,
    )  # fmt: skip
    return Choices(model, reasons)


def check_wishes(wishes: Wishes) -> None:
    """Look for mistakes in what the user has said, before any data are read."""
    from subchain.inference.start.local_starts import LOCAL_STARTS
    from subchain.inference.start.starts import STARTS

    _check_numbers(wishes)
    _is_infinite(wishes)
    for text, option, kinds in (
        (wishes.emission, "--emission", EMISSIONS),
        (wishes.inference, "--inference", INFERENCES),
        (wishes.transition, "--transition", TRANSITIONS),
    ):
        if text is not None:
            parse(text, option, kinds, BOUNDARIES).make()
    if wishes.init is not None and wishes.init not in (*STARTS, *LOCAL_STARTS):
        raise unknown_name("value of --init:", wishes.init, (*STARTS, *LOCAL_STARTS))


def _check_numbers(wishes: Wishes) -> None:
    if wishes.infinite and wishes.states is not None:
        raise InputError(
            "--infinite and --states contradict each other: leave one out. --states K takes exactly K states, "
            "--infinite finds out how many there are, at most --max-states K."
        )
    if wishes.states is not None and wishes.max_states is not None:
        raise InputError("--states and --max-states contradict each other: leave one out.")
    least = {"--states": (wishes.states, 1), "--max-states": (wishes.max_states, 2), "--restarts": (wishes.restarts, 1)}
    for option, (number, smallest) in least.items():
        if number is not None and number < smallest:
            raise InputError(f"{option} must be at least {smallest}, not {number}.")


def _is_infinite(wishes: Wishes) -> bool:
    if wishes.transition is not None and wishes.states is None and not wishes.infinite:
        return parse(wishes.transition, "--transition", TRANSITIONS).name == "HDP"
    return wishes.states is None


# ---- emissions -------------------------------------------------------------------------------------------------------


def _emission(wishes: Wishes, data: Sequences, reasons: list[str]) -> Call:
    if wishes.emission is not None:
        return parse(wishes.emission, "--emission", EMISSIONS)
    kinds = [_kind(data, column) for column in range(data.n_features)]
    if len(set(kinds)) > 1 or (kinds[0] == "symbols" and len(kinds) > 1):
        reasons.append("columns of several kinds: a family each (--emission or --columns to choose).")
        return _product(data, kinds)
    if kinds[0] == "symbols":
        return Call("Categorical")
    if kinds[0] == "numbers":
        few = data.n_features <= FEW_COLUMNS
        if not few:
            reasons.append(f"{data.n_features} columns: variances without covariances (--emission gaussian).")
        return Call("Gaussian" if few else "DiagonalGaussian")
    return _whole_numbers(data, kinds[0], reasons)


def _kind(data: Sequences, column: int) -> str:
    """Symbols, flags (0 and 1), counts (0 and up) or numbers."""
    if data.vocabularies[column] is not None:
        return "symbols"
    if data.values.dtype.kind == "f":
        return "numbers"
    smallest, largest = 0, 0
    for block in _blocks(data):
        smallest, largest = min(smallest, int(block[:, column].min())), max(largest, int(block[:, column].max()))
    return "numbers" if smallest < -1 else "flags" if largest <= 1 else "counts"


def _whole_numbers(data: Sequences, kind: str, reasons: list[str]) -> Call:
    largest = int(data.value_range()[1])
    if data.n_features == 1 and largest < MOST_SYMBOLS:
        reasons.append(f"whole numbers from 0 to {largest} are taken for symbols (--emission poisson: for counts).")
        return Call("Categorical")
    if kind == "flags":
        reasons.append("columns of 0 and 1: --emission bernoulli.")
        return Call("Bernoulli")
    reasons.append("whole numbers are taken for counts (--emission gaussian: for measurements).")
    return Call("Poisson")


def _product(data: Sequences, kinds: list[str]) -> Call:
    """Symbols have a family a column, numbers of one kind share theirs."""
    families = {"numbers": "Gaussian", "counts": "Poisson", "flags": "Bernoulli"}
    names: list[Any] = list(data.columns) if data.columns is not None else list(range(data.n_features))
    parts: dict[str, Call] = {}
    for kind, family in families.items():
        columns = [name for name, of in zip(names, kinds, strict=True) if of == kind]
        if columns:
            parts[kind] = Call(family).having(columns=columns)
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == "symbols":
            part = str(name) if str(name).isidentifier() and str(name) not in families else f"symbols_{number}"
            parts[part] = Call("Categorical").having(columns=name)
    return Call("Product", settings=parts)


# ---- states and algorithms -------------------------------------------------------------------------------------------


def _n_states(wishes: Wishes, data: Sequences, infinite: bool, reasons: list[str]) -> int:
    n = data.n_observations
    wanted = wishes.max_states if infinite else wishes.states
    if wanted is not None:
        if 2 * wanted > n:
            option = "--max-states" if infinite else "--states"
            raise InputError(
                f"{wanted} states are too many for {n} observations; {option} can be at most {max(n // 2, 1)} here, "
                f"and should be far less."
            )
        return wanted
    if not infinite:
        raise InputError("--transition Dirichlet needs to be told the number of states: give --states K.")
    most = max(2, min(MOST_STATES, n // FOR_EACH))
    if not wishes.infinite:
        reasons.append(f"how many states there are is found out, at most {most} (--max-states), or give --states K.")
    return most


def _transition(wishes: Wishes, infinite: bool) -> Call | None:
    if wishes.transition is None:
        return Call("HDP") if infinite else None
    given = parse(wishes.transition, "--transition", TRANSITIONS)
    if wishes.infinite and given.name != "HDP":
        raise InputError(f"--infinite needs --transition HDP(...), not {given}; leave one of the two out.")
    return given


def _inference(wishes: Wishes, data: Sequences, emission: Call, reasons: list[str]) -> Call:
    if wishes.inference is not None:
        call = parse(wishes.inference, "--inference", INFERENCES, BOUNDARIES)
    else:
        counts = emission.name == "Categorical"
        if data.n_observations > (MANY_SYMBOLS if counts else MANY_NUMBERS):
            call = Call("SCVI" if counts else "SVI")
            reasons.append(f"{data.n_observations} observations: learned in small parts (--inference {call.name}).")
        else:
            call = Call("CVI" if counts else "VI")
    if wishes.max_iter is not None and call.name in LIMITS:
        raise InputError(
            f"--max-iter is for vi, em and cvi; {call.name} has limits of its own: write them out, as in "
            f"--inference '{call.name}({LIMITS[call.name]})', or give --time-limit."
        )
    return call.having(max_iter=wishes.max_iter, time_limit=wishes.time_limit)


# ---- data that cannot be what the user thinks ------------------------------------------------------------------------


def _blocks(data: Sequences) -> Iterator[NDArray[Any]]:
    table = data.values.reshape(len(data.values), -1)
    for start in range(0, len(table), BLOCK):
        yield np.asarray(table[start : start + BLOCK])


def _check_variation(data: Sequences) -> None:
    """Refuse columns that say the same everywhere; reading stops when all have been seen to vary."""
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
            f"all {data.n_observations} observations are {value}: without variation there is nothing to learn. Check "
            "that this is the right file, and the right column."
        )
    name = column if data.columns is None else data.columns[column]
    raise InputError(
        f"column {name!r} is {value} everywhere and says nothing about states; choose others by --columns."
    )


def _shown(data: Sequences, column: int, value: float) -> str:
    vocabulary = data.vocabularies[column]
    if not np.isfinite(value) or (vocabulary is not None and value < 0):
        return "missing"
    return repr(vocabulary.to_list()[int(value)]) if vocabulary is not None else f"{value:g}"


def _check_mixed(data: Sequences) -> None:
    """Refuse a column of numbers among which something else was read as text."""
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
            "say --emission categorical."
        )


def _check_symbols(emission: Call, data: Sequences) -> None:
    """Refuse text where numbers are needed."""
    if emission.name in ("Categorical", "Product"):
        return
    for column, vocabulary in enumerate(data.vocabularies):
        if vocabulary is not None:
            what = "the data are text" if data.columns is None else f"column {data.columns[column]!r} holds text"
            raise InputError(
                f"{what}, such as {vocabulary.to_list()[0]!r}, but --emission {emission.name} needs numbers; use "
                "--emission categorical, or choose other columns by --columns."
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
