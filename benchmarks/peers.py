"""Other packages as contenders, each with the same data and the same start, driven the way its own `fit` drives it.

Where a package has a prior that cannot be left out, its default is kept: it costs nothing measurable.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.cases import Problem
from benchmarks.contenders import Contender, Course


class _Stopwatch:
    """Stands where hmmlearn has its convergence monitor: it is told of every iteration, and lets all of them happen."""

    def __init__(self, n_iterations: int) -> None:
        self.n_iterations = n_iterations
        self.course = Course()

    def _reset(self) -> None:
        self.course.begin()

    def report(self, objective: float) -> None:
        self.course.note(objective)

    @property
    def converged(self) -> bool:
        return len(self.course.objectives) >= self.n_iterations


class Hmmlearn(Contender):
    """hmmlearn's models, with its two implementations of forward-backward."""

    package = "hmmlearn"

    def __init__(self, inference: str, implementation: str) -> None:
        self.inference = inference
        self.label = implementation

    def prepare(self, problem: Problem) -> None:
        wanted = np.int64 if problem.family == "categorical" else np.float64
        self._x = np.ascontiguousarray(problem.values.reshape(problem.n_observations, -1), dtype=wanted)
        self._lengths = problem.lengths
        make = {
            ("EM", "categorical"): _hmmlearn_categorical,
            ("EM", "gaussian"): _hmmlearn_gaussian,
            ("VI", "categorical"): _hmmlearn_variational_categorical,
            ("VI", "gaussian"): _hmmlearn_variational_gaussian,
        }[self.inference, problem.family]
        self._model = make(problem, implementation=self.label, init_params="")

    def iterate(self, n_iterations: int) -> Course:
        watch = _Stopwatch(n_iterations)
        self._model.n_iter = n_iterations
        self._model.monitor_ = watch
        self._model.fit(self._x, self._lengths)
        return watch.course


def _hmmlearn_categorical(problem: Problem, **settings: Any) -> Any:
    probabilities = problem.emission["probabilities"]
    model = import_module("hmmlearn.hmm").CategoricalHMM(
        problem.n_states, n_features=probabilities.shape[1], **settings
    )
    model.startprob_, model.transmat_, model.emissionprob_ = problem.initial, problem.transition, probabilities
    return model


def _hmmlearn_gaussian(problem: Problem, **settings: Any) -> Any:
    model = import_module("hmmlearn.hmm").GaussianHMM(
        problem.n_states, covariance_type="full", covars_prior=0.0, **settings
    )
    model.startprob_, model.transmat_ = problem.initial, problem.transition
    model.means_, model.covars_ = problem.emission["means"], problem.emission["covariances"]
    return model


def _hmmlearn_variational_categorical(problem: Problem, **settings: Any) -> Any:
    probabilities = problem.emission["probabilities"]
    model = import_module("hmmlearn.vhmm").VariationalCategoricalHMM(
        problem.n_states, n_features=probabilities.shape[1], **settings
    )
    _set_variational_chain(model, problem)
    model.emissionprob_prior_ = np.full(probabilities.shape, 0.1)
    model.emissionprob_posterior_ = 0.1 + _visits(problem) * probabilities
    return model


def _hmmlearn_variational_gaussian(problem: Problem, **settings: Any) -> Any:
    means, covariances = problem.emission["means"], problem.emission["covariances"]
    n_states, width = means.shape
    model = import_module("hmmlearn.vhmm").VariationalGaussianHMM(n_states, covariance_type="full", **settings)
    _set_variational_chain(model, problem)
    model.means_prior_, model.beta_prior_ = np.tile(problem.values.mean(axis=0), (n_states, 1)), np.ones(n_states)
    model.dof_prior_ = np.full(n_states, float(width))
    model.scale_prior_ = np.tile(1e-3 * np.eye(width), (n_states, 1, 1))
    visits = np.full(n_states, _visits(problem))
    model.means_posterior_, model.beta_posterior_ = means.copy(), 1.0 + visits
    model.dof_posterior_, model.covars_ = width + visits, covariances
    model.scale_posterior_ = covariances * model.dof_posterior_[:, None, None]
    return model


