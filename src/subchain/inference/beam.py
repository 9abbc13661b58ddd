"""Beam sampling: the hidden states of an infinite hidden Markov model, and how many of them there are.

The model is the hierarchical Dirichlet process, with a truncation that is far away, or none; a draw uses as many states
as it needs. Whole sequences are drawn at once, and slices make this cheap (Van Gael et al. 2008).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.errors import InputError
from subchain.inference.run.chains import chain_problem
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status, Trace
from subchain.inference.sampling.reported import BestDraw
from subchain.inference.sampling.sampler import Annealing, Sampler
from subchain.structures.base import Walker
from subchain.structures.chain.sampling.beam_walker import (
    MANY,
    PIECE,
    PIECE_VALUES,
    BeamWalker,
    check_exchangeable,
    needed_hierarchy,
)
from subchain.structures.chain.sampling.walkers import Setting, refuse_weights

#: Bytes that a chain takes for a position, and that a sweep takes for it too.
KEPT_BYTES, SWEEP_BYTES = 5, 20
#: Bytes that a sweep takes for a position and a state, measured: where paths are filtered, for likelihoods there, and
#: for what was filtered before in the same sequence.
REACHING_BYTES, LIKELIHOOD_BYTES, REACHED_BYTES = 36, 64, 60


class Beam(Sampler):
    """Draws of the hidden states, of their number and of all parameters from the posterior, for `transition=HDP(...)`.

    `n_states` of the model is the number of states that a run begins with, better too many than too few; it ends with
    others. States of every draw
    stand in order of use, the most frequent first, and arrays of `model.samples_` have room for the largest number of
    them, nan where a draw has fewer. `samples_["n_states"]` is the posterior of the number of states.

    What is reported is the kept draw with the largest log joint: the model has its states, `n_states_` of them, and
    the means of their parameters given its counts and top weights.

    If legal or known states or log weights of states are given, states have names, so that there are exactly
    `n_states`, as with max_states=n_states; those that the data do not need stay empty.

    Parameters
    ----------
    n_samples : int
        Draws of each chain that are kept.
    burn_in : int
        Sweeps before the first of them.
    thin : int
        Sweeps from one draw to the next.
    n_chains : int
        Chains, each with a path of its own to begin with.
    max_states : int, optional
        The largest number of states. The top weights then have a symmetric Dirichlet prior over so many, each with a
        share of the top concentration; this is the process but for terms of order K / max_states. None: no limit, and
        the process itself.
    hyperprior : (shape, rate)
        Gamma prior of concentrations that are "learned".
    annealing : optional
        Temperatures τ of the burn-in, as for `Gibbs`: probabilities of observations are raised to the power 1/τ, the
        prior of the states is not.
    keep_states : bool
        Keep the drawn paths too, one small integer for each position and draw.
    time_limit : float, optional
        Seconds after which a call of `fit` ends with what it has; all its restarts count, an earlier call that it
        resumes does not.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, Beam
    >>> from subchain import HDP
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200) + 10.0 * (np.cumsum(rng.random(200) < 0.1) % 2)
    >>> beam = Beam(n_samples=50, burn_in=150, n_chains=1)
    >>> HMM(5, "gaussian", HDP(), beam, random_state=0, n_jobs=1).fit(x).effective_states()
    2
    """

    name = "beam"
    keeps_states = False
    hierarchy_treatment = "drawn"

    def __init__(
        self,
        n_samples: int = 500,
        burn_in: int = 500,
        thin: int = 1,
        n_chains: int = 4,
        max_states: int | None = 1000,
        hyperprior: tuple[float, float] = (1.0, 1.0),
        annealing: Annealing = None,
        keep_states: bool = False,
        time_limit: float | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.max_states = max_states
        self.hyperprior = hyperprior
        self.annealing = annealing
        self.keep_states = keep_states
        self.time_limit = time_limit

    def check(self) -> None:
        super().check()
        if self.max_states is not None:
            whole_number(self, "max_states")
        self._gamma()

    def _gamma(self) -> tuple[float, float]:
        """Shape and rate of the prior of concentrations."""
        try:
            shape, rate = (float(number) for number in self.hyperprior)
        except (TypeError, ValueError):
            shape = rate = np.nan
        if not (0.0 < shape < np.inf and 0.0 < rate < np.inf):
            raise InputError(
                "Beam: hyperprior must be the shape and the rate of a Gamma distribution, two positive numbers, not "
                f"{self.hyperprior!r}."
            )
        return shape, rate

    def n_all(self, n_states: int) -> float:
        """The number of all states, in use or not, of a run that begins with so many."""
        if self.max_states is not None and self.max_states < n_states:
            raise InputError(
                f"Beam: max_states={self.max_states} is less than the {n_states} states that the run begins with; "
                "raise it, or lower n_states of the model."
            )
        return math.inf if self.max_states is None else float(self.max_states)

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        paths = self.n_samples * np.min_scalar_type(self.max_states or MANY).itemsize if self.keep_states else 0
        return int(lengths.sum()) * self.n_chains * (KEPT_BYTES + paths)

    def working_bytes(self, lengths: NDArray[np.int64], n_states: int, n_jobs: int, *, has_symbols: bool) -> int:
        positions = int(lengths.sum())
        at_once = min(positions, PIECE, PIECE_VALUES // n_states)
        of_piece = at_once * n_states * (REACHING_BYTES + (0 if has_symbols else LIKELIHOOD_BYTES))
        longest = int(lengths.max(initial=0))
        before = max(longest - at_once, 0) * n_states * REACHED_BYTES
        parts = self.n_chains * max(
            positions // max(at_once, longest, 1), 1
        )  # whole sequences, on threads of their own
        return min(n_jobs, self.n_chains) * positions * SWEEP_BYTES + min(n_jobs, parts) * (of_piece + before)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def walkers(self, problem: Problem, seed: int) -> Setting:
        chains = chain_problem(problem, "Beam")
        refuse_weights(chains.structure, "Beam")
        needed_hierarchy(chains.prior.chain)
        if chains.structure.evidence is None:
            check_exchangeable(chains.prior.emission)
        shape, rate = self._gamma()
        setting = Setting(chains.structure, chains.prior, seed)
        n_all = self.n_all(setting.reference.n_states)
        setting.make = partial(BeamWalker, n_all=n_all, shape=shape, rate=rate)
        return setting

    def reported(self, walkers: list[Walker], room: int) -> BestDraw:
        return BestDraw(walkers)

    def complaint(self, trace: Trace, status: Status) -> str | None:
        if "states_left.0" in trace.measures and (self._kept(trace, "states_left") == 0.0).any():
            return (
                f"Beam used all of max_states={self.max_states} states in some draws: the data may ask for more; raise "
                "max_states, or lower the concentrations of the HDP."
            )
        return super().complaint(trace, status)
