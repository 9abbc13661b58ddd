"""Random problems: a model, an algorithm, data, and what is known about the hidden states, all from one seed."""

from __future__ import annotations

import dataclasses
from typing import Any

import examples
import numpy as np
from numpy.typing import NDArray

from fuzz.data import Data, Rng, draw_data, leaping
from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, Beam, Dirichlet, Gibbs, Guards
from subchain.core.components import clone
from subchain.structures.chain.boundaries import Buffer
from subchain.structures.chain.collapsed import sharding
from subchain.structures.chain.growing_buffer import GrowBuffer

Array = NDArray[np.float64]

#: From this seed on some data leap between distant states; cases of smaller seeds stay what they were.
LEAPS_FROM = 2_400_000


@dataclasses.dataclass
class Case:
    """One random problem.

    Attributes
    ----------
    settings : arguments of `HMM`
    fit : arguments of `HMM.fit` besides the data and the weights
    log_weights : (N, K), what the evidence about the states means, for the naive reference
    weights : (n_sequences,) or None
    """

    seed: int
    family: str
    settings: dict[str, Any]
    data: Data
    fit: dict[str, Any]
    log_weights: Array
    weights: Array | None

    def model(self, **changes: Any) -> HMM:
        return HMM(**{name: clone(value) for name, value in self.settings.items()} | changes)

    def without_weight_zero(self) -> Case:
        """The case without the sequences that do not count."""
        if self.weights is None or (self.weights > 0.0).all():
            return self
        gone = self.weights == 0.0
        kept, positions = np.flatnonzero(~gone), np.repeat(~gone, self.data.lengths)
        fit = {name: [value[i] for i in kept] for name, value in self.fit.items()}
        data, weights = self.data.without(gone), self.weights[kept]
        return dataclasses.replace(self, data=data, fit=fit, weights=weights, log_weights=self.log_weights[positions])

    @property
    def mask(self) -> NDArray[np.bool_] | None:
        return getattr(self.settings["transition"], "mask", None)

    @property
    def may_be_impossible(self) -> bool:
        """Whether what is known may contradict the structural zeros of the model, or the data themselves."""
        prior = self.settings["transition"]
        has_zeros = self.mask is not None or isinstance(getattr(prior, "initial", None), np.ndarray)
        return has_zeros or bool(np.isneginf(self.log_weights).any())

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        shape = f"{self.family} {self.data.values.shape} {self.data.values.dtype} in {self.data.lengths}"
        known = ", ".join(self.fit) or "nothing"
        weights = "" if self.weights is None else f", weights {np.array2string(self.weights, precision=3)}"
        return f"HMM({arguments}) on {shape}, {sorted(self.data.oddities)}, known: {known}{weights}"


def draw_case(seed: int) -> Case:
    """Draw the problem with this number."""
    rng = np.random.default_rng([20, seed])
    family = str(rng.choice(list(examples.FAMILIES)))
    data = draw_data(rng, family)
    leaps = leaping(data, family, np.random.default_rng([24, seed])) if seed >= LEAPS_FROM else None
    data = leaps or data
    n_states = int(rng.choice([1, 2, 3, 4, 6, 11], p=[0.1, 0.3, 0.3, 0.15, 0.1, 0.05]))
    inference = in_shards(draw_inference(rng), np.random.default_rng([22, seed]))
    settings = {
        "n_states": n_states,
        "emission": draw_emission(rng, family, data),
        "transition": draw_transition(rng, n_states, inference),
        "inference": inference,
        "n_init": int(rng.choice([1, 2], p=[0.8, 0.2])),
        "init": draw_start(rng, inference),
        "random_state": int(rng.integers(1000)),
        "n_jobs": 1,
        "progress": False,
    }
    if leaps and isinstance(settings["transition"], Dirichlet):
        settings["transition"].mask = np.abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))) <= 1
    fit, log_weights = (
        draw_knowledge(rng, data, n_states) if not isinstance(inference, Beam) else nothing(data, n_states)
    )
    return Case(seed, family, settings, data, fit, log_weights, draw_weights(rng, data, inference))


