"""Gibbs sampling: hidden states drawn from their posterior, again and again.

A sweep draws the state of every position anew, one at a time or whole sequences, each given all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics
from subchain.data.legal_states import no_restriction
from subchain.emissions import Categorical, Emission
from subchain.errors import InputError, unknown_name
from subchain.inference.run.algorithm import Lists
from subchain.inference.run.chains import chain_problem
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.inference.sampling.reported import Averages, marginals_of
from subchain.inference.sampling.sampler import Annealing, Sampler
from subchain.structures.base import Walker, Walkers
from subchain.structures.clusters import ClusterStructure

AUTO = "auto"
BLOCKS = (AUTO, "state", "sequence")
PARAMETERS = (AUTO, "collapsed", "sampled")


class Gibbs(Sampler):
    """Draws of the hidden states, and of the parameters, from their posterior.

    What is reported is the mean of the kept draws of the chain with the largest mean log joint; labels of the states
    may differ between chains. All draws are in `model.samples_`, and `model.training_marginals_` tells how often each
    position had each state.

    By default symbols are drawn state by state with the parameters summed out, and everything else as whole sequences
    with drawn parameters: for numbers these mostly gave more effective draws a second
    ([measured](../algorithms/gibbs.md#which-kind)). A family without counts of its own needs the latter: everything
    else draws one state or one sequence after the other in Python.

    Parameters
    ----------
    block : "auto", "state" or "sequence"
        What is drawn at once: the state of one position given all others, which is fast and mixes slowly, or the whole
        path of a sequence, which mixes well and costs K² a position. Where transitions are forbidden, single states may
        be stuck; take sequences.
    parameters : "auto", "collapsed" or "sampled"
        Whether parameters are summed out, or drawn given the states in turn with these; only sequences can be drawn
        given parameters. Summed out, mixing is better, but every state, or sequence, has to wait for the one
        before; drawn, all sequences can be drawn at a time. "auto" is "collapsed" if `block` is given.
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
        Seconds after which a call of `fit` ends with what it has; all its restarts count, an earlier call that it
        resumes does not.

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

    def __init__(
        self,
        block: str = AUTO,
        parameters: str = AUTO,
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

    def suited_to(self, emission: Emission) -> Gibbs:
        is_open = self.block == AUTO and self.parameters == AUTO
        is_sampled = self.parameters == "sampled" or (is_open and not isinstance(emission, Categorical))
        block = ("sequence" if is_sampled else "state") if self.block == AUTO else self.block
        settings = {"block": block, "parameters": "sampled" if is_sampled else "collapsed"}
        return Gibbs(**(self.get_params(deep=False) | settings))

    @property
    def learns_ends(self) -> bool:
        return self.parameters == "sampled"

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        positions, count = int(lengths.sum()), np.min_scalar_type(self.n_samples).itemsize
        paths = self.n_samples * np.min_scalar_type(n_states).itemsize if self.keep_states else 0
        tallies = 2 * self.n_chains * (n_states * count + 4)  # and their copy from which marginals are made
        return positions * (tallies + self.n_chains * paths + 8 * n_states)

    def working_bytes(self, lengths: NDArray[np.int64], n_states: int, n_jobs: int, *, has_symbols: bool) -> int | None:
        return 0  # the marginals are made when sweeps have ended

    def walkers(self, problem: Problem, seed: int) -> Walkers:
        return problem.structure.walkers(self, problem.prior, seed)

    def sweep(
        self, prior: Posterior, statistics: Statistics, structure: ClusterStructure, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Statistics]:
        """Draw parameters given what is hidden, then what is hidden given them; chains have walkers of their own."""
        point = prior.update(statistics).sample(rng)
        return structure.draw(point, np.arange(structure.n_clusters), rng)

    def reported(self, walkers: list[Walker], room: int) -> Averages:
        return Averages(walkers, room)

    def marginals(self, problem: Problem, state: RunState) -> Lists | None:
        chains = chain_problem(problem, "Gibbs").structure
        if chains.evidence is None:
            shape = chains.n_observations, state.point.n_states or 0
            found = marginals_of(state, shape, np.arange(shape[0]) * shape[1])
            return None if found is None else (found.reshape(-1), *no_restriction())
        legal = chains.evidence.listed(chains.data)
        found = marginals_of(state, (legal.n_entries,), legal.offsets[:-1])
        return None if found is None else (found, legal.offsets, legal.states)
