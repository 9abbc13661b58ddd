"""Collapsed inference for categorical hidden Markov models, slow and obviously right.

The parameters are integrated out; what is left is a distribution over the paths of all sequences together (equation
numbers are those of chapter 3 of Wang's thesis on collapsed variational inference). Tiny problems are solved by listing
all joint paths. The approximations are written as one pass each, and wherever an expected count is needed it is summed
anew over all marginals there are: nothing is carried along, nothing is subtracted.

Three kinds of things are used throughout. A `Problem` is what is given. A `Table` is a number for every parameter: a
count, a concentration, or a parameter itself. Marginals are a list of clusters for every sequence, each a `Chain`:
clusters are independent of one another, states inside a cluster are not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]


Data = Sequence[Sequence[int]]


Paths = Sequence[Sequence[int]]


Place = tuple[int, int]


Left = Literal["counts", "probabilities"]


Order = Literal["incremental", "batch"]


#: Joint paths that an enumeration may list.
LIMIT = 4096


class Problem(NamedTuple):
    """What is given.

    Attributes
    ----------
    data : symbols 0 .. W−1 of each sequence; −1 is missing and says nothing
    alpha_initial : (K,) concentration of the initial distribution (row 0 of the thesis)
    alpha_rows : (K, K) concentration of the transition rows; 0 forbids a move
    beta : (W, K) concentration of the emissions; 0 forbids a symbol
    legal : (T, K) for each sequence, factors of the states at each position: 0 forbids, 1 allows; None allows all
    """

    data: Data
    alpha_initial: Array
    alpha_rows: Array
    beta: Array
    legal: Sequence[Array] | None = None


class Table(NamedTuple):
    """A number for every parameter: initial (K,), rows (K, K), emission (W, K)."""

    initial: Array
    rows: Array
    emission: Array


class Chain(NamedTuple):
    """Marginals about consecutive states: marginals (T, K) and pairs (T − 1, K, K) of neighbours."""

    marginals: Array
    pairs: Array


Marginals = list[list[Chain]]


Visits = Sequence[Sequence[Place]]


Pass = Callable[[Marginals, Problem], Marginals]


def symmetric(data: Data, n_states: int, n_symbols: int, alpha: float, beta: float) -> Problem:
    """The thesis's problem: the same alpha everywhere, the same beta everywhere."""
    rows = np.full((n_states, n_states), alpha)
    return Problem(data, np.full(n_states, alpha), rows, np.full((n_symbols, n_states), beta))


# ---- sums and ratios -------------------------------------------------------------------------------------------------


def ratio(numerator: Array, denominator: Array) -> Array:
    """Quotient, 0 where both are 0."""
    zeros = np.zeros(np.broadcast(numerator, denominator).shape)
    return np.divide(numerator, denominator, out=zeros, where=np.asarray(denominator) > 0)


def shares(rows: Array) -> Array:
    """Each row divided by its total."""
    return ratio(rows, rows.sum(axis=1, keepdims=True))


def averaged(weights: Array, rows: Array) -> Array:
    """(K,) average of rows."""
    average: Array = weights @ rows
    return average


def normalised(weights: Array) -> Array:
    total = float(weights.sum())
    if not total > 0:
        raise ValueError("no state or path is possible")
    return weights / total


