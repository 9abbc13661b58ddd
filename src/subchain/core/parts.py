"""A model as named conjugate parts: the interface between inference algorithms and blocks of parameters.

A *part* is a block of parameters with a conjugate prior: the rows of a transition matrix, the emissions of all states,
a translation table. Prior and posterior of a part are objects of the same class. `Point`, `Posterior` and
`subchain.core.statistics.Statistics` have one field per part, under the same names; everything in `inference/` reaches
the parts through the methods of this module and knows none of them by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Record, Sums
from subchain.core.statistics import Statistics
from subchain.errors import FileFormatError

#: Form of a part for one pass over the data: parameter values, or surrogate weights such as exp E[log θ]. What they are
#: is known to the part and to the structure that computes with them.
Weights = object
Memory = dict[str, NDArray[Any]]
#: How an algorithm treats parameters whose prior is hierarchical and learned: it keeps a variational posterior of them,
#: integrates them out, or draws them.
Treatment = Literal["variational", "collapsed", "drawn"]
PointType = TypeVar("PointType", bound="Point")
#: The sums of one part.
SumsOf = TypeVar("SumsOf", bound=Sums)
#: How kernels turn a posterior into weights, by the names that `Posterior.weights` knows.
MEAN, EXPECTED_LOG, MODE = 0, 1, 2
KINDS = {"predictive": MEAN, "mean": MEAN, "expected_log": EXPECTED_LOG, "mode": MODE}


class IncrementalPart(Protocol[SumsOf]):
    """The posterior of one part whose sums change a little at a time: S ← keep · S + gain · fresh."""

    def surrogate(self, kind: str) -> Weights:
        """Return the weights of the kind "expected_log", "predictive", "mean" or "mode" under the current sums."""

    def blend(self, keep: float, gain: float, fresh: SumsOf) -> None:
        """Replace the sums S by keep · S + gain · fresh."""

    def adopt(self, prior: Part[SumsOf]) -> None:
        """Continue under another prior with the same sums."""

    def sums(self) -> SumsOf:
        """Return the current sums, which later updates do not change."""

    def apply_factor(self) -> None:
        """Apply a factor that is kept beside the sums, if there is one."""

    def memory(self) -> Memory:
        """Return the arrays that an exact continuation needs besides the sums."""

    def restore(self, memory: Memory) -> None:
        """Set the state to that of `memory`."""


class Part(Protocol[SumsOf]):
    """A conjugate distribution over one block of parameters, prior or posterior."""

    @property
    def is_learned(self) -> bool:
        """Whether hyperparameters of this prior are learned."""

    def update(self, sums: SumsOf) -> Self:
        """Return the posterior given sums, this distribution being the prior."""

    def mean(self) -> Weights:
        """Return the mean of the parameters."""

    def mode(self) -> Weights:
        """Return the mode of the parameters."""

    def expected_log(self) -> Weights:
        """Return exp E[log θ], the surrogate weights of variational inference."""

    def predictive(self) -> Weights:
        """Return the surrogate weights of collapsed inference, the posterior predictive distribution."""

    def sample(self, rng: np.random.Generator) -> Weights:
        """Draw parameters."""

    def kl(self, prior: Self) -> float:
        """Return the Kullback-Leibler divergence from the prior."""

    def log_density(self, values: Weights) -> float:
        """Return the log density of parameter values, up to a constant."""

    def log_evidence(self, sums: SumsOf) -> float | None:
        """Return the log probability of data with these sums, parameters integrated out; None if it needs more."""

    def update_hyperparameters(self, sums: SumsOf, rate: float = 1.0) -> Self:
        """Return this prior with learned hyperparameters updated for the sums: fully at rate 1, partly below."""

    def begin(self, sums: SumsOf) -> Self:
        """Return this prior for a run that continues from unrelated sums."""

    def log_hyperprior(self) -> float:
        """Return the log density of the hyperparameters, or minus their divergence from their own prior."""

    def incremental(self, sums: SumsOf) -> IncrementalPart[SumsOf]:
        """Return the posterior given sums in a form that small changes of them update quickly."""


@dataclasses.dataclass
class Point(Record):
    """Parameter values, or surrogate weights, of a whole model; subclasses declare one field per part."""

    shares_states = False

    @property
    def n_states(self) -> int | None:
        """Number of hidden states; None if the structure has no fixed number of them."""
        return None

    def parts(self) -> dict[str, Weights]:
        """Return the values of each part by name."""
        return self._values()


@dataclasses.dataclass
class Posterior(Record):
    """Independent conjugate distributions over the parts of a model; subclasses declare one field per part.

    The same class serves as prior and as posterior.
    """

    shares_states = False
    #: The class of its points.
    point_type: ClassVar[type[Point]]

    def parts(self) -> dict[str, Part[Sums]]:
        """Return the distribution of each part by name."""
        return self._values()

    def _with(self, parts: Mapping[str, Part[Sums]]) -> Self:
        return type(self)(**parts)

    def update(self, statistics: Statistics) -> Self:
        """Return the posterior given expected statistics, this being the prior."""
        return self._with({name: part.update(statistics.part(name)) for name, part in self.parts().items()})

    def check_fit(self, statistics: Statistics, point: Point) -> None:
        """Raise a `FileFormatError` unless this prior, statistics and a point from a file belong to one model."""
        for name, part in self.parts().items():
            check_part(name, part, statistics.part(name), cast(Record, point.parts()[name]))

    # ---- points and weights ------------------------------------------------------------------------------------------

    def weights(self, kind: str) -> Point:
        """Return the weights of all parts, of the kind "mean", "mode", "expected_log" or "predictive"."""
        return self.point_type(**{name: getattr(part, kind)() for name, part in self.parts().items()})

    def mean(self) -> Point:
        """Return the posterior means of all parts."""
        return self.weights("mean")

    def mode(self) -> Point:
        """Return the modes of all parts."""
        return self.weights("mode")

    def next_mode(self, statistics: Statistics, previous: Point | None) -> tuple[Point, list[str]]:
        """Return the mode given these statistics, and events; blocks without data may keep the `previous` values."""
        return self.mode(), []

    def expected_log(self) -> Point:
        """Return exp E[log θ] of all parts."""
        return self.weights("expected_log")

    def predictive(self) -> Point:
        """Return the predictive weights of all parts."""
        return self.weights("predictive")

    def sample(self, rng: np.random.Generator) -> Point:
        """Draw the parameters of all parts."""
        return self.point_type(**{name: part.sample(rng) for name, part in self.parts().items()})

    # ---- densities ---------------------------------------------------------------------------------------------------

    def kl(self, prior: Self) -> float:
        """Return the Kullback-Leibler divergence from the prior, over all parts."""
        return float(sum(part.kl(getattr(prior, name)) for name, part in self.parts().items()))

    def log_density(self, point: Point) -> float:
        """Return the log density at a point, up to a constant."""
        return float(sum(part.log_density(getattr(point, name)) for name, part in self.parts().items()))

    def log_evidence(self, statistics: Statistics) -> float | None:
        """Return the log evidence with all parameters integrated out; None if a part cannot compute it."""
        found = [part.log_evidence(statistics.part(name)) for name, part in self.parts().items()]
        return None if any(value is None for value in found) else float(sum(value or 0.0 for value in found))

    # ---- learned hyperparameters -------------------------------------------------------------------------------------

    @property
    def is_learned(self) -> bool:
        """Whether any part of this prior has learned hyperparameters."""
        return any(part.is_learned for part in self.parts().values())

    def update_hyperparameters(self, statistics: Statistics, rate: float = 1.0) -> Self:
        """Return this prior with learned hyperparameters updated for the statistics: fully at rate 1, partly below."""
        updated = {n: part.update_hyperparameters(statistics.part(n), rate) for n, part in self.parts().items()}
        return self._with(updated)

    def begin(self, statistics: Statistics) -> Self:
        """Return this prior for a run that continues from unrelated statistics."""
        return self._with({name: part.begin(statistics.part(name)) for name, part in self.parts().items()})

    def log_hyperprior(self) -> float:
        """Return the log density of all learned hyperparameters, or minus their divergence from their own priors."""
        return float(sum(part.log_hyperprior() for part in self.parts().values()))

    def incremental(self, statistics: Statistics) -> IncrementalPosterior:
        """Return the posterior given these statistics in a form that small changes of them update quickly."""
        return IncrementalPosterior(self, statistics)


def check_part(name: str, prior: Any, sums: Record, weights: Record) -> None:
    """Raise a `FileFormatError` unless the posterior given these sums has a mean of the form of these weights."""
    with np.errstate(all="ignore"):
        mean = prior.update(sums).mean()
    check_alike(mean, weights, f"prior, statistics and parameters of the {name}")
    if mean.not_finite() is not None:
        raise FileFormatError(f"the posterior of the {name} has a mean that is not finite: {mean.not_finite()[0]}")


def check_alike(one: Any, other: Any, what: str, *, by_shape: bool = True) -> None:
    """Raise a `FileFormatError` that names `what` unless two records have the same classes and the same shapes.

    Whole numbers, such as the groups of states, are part of the shape.
    """
    if one.schema() != other.schema() or (by_shape and not _have_one_shape(one, other)):
        raise FileFormatError(f"{what} do not fit each other")


def _have_one_shape(one: Any, other: Any) -> bool:
    mine, theirs = one.arrays(), other.arrays()
    return one.shapes() == other.shapes() and all(
        np.array_equal(array, theirs[name]) for name, array in mine.items() if array.dtype.kind in "iu"
    )


class IncrementalPosterior:
    """The posterior of a whole model whose statistics change a little at a time.

    Parameters
    ----------
    prior : the distribution before the data
    statistics : the statistics to begin with
    """

    def __init__(self, prior: Posterior, statistics: Statistics) -> None:
        self.prior = prior
        self.parts = {name: part.incremental(statistics.part(name)) for name, part in prior.parts().items()}
        self._make: Callable[..., Statistics] = type(statistics)
        self._n_observations = statistics.n_observations

    def weights(self, kind: str) -> Point:
        """Return the weights of all parts of this kind; they are valid until the next `blend`."""
        return self.prior.point_type(**{name: part.surrogate(kind) for name, part in self.parts.items()})

    def blend(self, keep: float, gain: float | Mapping[str, float], fresh: Statistics) -> None:
        """Replace the statistics S by keep · S + gain · fresh; the gain may differ between parts."""
        for name, part in self.parts.items():
            part.blend(keep, gain if isinstance(gain, (int, float)) else gain[name], fresh.part(name))

    def adopt(self, prior: Posterior) -> None:
        """Continue under another prior with the same statistics."""
        self.prior = prior
        for name, part in prior.parts().items():
            self.parts[name].adopt(part)

    def update_hyperparameters(self, rate: float) -> None:
        """Update the learned hyperparameters of the prior for the current statistics, with step size `rate`."""
        updated = {
            name: part.update_hyperparameters(self.parts[name].sums(), rate) if part.is_learned else part
            for name, part in self.prior.parts().items()
        }
        self.adopt(type(self.prior)(**updated))

    def apply_factors(self) -> None:
        """Apply factors that parts keep beside their sums, so that the sums alone are the state of the posterior."""
        for part in self.parts.values():
            part.apply_factor()

    def statistics(self) -> Statistics:
        """Return a copy of the current statistics."""
        sums: dict[str, Sums] = {name: part.sums() for name, part in self.parts.items()}
        return self._make(**sums, n_observations=self._n_observations)

    def memory(self) -> Memory:
        """Return the arrays that an exact continuation needs besides the statistics."""
        return {f"{name}.{key}": a for name, part in self.parts.items() for key, a in part.memory().items()}

    def restore(self, memory: Memory) -> None:
        """Set the state to that of `memory`; entries of other objects are ignored."""
        for name, part in self.parts.items():
            prefix = f"{name}."
            part.restore({key.removeprefix(prefix): a for key, a in memory.items() if key.startswith(prefix)})
