"""One pass over the data for the checks: visits of the decoded states, and where simulated pieces start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from subchain.checks.simulation import Simulation, Starts, excerpt_size, pieces
from subchain.checks.visits import Visits
from subchain.data import Sequences, as_sequences_like
from subchain.data.sequences import require_observations
from subchain.models.hmm import HMM
from subchain.tasks.profiles import Profile, profile


class Reading(NamedTuple):
    """Data in the codes of the model, visits of their most probable states, and simulations of an excerpt."""

    data: Sequences
    visits: Visits
    simulation: Simulation


def read(model: HMM, x: Any) -> Reading:
    """Decode the data block by block, and prepare simulations."""
    model._point()
    data = require_observations(as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_))
    bounds = pieces(data, excerpt_size(model.n_states_))
    starts, visits = Starts(bounds, model.n_states_), Visits(data.offsets, model.n_states_)
    for start, marginals in model.predict_proba_blocks(data):
        starts.add(start, marginals)
        visits.add(start, marginals.argmax(axis=1))
    visits.close()
    return Reading(data, visits, Simulation.of(model, data, starts, bounds, emitted_columns(model, data)))


def emitted_columns(model: HMM, data: Sequences) -> Profile:
    """Describe the columns that a model emits, by the names of the model or of the data."""
    vocabularies, columns = model.vocabularies_ or data.vocabularies, model.columns_ or data.columns
    return profile(model.emission_, model.family_, vocabularies, columns)


def decoded(model: HMM, data: Sequences) -> Visits:
    """Return the visits of the most probable states of data that fit into memory."""
    visits = Visits(data.offsets, model.n_states_)
    for start, marginals in model.predict_proba_blocks(data):
        visits.add(start, np.asarray(marginals.argmax(axis=1)))
    visits.close()
    return visits
