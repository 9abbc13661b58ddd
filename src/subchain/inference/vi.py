"""Variational inference (Beal 2003): the surrogate is exp E[log θ] under the posterior of the parameters.

Marginals over the hidden chains and a distribution over the parameters take turns; each turn raises a lower bound on
the log evidence. The bound is the log normaliser of the surrogate less the divergence of the parameters from their
prior. What is believed of a chain is exact given the parameters, or factorised over its states (`mean_field.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Point, Posterior
from subchain.data.legal_states import no_restriction
from subchain.errors import unknown_name
from subchain.inference.batch.mean_field import MeanField, stored_marginals
from subchain.inference.batch.passes import Batch, Passes
from subchain.inference.run.algorithm import Lists
from subchain.inference.run.chains import chain_problem
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper

CLUSTERS = ("sequence", "state")


class VI(Batch):
    """A full posterior over the parameters; states that the data do not need fall back to their prior.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tolerance : float
        The run has converged when an iteration changes the bound by less than this fraction.
    time_limit : float, optional
        Seconds after which the run ends with what it has.
    patience : int, optional
        With validation data: iterations without a better held-out score after which the run ends.
    cluster : "sequence" or "state"
        What is believed as a whole given the parameters. With "state" every position has a marginal of its own,
        independent of its neighbours' (mean field): a looser bound, a worse prediction, and transitions that are all
        possible; for comparisons. It keeps 8 K bytes a position, and the training data are decoded with these
        marginals.
    search : bool
        Whether to look for better states once the run has settled: two states are merged, a third is split, and the
        result is kept if the objective rises. The trace says what was tried. With `HDP` their number may change.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, VI
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> HMM(2, "categorical", inference=VI(max_iter=100), random_state=0).fit(x).status_
    'converged'
    """

    name = "vi"
    hierarchy_treatment = "variational"
    flat = False
    monotone = True

    def __init__(
        self,
        max_iter: int = 200,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
        cluster: str = "sequence",
        search: bool = True,
    ) -> None:
        super().__init__(max_iter, tolerance, time_limit, patience, search)
        self.cluster = cluster

    @property
    def needs_matrix(self) -> bool:
        return self.cluster == "state"

    def check(self) -> None:
        super().check()
        if self.cluster not in CLUSTERS:
            raise unknown_name("cluster", self.cluster, CLUSTERS)

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        if self.cluster == "state":
            return MeanField(chain_problem(problem, "VI(cluster='state')"), self, state)
        return Passes(problem, self)

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        return 8 * int(lengths.sum()) * n_states if self.cluster == "state" else 0

    def marginals(self, problem: Problem, state: RunState) -> Lists | None:
        found = stored_marginals(state.results, problem.structure.n_observations)
        return None if found is None else (found.reshape(-1), *no_restriction())

    def weights(self, posterior: Posterior, point: Point) -> Point:
        found: Point = posterior.expected_log()
        return found

    def objective(self, prior: Posterior, posterior: Posterior | None, point: Point, log_normalizer: float) -> float:
        assert posterior is not None, "a bound is that of a posterior"
        return log_normalizer - posterior.kl(prior) + prior.log_hyperprior()