def draw_emission(rng: Rng, family: str, data: Data) -> Any:
    emission = clone(examples.FAMILIES[family][0])
    if family == "categorical":
        n_categories = int(data.values.max()) + 1 + int(rng.integers(0, 3))
        emission.set_params(n_categories=max(n_categories, 2))
        if rng.random() < 0.5:
            emission.set_params(concentration=_size(rng))
    elif rng.random() < 0.2 and family == "bernoulli":
        emission.set_params(successes=_size(rng), failures=_size(rng))
    elif rng.random() < 0.2 and family == "poisson":
        emission.set_params(shape=_size(rng), rate=_size(rng))
    elif rng.random() < 0.2 and family in ("gaussian", "diagonal_gaussian"):
        emission.set_params(mean_strength=_size(rng))
    return emission


def _size(rng: Rng) -> float:
    """A positive number that is usually about one."""
    return float(10.0 ** rng.choice([rng.uniform(-1, 1), rng.uniform(-5, 5)], p=[0.6, 0.4]))


def draw_transition(rng: Rng, n_states: int, inference: Any) -> Any:
    is_exact = isinstance(inference, EM) or type(inference).__name__ == "OnlineEM"
    if isinstance(inference, Beam) or (not is_exact and rng.random() < 0.25):
        learned = rng.random() < 0.5
        concentrations = ("learned", "learned") if learned else (_size(rng), _size(rng))
        stickiness = 0.0 if rng.random() < 0.6 else _size(rng)
        return HDP(*concentrations, stickiness=stickiness)
    if rng.random() < 0.3:
        return None
    prior = Dirichlet()
    if not is_exact or rng.random() < 0.5:
        prior.set_params(concentration=max(_size(rng), 1.0 if is_exact else 0.0))
    if rng.random() < 0.2:
        prior.set_params(stickiness=_size(rng))
    prior.set_params(mask=_draw_mask(rng, n_states))
    return prior.set_params(initial=_draw_initial(rng, n_states, prior.mask is None))


def _draw_mask(rng: Rng, n_states: int) -> NDArray[np.bool_] | None:
    kind = rng.choice(["none", "left-right", "banded", "random"], p=[0.7, 0.1, 0.1, 0.1])
    if kind == "none":
        return None
    if kind == "left-right":
        return np.triu(np.ones((n_states, n_states), dtype=bool))
    if kind == "banded":
        return np.abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))) <= 1
    return (rng.random((n_states, n_states)) < 0.7) | np.eye(n_states, dtype=bool)


def _draw_initial(rng: Rng, n_states: int, is_full: bool) -> Any:
    kind = rng.choice(["learned", "stationary", "given", "zeros"], p=[0.8, 0.08, 0.06, 0.06])
    if kind == "learned" or (kind == "stationary" and not is_full):
        return "learned"
    if kind == "stationary":
        return "stationary"
    initial = rng.dirichlet(np.ones(n_states))
    if kind == "zeros" and n_states > 1:
        initial[int(rng.integers(n_states))] = 0.0
    return initial / initial.sum()