def _set_variational_chain(model: Any, problem: Problem) -> None:
    """Posteriors as strong as the data, around the start."""
    # hmmlearn would run k-means ten times before it sees that everything is given.
    model._init = lambda x, lengths: model._check_and_set_n_features(x)
    model.startprob_prior_, model.transmat_prior_ = np.ones(problem.n_states), np.ones_like(problem.transition)
    model.startprob_posterior_ = 1.0 + problem.n_sequences * problem.initial
    model.transmat_posterior_ = 1.0 + _visits(problem) * problem.transition


def _visits(problem: Problem) -> float:
    return problem.n_observations / problem.n_states


class Pomegranate(Contender):
    """pomegranate's `DenseHMM`: the two halves that its `fit` repeats, in the single precision it prefers."""

    package = "pomegranate"
    label = "DenseHMM"
    inference = "EM"

    def prepare(self, problem: Problem) -> None:
        torch, hmm = import_module("torch"), import_module("pomegranate.hmm")
        wanted = np.int64 if problem.family == "categorical" else np.float32
        self._x = torch.from_numpy(problem.batch.astype(wanted))
        self._model = hmm.DenseHMM(
            _pomegranate_emission(problem),
            edges=problem.transition.astype(np.float32),
            starts=problem.initial.astype(np.float32),
            ends=np.full(problem.n_states, 1.0 / problem.n_states, dtype=np.float32),
        )

    def iterate(self, n_iterations: int) -> Course:
        course = Course()
        course.begin()
        for _ in range(n_iterations):
            log_likelihood = self._model.summarize(self._x).sum()
            self._model.from_summaries()
            course.note(float(log_likelihood))
        return course


def _pomegranate_emission(problem: Problem) -> list[Any]:
    distributions = import_module("pomegranate.distributions")
    single = {name: table.astype(np.float32) for name, table in problem.emission.items()}
    if problem.family == "categorical":
        return [distributions.Categorical(row[None]) for row in single["probabilities"]]
    pairs = zip(single["means"], single["covariances"], strict=True)
    return [distributions.Normal(mean, covariance, covariance_type="full") for mean, covariance in pairs]


class Dynamax(Contender):
    """dynamax: the step that its `fit_em` repeats, compiled beforehand, in the single precision that JAX prefers."""

    package = "dynamax"
    label = ""
    inference = "EM"

    def prepare(self, problem: Problem) -> None:
        jax = import_module("jax")
        model, self._parameters, properties = _dynamax_model(problem)
        self._state = model.initialize_m_step_state(self._parameters, properties)
        self._x = jax.numpy.asarray(problem.batch)

        def step(parameters: Any, state: Any, x: Any) -> tuple[Any, Any, Any]:
            statistics, log_likelihoods = jax.vmap(partial(model.e_step, parameters))(x)
            objective = model.log_prior(parameters) + log_likelihoods.sum()
            return *model.m_step(parameters, properties, statistics, state), objective

        self._step = jax.jit(step).lower(self._parameters, self._state, self._x).compile()

    def iterate(self, n_iterations: int) -> Course:
        course = Course()
        course.begin()
        for _ in range(n_iterations):
            self._parameters, self._state, objective = self._step(self._parameters, self._state, self._x)
            course.note(float(objective.block_until_ready()))
        return course


def _dynamax_model(problem: Problem) -> tuple[Any, Any, Any]:
    jax_numpy, models = import_module("jax.numpy"), import_module("dynamax.hidden_markov_model")
    chain = {
        "initial_probs": jax_numpy.asarray(problem.initial),
        "transition_matrix": jax_numpy.asarray(problem.transition),
    }
    tables = {name: jax_numpy.asarray(table) for name, table in problem.emission.items()}
    if problem.family == "categorical":
        probabilities = tables["probabilities"]
        model = models.CategoricalHMM(problem.n_states, emission_dim=1, num_classes=probabilities.shape[1])
        return model, *model.initialize(**chain, emission_probs=probabilities[:, None, :])
    model = models.GaussianHMM(problem.n_states, tables["means"].shape[1])
    return model, *model.initialize(**chain, emission_means=tables["means"], emission_covariances=tables["covariances"])


PEERS: dict[str, list[Contender]] = {
    "hmmlearn": [
        Hmmlearn(inference, implementation) for inference in ("EM", "VI") for implementation in ("scaling", "log")
    ],
    "pomegranate": [Pomegranate()],
    "dynamax": [Dynamax()],
}
