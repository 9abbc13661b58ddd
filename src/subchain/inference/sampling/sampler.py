"""What all algorithms that draw hidden states have in common: chains, sweeps, temperatures, and which draws are kept.

In the long run draws are from the posterior; what they say on average is an answer without any approximation, if the
run is long enough, and samples tell how uncertain it is. Several chains run side by side. What a sweep does is up to
the algorithm's walkers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.core.samples import MIN_DRAWS, Samples, r_hat
from subchain.errors import InputError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace
from subchain.inference.sampling.draws import samples_of
from subchain.inference.sampling.sweeps import Sweeps
from subchain.structures.base import Walker, Walkers

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper
    from subchain.inference.sampling.reported import Reported

Array = NDArray[np.float64]
Annealing = float | Sequence[float] | Callable[[float], float] | None

#: R-hat of the log joint from which on a user is warned.
DISAGREEMENT = 1.1


class Sampler(Algorithm):
    """Base of algorithms whose iterations are sweeps of several chains."""

    flat = False
    updates_hyperparameters = False
    patience = None
    n_samples: int
    burn_in: int
    thin: int
    n_chains: int
    annealing: Annealing
    keep_states: bool

    @property
    def needs_matrix(self) -> bool:
        return True

    def measured(self, trace: Trace) -> set[str]:
        of_chains = {"log_joint", *(name.rpartition(".")[0] for name in trace.measures)} - {""}
        return {
            "sweeps",
            "accepted",
            *trace.measures,
            *(f"{name}.{chain}" for name in of_chains for chain in range(self.n_chains)),
        }

    @abstractmethod
    def walkers(self, problem: Problem, seed: int) -> Walkers:
        """Return what makes the chains of a run; raise an `InputError` if there is nothing that could."""

    @abstractmethod
    def reported(self, walkers: list[Walker], room: int) -> Reported:
        """What is made of so many draws of each chain."""

    def check(self) -> None:
        super().check()
        for name, least in (("n_samples", 1), ("burn_in", 0), ("thin", 1), ("n_chains", 1)):
            whole_number(self, name, least)
        if not isinstance(self.keep_states, (bool, np.bool_)):
            raise InputError(f"{type(self).__name__}: keep_states must be True or False, not {self.keep_states!r}.")
        self.temperatures()

    def identity(self) -> dict[str, Any]:
        """As for every algorithm; a resumed run may also keep more draws."""
        settings = super().identity() | {"annealing": self.temperatures()}
        del settings["n_samples"]
        return settings

    def _saved_settings(self) -> dict[str, Any]:
        """As for every component; a function becomes the temperatures that it gives."""
        settings = super()._saved_settings()
        if callable(self.annealing):
            settings["annealing"] = self.temperatures()[: max(self.burn_in, 1)].tolist()
        return settings

    def temperatures(self) -> Array:
        """Temperature of each sweep of the burn-in, and that of all sweeps after it, (burn_in + 1,)."""
        share = np.append(np.linspace(0.0, 1.0, max(self.burn_in, 2))[: self.burn_in], 1.0)
        found = self._temperatures_at(share)
        wrong = np.flatnonzero(~((found > 0.0) & np.isfinite(found)))
        if wrong.size:
            raise InputError(
                f"{type(self).__name__}: temperatures must be positive and finite, but that of sweep {wrong[0]} is "
                f"{found[wrong[0]]}; look at annealing={self.annealing!r}."
            )
        return found

    def _temperatures_at(self, share: Array) -> Array:
        """Temperatures at shares of the burn-in."""
        if self.annealing is None:
            return np.ones(len(share))
        try:
            if callable(self.annealing):
                return np.array([float(self.annealing(at)) for at in share.tolist()])
            given = np.atleast_1d(np.array(self.annealing, dtype=np.float64))
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim != 1 or not len(given):
            raise InputError(
                f"{type(self).__name__}: annealing must be a temperature, several, or a function of the share of the "
                f"burn-in that returns one, not {self.annealing!r}."
            )
        if len(given) > 1 and self.burn_in == 0:
            raise InputError(
                f"{type(self).__name__}: annealing={self.annealing!r} goes through several temperatures during the "
                "burn-in, but burn_in is 0; give it some sweeps."
            )
        return np.interp(share, np.linspace(0.0, 1.0, len(given)) if len(given) > 1 else [1.0], given)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def n_iterations(self, problem: Problem) -> int | None:
        return -(-self.burn_in // self.thin) + self.n_samples

    def visited(self, problem: Problem) -> float:
        return super().visited(problem) * self.n_chains * self.thin

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Sweeps(problem, self, state)

    def samples(self, state: RunState) -> Samples | None:
        return samples_of(state) if len(state.trace) else None

    def weights(self, posterior: Any, point: Any) -> Any:
        return posterior.predictive()

    def _kept(self, trace: Trace, name: str = "log_joint") -> Array:
        """A measure at the kept draws that a trace tells of, (chains, draws)."""
        columns = [trace.measures[f"{name}.{chain}"] for chain in range(self.n_chains)]
        return np.array(columns)[:, self._is_kept(trace)]

    def _is_kept(self, trace: Trace) -> NDArray[np.bool_]:
        """Whether the draw of each row of a trace is kept."""
        return np.array(trace.measures["sweeps"]) > self.burn_in

    def _accepted(self, trace: Trace) -> Array:
        """Share of the proposals that were accepted for each kept draw, (draws,)."""
        return np.array(trace.measures["accepted"])[self._is_kept(trace)]

    def final_objective(self, state: RunState) -> float:
        """Return the mean log joint of the best chain's draws; before there are any, the last one."""
        trace = state.trace
        if not len(trace):
            return -math.inf
        kept = self._kept(trace)
        return float(kept.mean(axis=1).max()) if kept.shape[1] else trace.objective[-1]

    def complaint(self, trace: Trace, status: Status) -> str | None:
        kept, name = self._kept(trace), type(self).__name__
        if not kept.shape[1]:
            return f"{name} ended ({status}) during the burn-in and kept no draw; the model is that of its last states."
        if not self._accepted(trace).any():
            return (
                f"{name} accepted no proposal for any of its {kept.shape[1]} draws (temperature "
                f"{trace.measures['temperature'][-1]:g}): they are all alike. Take a higher last temperature, or block="
                "'state', which has no proposals."
            )
        if self.temperatures()[-1] != 1.0 or self.n_chains == 1 or kept.shape[1] < MIN_DRAWS:
            return None
        found = r_hat(kept)
        if found <= DISAGREEMENT:
            return None
        return (
            f"the chains of {name} do not agree (R-hat of the log joint is {found:.2f}): they may need more burn_in "
            "and n_samples, or have found different modes, of which the best is reported."
        )