def draw_inference(rng: Rng) -> Any:
    n_iter, length = int(rng.integers(1, 8)), int(rng.integers(2, 12))
    boundary = [Guards(), Buffer(3), "stationary", GrowBuffer(1e-3, 2), "auto"][int(rng.integers(5))]
    minibatches = {
        "length": [length, None, "auto"][int(rng.integers(3))],
        "batch": int(rng.integers(1, 4)),
        "max_updates": n_iter * 3,
        "report_every": 2,
        "boundary": boundary,
        "average": bool(rng.random() < 0.2),
        "adapt": bool(rng.random() < 0.2),
    }
    if minibatches["length"] is None:
        minibatches["boundary"] = "auto"
    kind = rng.choice(
        ["em", "online", "vi", "svi", "scvi", "cvi", "gibbs", "beam"], p=[0.14, 0.05, 0.14, 0.13, 0.13, 0.26, 0.1, 0.05]
    )
    if kind == "em":
        return EM(max_iter=n_iter, tolerance=0.0)
    if kind == "online":
        return EM(**minibatches)
    if kind == "vi":
        return VI(max_iter=n_iter, tolerance=0.0, cluster=str(rng.choice(["sequence", "state"], p=[0.7, 0.3])))
    if kind in ("svi", "scvi"):
        return (SVI if kind == "svi" else SCVI)(**minibatches)
    if kind == "beam":
        return Beam(n_samples=3, burn_in=2, n_chains=1, max_states=20)
    if kind == "gibbs":
        block = str(rng.choice(["state", "sequence"]))
        parameters = "collapsed" if block == "state" else str(rng.choice(["collapsed", "sampled"]))
        return Gibbs(block=block, parameters=parameters, n_samples=3, burn_in=2, n_chains=int(rng.integers(1, 3)))
    cluster = str(rng.choice(["sequence", "subchain", "state"]))
    return CVI(
        cluster=cluster,
        length=length if cluster == "subchain" else None,
        exclude=bool(rng.random() < 0.8),
        order=str(rng.choice(["incremental", "batch"], p=[0.7, 0.3])) if cluster != "state" else "incremental",
        max_iter=n_iter,
        tolerance=0.0,
    )


def in_shards(inference: Any, rng: Rng) -> Any:
    """Let a third of the collapsed runs visit clusters in shards; `rng` is a stream of its own, so seeds stay good."""
    if isinstance(inference, CVI) and inference.order == "incremental" and rng.random() < 0.33:
        inference.order = "shards"
    return inference


def allow_small_shards() -> None:
    """Let small data have shards, as large ones do."""
    sharding.LEAST_WORK, sharding.MOST_SHARDS, sharding.FEWEST_ROUNDS = 1.0, 4, 2


def draw_start(rng: Rng, inference: Any) -> str:
    starts = ["auto", "kmeans", "context", "random", "exponential"]
    if isinstance(inference, (CVI, Gibbs)):
        starts += ["states", "posteriors"]
    return str(rng.choice(starts)) if rng.random() < 0.5 else "auto"


def nothing(data: Data, n_states: int) -> tuple[dict[str, Any], Array]:
    return {}, np.zeros((len(data.values), n_states))


def draw_knowledge(rng: Rng, data: Data, n_states: int) -> tuple[dict[str, Any], Array]:
    fit, logs = nothing(data, n_states)
    kind = rng.choice(["nothing", "allowed", "states", "evidence"], p=[0.7, 0.1, 0.1, 0.1])
    split = data.bounds[1:-1]
    if kind == "allowed":
        legal = rng.random(logs.shape) < 0.7
        legal[~legal.any(axis=1)] = True
        fit["allowed"] = np.split(legal, split)
        logs[~legal] = -np.inf
    elif kind == "states":
        known = np.where(rng.random(len(logs)) < 0.3, rng.integers(0, n_states, len(logs)), -1)
        fit["states"] = np.split(known, split)
        logs[(known[:, None] >= 0) & (known[:, None] != np.arange(n_states))] = -np.inf
    elif kind == "evidence":
        logs = rng.normal(size=logs.shape) * 10.0 ** rng.uniform(-1, 3)
        fit["evidence"] = np.split(logs.copy(), split)
    return fit, logs


def draw_weights(rng: Rng, data: Data, inference: Any) -> Array | None:
    if isinstance(inference, (Gibbs, Beam)) or rng.random() < 0.8:
        return None
    weights = rng.choice([rng.uniform(0.1, 3.0), _size(rng)], size=len(data.lengths))
    weights[rng.random(len(weights)) < 0.3] = 0.0
    if not (weights * np.array(data.lengths)).any():
        weights[:] = 1.0
    return weights
