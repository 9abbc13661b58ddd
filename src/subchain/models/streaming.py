"""Online learning from batches: new sequences, or successive pieces of one sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.emissions import Frozen
from subchain.engines import Engine, Part, Surrogate, resolve_engine
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import whole_sequences
from subchain.errors import InputError
from subchain.inference import resolve_inference
from subchain.inference.stochastic.rates import Falling
from subchain.inference.stochastic.settings import Stochastic
from subchain.models.fitting import FitCall
from subchain.tasks.forecast import last_marginals
from subchain.transitions import FrozenChain
from subchain.transitions.final import EndingChain

Array = NDArray[np.float64]

#: Step-size schedule for algorithms without one.
DELAY, FORGETTING = 0.0, 0.5
#: Batches of up to so many observations are run as one minibatch, without the preparations that a large pass needs.
SMALL = 1 << 14


def learn_on(model: Any, x: Any, total: float | None, continues: bool) -> None:
    """Update a model, fitted or not, with one more batch; see `HMM.partial_fit`."""
    is_number = isinstance(total, (int, float, np.number)) and np.isfinite(total)
    if total is not None and not (is_number and total > 0.0):
        raise InputError(f"total must be a positive number of observations, not {total!r}.")
    if continues and model.end_marginal_ is None:
        raise InputError("continues=True needs an earlier partial_fit; begin the sequence with continues=False.")
    if not model._has_point:
        fit = FitCall(model, x)
        with fit.problem.intact():
            start = fit.starts()[0]()
        model._adopt(fit, start, [])
        model.statistics_ = fit.empty
    if isinstance(model.prior_.emission, Frozen) and isinstance(model.prior_.chain, FrozenChain):
        raise InputError(
            "this model has given parameters and no prior, so it cannot learn; start a new model from it with "
            "HMM(..., init=model)."
        )
    if continues and isinstance(model.point_.chain, EndingChain):
        raise InputError(
            "continues=True: a model with final= takes every batch for whole sequences, because it needs to know where "
            "they end. Give whole sequences, or leave final out."
        )
    data = model._read(x)
    algorithm = resolve_inference(model.inference)
    if model.n_batches_ == 0:
        weights = model.point_
    else:
        point = model.point_ if algorithm.weighs_points else None
        weights = algorithm.weights(model.prior_.update(model.statistics_), point)
    before = _end_before(model, data) if continues else None
    engine = resolve_engine(model.engine, model.n_jobs)
    with data.intact(), engine.running():
        part = Part(data, weights.evidence(data, None))
        fresh, end = _run(engine, weights.surrogate(), part, before)
    if total is None:
        model.statistics_ = model.statistics_ + fresh
    else:
        rates = Falling(DELAY, FORGETTING)
        if isinstance(algorithm, Stochastic):
            rates = Falling(algorithm.delay, algorithm.forgetting)
        rate = rates.falling(model.n_batches_ + 1)
        scale = total / max(fresh.n_observations, 1.0)
        model.statistics_ = model.statistics_.scale(1.0 - rate) + fresh.scale(rate * scale)
    if model.prior_.is_learned:
        model.prior_ = model.prior_.update_hyperparameters(model.statistics_)
    model.n_batches_ += 1
    model.training_marginals_ = model.samples_ = None
    model.end_marginal_ = end
    model._report_later(algorithm)


def _end_before(model: Any, data: Sequences) -> Array:
    if data.n_sequences != 1:
        raise InputError(f"continues=True needs exactly one sequence, not {data.n_sequences}.")
    end: Array = model.end_marginal_
    return end


def _run(engine: Engine, surrogate: Surrogate, part: Part, before: Array | None) -> tuple[HMMStatistics, Array]:
    """Return the expected statistics of a batch, and the posterior marginal of its last state, (K,).

    `before` is the marginal of the state before the first one, (K,), if the batch continues a sequence; the transition
    into the batch is then counted.
    """
    if before is not None:
        predicted = surrogate.transition.apply(before[:, None])[:, 0]
        surrogate = surrogate.replace(initial=predicted)
    fresh, end = _pass(engine, surrogate, part)
    if before is not None:
        share = np.divide(fresh.initial, predicted, out=np.zeros_like(predicted), where=predicted > 0.0)
        moved = np.zeros_like(fresh.chain.pairs)
        surrogate.transition.accumulate(before[:, None], share[:, None], moved)
        fresh.chain.pairs += moved * surrogate.transition.weights
        fresh.chain.initial = np.zeros_like(fresh.initial)
    return fresh, end


def _pass(engine: Engine, surrogate: Surrogate, part: Part) -> tuple[HMMStatistics, Array]:
    """Return the statistics and the last marginal of sequences that begin as the surrogate does."""
    data = part.data
    if data.n_observations > SMALL:
        last = int(np.flatnonzero(data.lengths)[-1])
        return engine.statistics(surrogate, part), last_marginals(engine, surrogate, part)[last]
    batch = whole_sequences(data.offsets)
    start = np.empty((surrogate.n_states, batch.size))
    start[:] = surrogate.initial[:, None]
    run = engine.minibatch(surrogate, part, batch, start, np.ones(start.shape))
    return run.statistics, run.ends.last_marginal[:, batch.sequences.argmax()]
