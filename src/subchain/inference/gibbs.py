"""Gibbs sampling: hidden states drawn from their posterior, again and again.

A sweep draws the state of every position anew, one at a time or whole sequences, each given all others. In the long run
the states are draws from the posterior; what they say on average is an answer without any approximation, if the run is
long enough, and samples tell how uncertain it is. Several chains run side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal import no_restriction
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError, unknown_name
from subchain.inference.base import Algorithm, Lists, whole_number
from subchain.inference.draws import beliefs_of, samples_of
from subchain.inference.loop import RunState
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Problem
from subchain.inference.sweeps import Sweeps
from subchain.inference.trace import Status, Trace
from subchain.samples import LEAST_DRAWS, Samples, r_hat
from subchain.statistics import Statistics

if TYPE_CHECKING:
    from subchain.inference.loop import Stepper

Array = NDArray[np.float64]
Annealing = float | Sequence[float] | Callable[[float], float] | None

BLOCKS = ("state", "sequence")
PARAMETERS = ("collapsed", "sampled")
#: R-hat of the log joint from which on a user is warned.
DISAGREEMENT = 1.1


class Gibbs(Algorithm):
    """Draws of the hidden states, and of the parameters, from their posterior.

    What is reported is the mean of the kept draws of the chain with the largest mean log joint; labels of the states
    may differ between chains. All draws are in `model.samples_`, and `model.beliefs_` tells how often each position had
    each state.

    Words are drawn by compiled sweeps. For other families take sequences and sampled parameters: everything else draws
    one state or one sequence after the other in Python.

    Parameters
    ----------
    block : "state" or "sequence"
        What is drawn at once: the state of one position given all others, which is fast and mixes slowly, or the whole
        path of a sequence, which mixes well and costs K² a position. Where moves are forbidden, single states may be
        stuck; take sequences.
    parameters : "collapsed" or "sampled"
        Whether parameters are summed out, or drawn given the states in turn with these; only sequences can be drawn
        given parameters. Summed out they stand in nobody's way, but every state, or sequence, has to wait for the one
        before; drawn, all sequences can be drawn at a time.
    n_samples : int
        Draws of each chain that are kept.
    burn_in : int
        Sweeps before the first of them.
    thin : int
        Sweeps from one draw to the next.
    n_chains : int
        Chains, each with a path of its own to begin with.
    annealing : optional
        Temperatures τ of the burn-in: probabilities are raised to the power 1/τ (with sampled parameters those of
        states and observations, not the prior's). Several numbers are spread evenly over the burn-in and joined by
        straight lines, so that ``(2.0, 0.08)`` goes from hot to cold; a function is asked for the temperature at every
        share of the burn-in from 0 to 1. Draws that are kept have the last temperature, and come from the posterior
        only if that is 1.
    keep_states : bool
        Keep the drawn paths too, one small integer for each position and draw.
    time_limit : float, optional
        Seconds after which the run ends with what it has.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM
    >>> from subchain.inference import Gibbs
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> gibbs = Gibbs(n_samples=50, burn_in=20, n_chains=2)
    >>> HMM(2, "categorical", inference=gibbs, random_state=0, n_jobs=1).fit(x).n_states_
    2
    """

    name = "gibbs"
    flat = False
    renews = False
    patience = None

    def __init__(
        self,
        block: str = "state",
        parameters: str = "collapsed",
        n_samples: int = 500,
        burn_in: int = 500,
        thin: int = 1,
        n_chains: int = 4,
        annealing: Annealing = None,
        keep_states: bool = False,
        time_limit: float | None = None,
    ) -> None:
        self.block = block
        self.parameters = parameters
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.annealing = annealing
        self.keep_states = keep_states
        self.time_limit = time_limit

    def check(self) -> None:
        super().check()
        if self.block not in BLOCKS:
            raise unknown_name("block of states", self.block, BLOCKS)
        if self.parameters not in PARAMETERS:
            raise unknown_name("way with parameters", self.parameters, PARAMETERS)
        if self.block == "state" and self.parameters == "sampled":
            raise InputError(
                "Gibbs: single states are drawn with the parameters summed out; for parameters='sampled' say "
                "block='sequence'."
            )
        for name, least in (("n_samples", 1), ("burn_in", 0), ("thin", 1), ("n_chains", 1)):
            whole_number(self, name, least)
        if not isinstance(self.keep_states, (bool, np.bool_)):
            raise InputError(f"Gibbs: keep_states must be True or False, not {self.keep_states!r}.")
        self.temperatures()

    def identity(self) -> dict[str, Any]:
        """As for every algorithm; a resumed run may also keep more draws."""
        settings = super().identity() | {"annealing": self.temperatures()}
        del settings["n_samples"]
        return settings

    def _written(self) -> dict[str, Any]:
        """As for every component; a function becomes the temperatures that it gives."""
        settings = super()._written()
        if callable(self.annealing):
            settings["annealing"] = self.temperatures()[: max(self.burn_in, 1)].tolist()
        return settings

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        positions, count = int(lengths.sum()), np.min_scalar_type(self.n_samples).itemsize
        paths = self.n_samples * np.min_scalar_type(n_states).itemsize if self.keep_states else 0
        return positions * (self.n_chains * (n_states * count + 4 + paths) + 8 * n_states)

    def temperatures(self) -> Array:
        """Temperature of each sweep of the burn-in, and that of all sweeps after it, (burn_in + 1,)."""
        share = np.append(np.linspace(0.0, 1.0, max(self.burn_in, 2))[: self.burn_in], 1.0)
        found = self._temperatures_at(share)
        wrong = np.flatnonzero(~((found > 0.0) & np.isfinite(found)))
        if wrong.size:
            raise InputError(
                f"Gibbs: temperatures must be positive and finite, but that of sweep {wrong[0]} is {found[wrong[0]]}; "
                f"look at annealing={self.annealing!r}."
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
                "Gibbs: annealing must be a temperature, several, or a function of the share of the burn-in that "
                f"returns one, not {self.annealing!r}."
            )
        if len(given) > 1 and self.burn_in == 0:
            raise InputError(
                f"Gibbs: annealing={self.annealing!r} goes through several temperatures during the burn-in, but "
                "burn_in is 0; give it some sweeps."
            )
        return np.interp(share, np.linspace(0.0, 1.0, len(given)) if len(given) > 1 else [1.0], given)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def n_iterations(self, problem: Problem) -> int | None:
        return -(-self.burn_in // self.thin) + self.n_samples

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Sweeps(problem, self, state)

    def beliefs(self, problem: Problem, state: RunState) -> Lists | None:
        found, evidence = beliefs_of(state.results.memory), problem.whole.evidence
        if found is None:
            return None
        if evidence is None:
            return found.reshape(-1), *no_restriction()
        legal = evidence.listed(problem.whole.data)
        return found, legal.offsets, legal.states

    def samples(self, state: RunState) -> Samples | None:
        return samples_of(state.results.memory)

    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        return posterior.predictive()

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        return posterior.mean(), []

    def _kept(self, trace: Trace) -> Array:
        """Log joints of the kept draws that a trace tells of, (chains, draws)."""
        columns = [trace.measures[f"log_joint.{chain}"] for chain in range(self.n_chains)]
        kept = np.array(trace.measures["sweeps"]) > self.burn_in
        return np.array(columns)[:, kept]

    def worth(self, trace: Trace) -> float:
        """The mean log joint of the best chain's draws; before there are any, the last one."""
        if not len(trace):
            return -math.inf
        kept = self._kept(trace)
        return float(kept.mean(axis=1).max()) if kept.shape[1] else trace.objective[-1]

    def complaint(self, trace: Trace, status: Status) -> str | None:
        kept = self._kept(trace)
        if not kept.shape[1]:
            return f"Gibbs ended ({status}) during the burn-in and kept no draw; the model is that of its last states."
        if self.temperatures()[-1] != 1.0 or self.n_chains == 1 or kept.shape[1] < LEAST_DRAWS:
            return None
        found = r_hat(kept)
        if found <= DISAGREEMENT:
            return None
        return (
            f"the chains of Gibbs do not agree (R-hat of the log joint is {found:.2f}): they may need more burn_in and "
            "n_samples, or have found different modes, of which the best is reported."
        )