def logs(weights: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(weights)


def concentration(problem: Problem) -> Table:
    return Table(problem.alpha_initial, problem.alpha_rows, problem.beta)


def plus(a: Table, b: Table) -> Table:
    return Table(a.initial + b.initial, a.rows + b.rows, a.emission + b.emission)


def updated(counts: Table, problem: Problem) -> Table:
    """Concentration of the posterior after these counts; what is forbidden stays so.

    Independent clusters may expect a forbidden move between them. That is no reason to allow it elsewhere.
    """
    prior = concentration(problem)
    return Table(*(np.where(own > 0, own + seen, 0.0) for own, seen in zip(prior, counts, strict=True)))


def zeros_like(table: Table) -> Table:
    return Table(np.zeros_like(table.initial), np.zeros_like(table.rows), np.zeros_like(table.emission))


def factors(problem: Problem, i: int) -> Array:
    """(T, K) of one sequence: what `legal` says, ones where it says nothing."""
    n_positions, n_states = len(problem.data[i]), len(problem.alpha_initial)
    return np.ones((n_positions, n_states)) if problem.legal is None else np.asarray(problem.legal[i], dtype=np.float64)


# ---- the collapsed joint distribution --------------------------------------------------------------------------------


def count(path: Sequence[int], symbols: Sequence[int], like: Table) -> Table:
    """Counts of one sequence (3.8)-(3.9)."""
    counts = zeros_like(like)
    for t, (state, symbol) in enumerate(zip(path, symbols, strict=True)):
        if t == 0:
            counts.initial[state] += 1
        else:
            counts.rows[path[t - 1], state] += 1
        if symbol >= 0:
            counts.emission[symbol, state] += 1
    return counts


def log_polya(counts: Array, alpha: Array) -> Array:
    """Log of Γ(Σα) / Γ(Σα + Σc) · Π Γ(α + c) / Γ(α) along the last axis; −inf where α is 0 and the count is not."""
    possible = alpha > 0
    rising = gammaln(np.where(possible, alpha + counts, 1.0)) - gammaln(np.where(possible, alpha, 1.0))
    total = np.where(possible, alpha, 0.0).sum(axis=-1)
    fall = gammaln(np.where(total > 0, total + counts.sum(axis=-1), 1.0)) - gammaln(np.where(total > 0, total, 1.0))
    value: Array = np.where(possible, rising, np.where(counts > 0, -np.inf, 0.0)).sum(axis=-1) - fall
    return value


def log_joint_of_counts(counts: Table, alpha: Table) -> Array:
    """(3.24), for one table of counts or for many at once (further axes come first)."""
    initial = log_polya(counts.initial, alpha.initial)
    rows = log_polya(counts.rows, alpha.rows).sum(axis=-1)
    emission = log_polya(np.swapaxes(counts.emission, -1, -2), alpha.emission.T).sum(axis=-1)
    total: Array = initial + rows + emission
    return total


def log_joint(paths: Paths, data: Data, alpha_initial: Array, alpha_rows: Array, beta: Array) -> float:
    """Log probability of the paths and the data with the parameters integrated out (3.24)."""
    alpha = Table(alpha_initial, alpha_rows, beta)
    counts = zeros_like(alpha)
    for path, symbols in zip(paths, data, strict=True):
        counts = plus(counts, count(path, symbols, alpha))
    return float(log_joint_of_counts(counts, alpha))


# ---- the exact posterior ---------------------------------------------------------------------------------------------


class Posterior(NamedTuple):
    """Everything about the hidden states of a tiny problem; N positions of all sequences in a row, M joint paths.

    Attributes
    ----------
    paths : (M, N) all joint paths
    log_joint : (M,) log probability of each with the data
    probability : (M,) posterior probability of each
    log_evidence : log probability of the data
    marginals : (N, K) posterior of every state
    co_clustering : (N, N) probability that two positions are in the same state
    """

    paths: NDArray[np.int64]
    log_joint: Array
    probability: Array
    log_evidence: float
    marginals: Array
    co_clustering: Array


def legal_paths(factor: Array) -> list[tuple[int, ...]]:
    """Every path of one sequence that visits legal states alone."""
    return list(itertools.product(*[[int(k) for k in np.flatnonzero(row)] for row in factor]))


def exact_posterior(
    data: Data, alpha_initial: Array, alpha_rows: Array, beta: Array, legal: Sequence[Array] | None = None
) -> Posterior:
    """The posterior of all joint paths, listed; `legal` is a factor of the joint distribution."""
    problem, alpha = Problem(data, alpha_initial, alpha_rows, beta, legal), Table(alpha_initial, alpha_rows, beta)
    choices = [legal_paths(factors(problem, i)) for i in range(len(data))]
    size = int(np.prod([len(choice) for choice in choices]))
    if size > LIMIT:
        raise ValueError(f"{size} joint paths are too many to list; at most {LIMIT}")
    paths = np.array([sum(joint, ()) for joint in itertools.product(*choices)], dtype=np.int64)
    chosen = np.array(list(itertools.product(*[range(len(choice)) for choice in choices])), dtype=np.int64)
    counts, extra = zeros_like(alpha), np.zeros(size)
    for i, choice in enumerate(choices):
        tables = [count(path, data[i], alpha) for path in choice]
        own = Table(*(np.array(part)[chosen[:, i]] for part in zip(*tables, strict=True)))
        counts = plus(counts, own)
        factor = logs(factors(problem, i))
        extra += np.array([sum(factor[t, k] for t, k in enumerate(path)) for path in choice])[chosen[:, i]]
    joint = log_joint_of_counts(counts, alpha) + extra
    evidence = float(np.logaddexp.reduce(joint))
    probability = np.exp(joint - evidence)
    same = (paths[:, :, None] == paths[:, None, :]).astype(np.float64)
    states = (paths[:, :, None] == np.arange(len(alpha_initial))).astype(np.float64)
    marginals, together = np.tensordot(probability, states, 1), np.tensordot(probability, same, 1)
    return Posterior(paths, joint, probability, evidence, marginals, together)


# ---- one state given all others (Gibbs) ------------------------------------------------------------------------------


def counts_without_state(paths: Paths, problem: Problem, i: int, t: int) -> Table:
    """C^{∖t}: counts of all paths without one state, its symbol and the moves into and out of it (3.26)."""
    counts = zeros_like(concentration(problem))
    for sequence, (path, symbols) in enumerate(zip(paths, problem.data, strict=True)):
        gone = t if sequence == i else -2
        for s, (state, symbol) in enumerate(zip(path, symbols, strict=True)):
            if s == 0 and s != gone:
                counts.initial[state] += 1
            if s > 0 and gone not in (s - 1, s):
                counts.rows[path[s - 1], state] += 1
            if symbol >= 0 and s != gone:
                counts.emission[symbol, state] += 1
    return counts


def gibbs_conditional(paths: Paths, problem: Problem, i: int, t: int) -> Array:
    """(K,) distribution of one state given all others, by the formula (3.25)."""
    posterior = updated(counts_without_state(paths, problem, i, t), problem)
    path, symbol = paths[i], problem.data[i][t]
    weights = np.array(factors(problem, i)[t])
    for k in range(len(weights)):
        before = path[t - 1] if t > 0 else None
        weights[k] *= posterior.initial[k] if before is None else posterior.rows[before, k]
        if t + 1 < len(path):
            numerator = posterior.rows[k, path[t + 1]] + (before == k == path[t + 1])
            weights[k] *= ratio(numerator, posterior.rows[k].sum() + (before == k))
        if symbol >= 0:
            weights[k] *= ratio(posterior.emission[symbol, k], posterior.emission[:, k].sum())
    return normalised(weights)


def gibbs_conditional_by_ratio(paths: Paths, problem: Problem, i: int, t: int) -> Array:
    """The same as what the definition says: joint probabilities of the paths that differ in this state alone."""
    joint = []
    for k in range(len(problem.alpha_initial)):
        changed = [list(path) for path in paths]
        changed[i][t] = k
        joint.append(log_joint(changed, *problem[:4]))
    values = np.array(joint) + logs(factors(problem, i)[t])
    return normalised(np.exp(values - values.max()))


# ---- chains ----------------------------------------------------------------------------------------------------------


def forward_backward(first: Array, transition: Array, likelihood: Array, last: Array) -> Chain:
    """Marginals of p(z) ∝ first(z_1) · Π transition(z_t−1, z_t) · Π likelihood(t, z_t) · last(z_T).

    Parameters
    ----------
    transition : (K, K), or (T − 1, K, K) if every move has its own
    """
    n_positions, n_states = likelihood.shape
    moves = np.broadcast_to(transition, (n_positions - 1, n_states, n_states))
    forward, backward = np.empty((n_positions, n_states)), np.empty((n_positions, n_states))
    forward[0], backward[-1] = normalised(first * likelihood[0]), last
    for t in range(1, n_positions):
        forward[t] = normalised((forward[t - 1] @ moves[t - 1]) * likelihood[t])
    for t in range(n_positions - 1, 0, -1):
        backward[t - 1] = normalised(moves[t - 1] @ (likelihood[t] * backward[t]))
    pairs = np.zeros((n_positions - 1, n_states, n_states))
    for t in range(1, n_positions):
        pairs[t - 1] = normalised(forward[t - 1][:, None] * moves[t - 1] * (likelihood[t] * backward[t]))
    return Chain(np.array([normalised(row) for row in forward * backward]), pairs)


def chain_by_enumeration(first: Array, transition: Array, likelihood: Array, last: Array) -> Chain:
    """The same by listing all paths."""
    n_positions, n_states = likelihood.shape
    moves = np.broadcast_to(transition, (n_positions - 1, n_states, n_states))
    marginals, pairs = np.zeros((n_positions, n_states)), np.zeros((n_positions - 1, n_states, n_states))
    for path in itertools.product(range(n_states), repeat=n_positions):
        weight = first[path[0]] * last[path[-1]] * np.prod([likelihood[t, k] for t, k in enumerate(path)])
        for t in range(1, n_positions):
            weight *= moves[t - 1, path[t - 1], path[t]]
        for t, k in enumerate(path):
            marginals[t, k] += weight
        for t in range(1, n_positions):
            pairs[t - 1, path[t - 1], path[t]] += weight
    total = marginals[0].sum()
    return Chain(marginals / total, pairs / total)


def random_marginals(problem: Problem, rng: np.random.Generator) -> Marginals:
    """One chain for each sequence, with q(z_1) and q(z_t | z_t−1) drawn from U[0, 1] over what is legal."""
    n_states = len(problem.alpha_initial)
    marginals = []
    for i, symbols in enumerate(problem.data):
        first = rng.random(n_states) * (problem.alpha_initial > 0)
        moves = rng.random((len(symbols) - 1, n_states, n_states)) * (problem.alpha_rows > 0)
        legal = np.sign(likelihoods(problem.beta, symbols, factors(problem, i)))
        marginals.append([forward_backward(first, moves, legal, np.ones(n_states))])
    return marginals


def cut(q: Marginals, length: int) -> Marginals:
    """Marginals with clusters of `length` states (the last may be shorter): what ties them is forgotten."""
    return [[piece for chain in clusters for piece in pieces(chain, length)] for clusters in q]


def places(q: Marginals) -> list[Place]:
    """All clusters in order, as (sequence, cluster)."""
    return [(i, c) for i, clusters in enumerate(q) for c in range(len(clusters))]


def far_apart(q: Marginals, cluster_size: int) -> list[list[Place]]:
    """All clusters in groups of `cluster_size` (some smaller), the members of a group as far apart as can be."""
    everyone = places(q)
    n_groups = -(-len(everyone) // cluster_size)
    return [everyone[group::n_groups] for group in range(n_groups)]


def pieces(chain: Chain, length: int) -> list[Chain]:
    starts = range(0, len(chain.marginals), length)
    return [Chain(chain.marginals[s : s + length], chain.pairs[s : s + length - 1]) for s in starts]


def likelihoods(emission: Array, symbols: Sequence[int], factor: Array) -> Array:
    """(T, K) probability of each symbol in each state, times the factors of the states; missing symbols have 1."""
    told = [np.ones(emission.shape[1]) if symbol < 0 else emission[symbol] for symbol in symbols]
    table: Array = factor * np.array(told)
    return table
