"""Predictive log scores of single observations: given the past, all other observations, or the unmasked ones."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.engines.results import FilteredBlock, MarginalBlock
from subchain.errors import InputError
from subchain.tasks.question import Question

Array = NDArray[np.float64]


def score_steps(question: Question) -> Array:
    """Return the log probability of each observation given the earlier ones, (N,).

    The sum over a sequence is its log likelihood.
    """
    out = np.empty(question.data.n_observations)

    def keep(block: FilteredBlock) -> None:
        out[block.positions] = block.increments

    question.engine.filter(question.surrogate, question.part, keep).checked()
    return out


def score_left_out(question: Question) -> Array:
    """Return the log probability of each observation given all others of its sequence, (N,); 0 where it is missing."""
    return question.engine.score_left_out(question.surrogate, question.part.unobserved)


def score_masked(question: Question, mask: Any) -> Array:
    """Return the log probability of each masked observation given those that are not masked, (N,), else 0.

    Parameters
    ----------
    mask : booleans (N,), or a list with an array (n_i,) for each sequence
    """
    hidden = checked_mask(question.data, mask)
    out = np.zeros(question.data.n_observations)
    emission = question.point.emission

    def keep(block: MarginalBlock) -> None:
        columns = np.flatnonzero(hidden[block.positions])
        at = block.positions[columns]
        with np.errstate(divide="ignore"):
            terms = np.log(block.table[:, columns]) + emission.log_likelihood(question.data.at(at))
        out[at] = np.logaddexp.reduce(terms, axis=0)

    question.engine.smooth(
        question.surrogate, dataclasses.replace(question.part.unobserved, hidden=hidden), keep
    ).checked()
    return out


def checked_mask(data: Sequences, mask: Any) -> NDArray[np.bool_]:
    """Return a mask as flat booleans (N,); raise an `InputError` if its shape or type is wrong."""
    flat = np.concatenate([np.asarray(part) for part in mask]) if isinstance(mask, (list, tuple)) else np.asarray(mask)
    if flat.dtype != np.bool_ or flat.shape != (data.n_observations,):
        raise InputError(
            f"mask must hold True or False for each of {data.n_observations} positions, or be a list with such an "
            f"array for each of {data.n_sequences} sequences; got {flat.dtype} of shape {flat.shape}."
        )
    return flat
