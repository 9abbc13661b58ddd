"""Small problems for samplers, and walkers that stand at given states."""

import warnings

import numpy as np

from subchain import Categorical, Dirichlet, Sequences
from subchain.data import Evidence
from subchain.engines import CpuEngine
from subchain.errors import ConvergenceWarning
from subchain.inference.run.chains import ChainProblem
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.collapsed_walkers import SequenceWalker, StateWalker
from subchain.structures.chain.sampling.walkers import Setting
from subchain.structures.chain.structure import Chains


class StatesInPython(StateWalker):
    """As for a family without compiled counts."""

    def _count(self):
        super()._count()
        self.emission = None


class SequencesInPython(SequenceWalker):
    """As for a family without compiled counts."""

    def _count(self):
        super()._count()
        self.emission = None


COLLAPSED = [StateWalker, SequenceWalker, StatesInPython, SequencesInPython]


DATA = [[0, 1, 1], [2, 0]]


ALPHA, FIRST, BETA = 0.5, 0.7, 0.4


def problem_of(data, emission, transition, n_states=2, **knowledge):
    values = np.concatenate([np.asarray(part) for part in data])
    sequences = Sequences(values, np.concatenate(([0], np.cumsum([len(part) for part in data]))))
    evidence = Evidence.build(sequences, n_states, n_symbols=3, **knowledge)
    prior = HMMPosterior(transition.prior(n_states, flat=False), emission.prior(sequences, n_states, flat=False))
    return ChainProblem(Chains(sequences, evidence, engine=CpuEngine(1)), prior)


def words(data=DATA, n_states=2, **knowledge):
    emission, transition = Categorical(BETA, n_categories=3), Dirichlet(ALPHA, initial_concentration=FIRST)
    return problem_of(data, emission, transition, n_states, **knowledge)


def walker_at(kind, problem, states, seed=0):
    walker = kind(Setting(problem.structure, problem.prior, seed), 0, np.asarray(states))
    walker.begin(problem.prior.mean())
    return walker


def quiet_fit(model, data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, **arguments)


def results_of(algorithm, problem, seed=3):
    """What a whole run of the algorithm finds."""
    from subchain.inference.run.loop import Known, RunState, run

    state = RunState(Known(None, problem.prior.sample(np.random.default_rng(seed))), seed=seed)
    return run(problem, algorithm, state, lambda state: None).results


def marginals_of(found):
    """The share of the best chain's draws in which each position had each state."""
    return found.memory["tally"][found.samples.best_chain] / found.samples.n_draws
