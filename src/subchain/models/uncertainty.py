"""Intervals of a fitted model's parameters: from its posterior, or from a short Gibbs run that starts at the model."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import clone
from subchain.data.annotations import Annotations
from subchain.emissions import Frozen
from subchain.errors import InputError, SubchainError, unknown_name
from subchain.inference import Gibbs, resolve_inference
from subchain.models.fitted import Fitted
from subchain.models.fitting import FitCall
from subchain.numerics.seeds import seed_sequence
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.chain.sampling.sampled_walker import SampledSequences
from subchain.tasks.parameter_intervals import PREFIX, ParameterIntervals, named_draws, parameter_intervals, relabelled
from subchain.tasks.sampling import count, sample_parameters
from subchain.transitions import Dirichlet, DirichletChain, FrozenChain
from subchain.transitions.hdp.hierarchy import HierarchicalChain

Array = NDArray[np.float64]

METHODS = ("posterior", "gibbs")
#: Sweeps of the Gibbs run before the first draw.
BURN_IN = 100


class UncertaintyMethods(Fitted):
    """Intervals of the parameters."""

    def intervals(
        self,
        x: Any = None,
        *,
        method: str = "posterior",
        level: float = 0.95,
        n_draws: int = 400,
        random_state: Any = 0,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
    ) -> ParameterIntervals:
        """Return credible intervals of all parameters.

        The posterior of variational inference takes parameters and states to be independent. Where states overlap its
        intervals are too narrow: those of 90 per cent covered 72 to 88 per cent of the true parameters in simulations
        (`docs/experiments.md`). "gibbs" samples parameters and states together, starting at this model, and covered 82
        to 91 per cent; it needs the data and takes `n_draws` + 100 passes over them.

        Parameters
        ----------
        x : data, as in `fit`
            The training data; for "gibbs" only.
        method : "posterior" or "gibbs"
            Draws from the posterior that the fit has found (for a sampler the draws of its best chain), or from a new
            Gibbs run with drawn parameters. Draws of the latter are relabelled so that states keep their numbers. A
            learned parent of `HDP` stays as it is.
        level : float
            Probability of the intervals.
        n_draws : int
            Number of draws.
        random_state : int, numpy Generator or None
            Seed of the draws.
        allowed, states, evidence
            Evidence about the states, as in `fit`; for "gibbs" only.

        Returns
        -------
        ParameterIntervals
            `initial` (2, K), `transition` (2, K, K) and `emission`, by the names of the parameters, (2, K, …).

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(np.repeat([0.0, 3.0, 0.0, 3.0], 50), 1.0)
        >>> model = HMM(2, "gaussian", random_state=0).fit(x).order_states(by="mean")
        >>> low, high = model.intervals(x, method="gibbs", level=0.9, n_draws=50).emission["means"]
        >>> bool((low < model.emission_.means).all() and (model.emission_.means < high).all())
        True
        """
        if method not in METHODS:
            raise unknown_name("method of intervals", method, METHODS)
        n, seed = count("n_draws", n_draws), seed_sequence(random_state)
        self._point()
        if isinstance(self.prior_.chain, FrozenChain) and isinstance(self.prior_.emission, Frozen):
            raise InputError("the parameters of this model were given, not learned, so that they have no intervals.")
        if method == "gibbs":
            draws = named_draws(self._gibbs_draws(x, Annotations(allowed, states, evidence), n, seed))
        else:
            draws = self._posterior_draws(n, seed)
        return parameter_intervals(draws, level, method)

    def _posterior_draws(self, n: int, seed: np.random.SeedSequence) -> dict[str, Array]:
        """Return draws from the posterior by name; of a sampler those of its best chain."""
        samples = self.samples_
        if samples is not None and "n_states" not in samples and "transition" in samples:
            names = [name for name in samples if name in ("initial", "transition") or name.startswith(PREFIX)]
            return {name: np.asarray(samples[name][samples.best_chain]) for name in names}
        try:
            return named_draws(sample_parameters(self.posterior_, n, np.random.default_rng(seed)))
        except (SubchainError, ValueError, ArithmeticError):
            raise InputError(
                "the posterior of a state without enough data is improper under the flat priors of EM, so that it has "
                "no draws; use method='gibbs', or fit with VI."
            ) from None

    def _gibbs_draws(self, x: Any, known: Annotations, n: int, seed: np.random.SeedSequence) -> list[HMMPoint]:
        """Draw models from the posterior by a Gibbs run that starts at this one; states keep their labels."""
        if x is None:
            raise InputError("method='gibbs' samples the states too, and needs the data: intervals(x, method='gibbs').")
        gibbs = Gibbs("sequence", "sampled")
        model = clone(self)
        model.inference, model.init = gibbs, self
        learned = not resolve_inference(self.inference).flat  # type: ignore[attr-defined]
        if isinstance(self.prior_.chain, HierarchicalChain):
            model.transition = Dirichlet()
        fit = FitCall(model, x, known)
        prior = _with_rows(self.prior_) if learned else fit.problem.prior
        chains = fit.problem.structure
        number = int(seed.generate_state(1, np.uint64)[0])
        setting = chains.walkers(gibbs, prior, number)
        draws = []
        with chains.engine.running():
            hidden, _ = chains.engine.viterbi(self._point().surrogate(), chains.under(self._point()))
            walker = cast(SampledSequences, setting.walker(0, hidden))
            walker.begin(self._point())
            walker.sweeps(1, np.ones(BURN_IN))
            for draw in range(n):
                walker.sweeps(1 + BURN_IN + draw, np.ones(1))
                draws.append(relabelled(walker.point, walker.hidden, hidden))
        return draws


def _with_rows(prior: HMMPosterior) -> HMMPosterior:
    """Return the prior of a fit with independent rows: a learned parent of the rows stays as it is."""
    chain: Any = prior.chain
    if not isinstance(chain, HierarchicalChain):
        return prior
    return dataclasses.replace(prior, chain=DirichletChain(chain.initial, chain.rows, final=chain.final))
