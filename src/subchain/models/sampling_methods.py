"""Methods of a fitted model that draw from it; the computations are in `subchain.tasks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines import resolve_engine
from subchain.models.fitted import Fitted
from subchain.numerics.seeds import seed_sequence
from subchain.structures.chain.model import HMMPoint
from subchain.tasks.imputation import sample_missing
from subchain.tasks.question import Question
from subchain.tasks.sampling import sample, sample_onward, sample_parameters, sample_paths


class SamplingMethods(Fitted):
    """Draws of sequences, hidden paths, missing entries and parameters."""

    def sample(self, n: int, given: Any = None, random_state: Any = None) -> Any:
        """Draw a sequence from the model, or the continuation of a sequence.

        If the prior says how sequences end (`Dirichlet(final=…)`), the draw ends after `n` observations in such a way.

        Parameters
        ----------
        n : int
            Number of observations.
        given : sequence or sequences, optional
            The past to continue.
        random_state : int, numpy Generator or None
            Seed; None gives different draws every time.

        Returns
        -------
        Sample
            `observations` (n,) or (n, D) and `states` (n,); a list of them if several sequences are given.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[1.0, 0.0], [0.0, 1.0]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], emission)
        >>> model.sample(5, given=[0, 1, 0], random_state=0).observations
        array([1, 0, 1, 0, 1])
        """
        rng = np.random.default_rng(seed_sequence(random_state))
        if given is None:
            return sample(self._point(), n, rng, resolve_engine(self.engine, self.n_jobs))
        question = self._ask_on(given)
        with question.intact():
            return question.answers(sample_onward(question, self._point().chain, n, rng))

    def sample_paths(
        self,
        x: Any,
        n: int,
        random_state: Any = None,
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
    ) -> Any:
        """Draw hidden paths from their posterior given the whole sequence.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        n : int
            Number of paths.
        random_state : int, numpy Generator or None
            Seed; None gives different draws every time.
        allowed, states, evidence
            Evidence about the states, as in `fit`.

        Returns
        -------
        array of int, shape (n, T); a list of them for several sequences

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.sample_paths([0, 0, 1], n=1000, random_state=0).shape
        (1000, 3)
        """
        question = self._ask(x, allowed, states, evidence)
        with question.intact():
            return _in_form(question, sample_paths(question, n, seed_sequence(random_state)))

    def sample_missing(self, x: Any, n: int, random_state: Any = None) -> Any:
        """Draw the missing entries from their joint posterior given all observations (multiple imputation).

        Draws show how uncertain missing entries are, and keep what `impute` averages out: their spread, and how
        neighbouring ones depend on each other. Observed entries are not changed.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        n : int
            Number of draws.
        random_state : int, numpy Generator or None
            Seed; None gives different draws every time.

        Returns
        -------
        array, shape (n, T) or (n, T, D); a list of them for several sequences; codes for symbols

        See Also
        --------
        impute : posterior means, or the most probable symbols

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM, Gaussian
        >>> emission = Gaussian.from_parameters([[0.0], [5.0]], [[[1.0]], [[1.0]]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> draws = model.sample_missing(np.array([0.1, np.nan, 5.2]), n=1000, random_state=0)
        >>> draws.shape, 2.0 < draws[:, 1].mean() < 3.0, draws[:, 1].std() > 2.0
        ((1000, 3), np.True_, np.True_)
        """
        question = self._ask(x)
        with question.intact():
            draws = sample_missing(question, n, seed_sequence(random_state))
        return (
            [part.swapaxes(0, 1) for part in question.data.split(draws.swapaxes(0, 1))] if question.in_list else draws
        )

    def sample_parameters(self, n: int, random_state: Any = None) -> list[HMMPoint]:
        """Draw parameters from the posterior, for credible intervals of functions of the parameters.

        Frozen and given components are not drawn.

        Parameters
        ----------
        n : int
            Number of draws.
        random_state : int, numpy Generator or None
            Seed; None gives different draws every time.

        Returns
        -------
        list of HMMPoint
            Each with `chain.initial`, `chain.transition` and `emission`, as `HMM.from_parameters` takes them.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
        >>> draws = model.sample_parameters(200, random_state=0)
        >>> np.array([point.chain.transition[0, 0] for point in draws]).std() < 0.1
        np.True_
        """
        return sample_parameters(self.posterior_, n, np.random.default_rng(seed_sequence(random_state)))


def _in_form(question: Question, draws: NDArray[Any]) -> NDArray[Any] | list[NDArray[Any]]:
    """Return n draws of all positions, (n, N, ...), in the form of the data: whole, or one array per sequence."""
    if not question.in_list:
        return draws
    return [part.swapaxes(0, 1) for part in question.data.split(draws.swapaxes(0, 1))]
