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
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Array = NDArray[np.float64]
Data = Sequence[Sequence[int]]
Paths = Sequence[Sequence[int]]
Place = tuple[int, int]
Weighting = Literal["counts", "probabilities"]
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
    """All clusters in groups of `cluster_size` (some smaller), members of a group as far from each other as can be."""
    everyone = places(q)
    n_groups = -(-len(everyone) // cluster_size)
    return [everyone[group::n_groups] for group in range(n_groups)]


def pieces(chain: Chain, length: int) -> list[Chain]:
    starts = range(0, len(chain.marginals), length)
    return [Chain(chain.marginals[s : s + length], chain.pairs[s : s + length - 1]) for s in starts]


# ---- expected counts -------------------------------------------------------------------------------------------------


def expected_counts(q: Marginals, problem: Problem, without: Collection[Place] = ()) -> Table:
    """Expected counts of everything but the clusters `without`, each given as (sequence, cluster).

    With a cluster go its symbols and all moves that begin or end in it: T + 1 for T states inside a sequence (3.56).
    A move from one cluster to the next is expected with the product of the two marginals, since q makes them
    independent.
    """
    counts = zeros_like(concentration(problem))
    for i, clusters in enumerate(q):
        position = 0
        for c, chain in enumerate(clusters):
            symbols = problem.data[i][position : position + len(chain.marginals)]
            position += len(chain.marginals)
            if (i, c) in without:
                continue
            if c == 0:
                counts.initial[:] += chain.marginals[0]
            elif (i, c - 1) not in without:
                counts.rows[:] += np.outer(clusters[c - 1].marginals[-1], chain.marginals[0])
            counts.rows[:] += chain.pairs.sum(axis=0)
            for symbol, marginal in zip(symbols, chain.marginals, strict=True):
                if symbol >= 0:
                    counts.emission[symbol] += marginal
    return counts


def predictive(counts: Table, problem: Problem) -> Table:
    """Surrogate parameters (3.49)-(3.50): the mean parameters after these counts."""
    posterior = updated(counts, problem)
    return Table(normalised(posterior.initial), shares(posterior.rows), shares(posterior.emission.T).T)


def likelihoods(emission: Array, symbols: Sequence[int], factor: Array) -> Array:
    """(T, K) probability of each symbol in each state, times the factors of the states; missing symbols have 1."""
    told = [np.ones(emission.shape[1]) if symbol < 0 else emission[symbol] for symbol in symbols]
    table: Array = factor * np.array(told)
    return table


# ---- CVI 1: single states --------------------------------------------------------------------------------------------


def state(q: Marginals, i: int, t: int) -> Array:
    """(K,) q(z_t) of a sequence whose clusters are single states; zero before its first and behind its last."""
    return q[i][t].marginals[0] if 0 <= t < len(q[i]) else np.zeros(q[i][0].marginals.shape[1])


def moves_from_before(q: Marginals, problem: Problem, i: int, t: int, corrections: bool = True) -> Table:
    """Expected counts whose row j is C^{∖t}_{j·} given z_{t−1} = j.

    All moves but those of t − 1 and t, and (3.37)'s one contribution: the move from t − 2 to t − 1 ends in j, so it
    begins there too with probability q(z_{t−2} = j). It is zero at t − 1 = 1, where the move came from the start.
    """
    counts = expected_counts(q, problem, {(i, t - 1), (i, t)})
    return counts._replace(rows=counts.rows + np.diag(state(q, i, t - 2))) if corrections else counts


def moves_to_after(q: Marginals, problem: Problem, i: int, t: int, corrections: bool = True) -> Table:
    """Expected counts whose column l is C^{∖t}_{·l} given z_{t+1} = l.

    All moves but those of t and t + 1, and (3.39)'s one contribution of the move from t + 1 to t + 2.
    """
    counts = expected_counts(q, problem, {(i, t), (i, t + 1)})
    return counts._replace(rows=counts.rows + np.diag(state(q, i, t + 2))) if corrections else counts


def weight_from_before(
    q: Marginals, problem: Problem, i: int, t: int, corrections: bool, neighbour_weighting: Weighting
) -> Array:
    """(K,) first factor of (3.33): what z_{t−1} says; at the start of a sequence row 0."""
    if t == 0:
        return updated(expected_counts(q, problem, {(i, t)}), problem).initial
    rows = updated(moves_from_before(q, problem, i, t, corrections), problem).rows
    return averaged(state(q, i, t - 1), shares(rows) if neighbour_weighting == "probabilities" else rows)


def weight_from_after(q: Marginals, problem: Problem, i: int, t: int, corrections: bool) -> Array:
    """(K,) second factor of (3.33): what z_{t+1} says; at the end of a sequence nothing."""
    if t == len(q[i]) - 1:
        return np.ones(len(problem.alpha_initial))
    rows = updated(moves_to_after(q, problem, i, t, corrections), problem).rows
    numerator = averaged(state(q, i, t + 1), rows.T)
    if not corrections:
        return ratio(numerator, rows.sum(axis=1))
    denominator = updated(expected_counts(q, problem, {(i, t)}), problem).rows.sum(axis=1)
    stayed = np.where(np.diag(problem.alpha_rows) > 0, state(q, i, t - 1), 0.0)  # the move into t may be k → k
    return ratio(numerator + stayed * state(q, i, t + 1), denominator + stayed)


def weight_from_symbol(q: Marginals, problem: Problem, i: int, t: int) -> Array:
    """(K,) third factor of (3.33); C_{·k} is the number of symbols that k emitted."""
    emission = predictive(expected_counts(q, problem, {(i, t)}), problem).emission
    symbol = problem.data[i][t]
    return np.ones(len(problem.alpha_initial)) if symbol < 0 else emission[symbol]


def cvi_state_pass(
    q: Marginals,
    problem: Problem,
    corrections: bool = True,
    neighbour_weighting: Weighting = "counts",
    order: Order = "incremental",
    visits: Visits | None = None,
) -> Marginals:
    """CVI 1: every state once by (3.33).

    Parameters
    ----------
    q : clusters of one state
    corrections : with the single contributions of (3.37) and (3.39) and the delta terms of (3.33), or without any
    neighbour_weighting : average the raw rows of counts over z_{t−1}, or each row divided by its total
    order : given the newest marginals, or ("batch") the marginals before the pass
    visits : these states in this order, each a group of its own, instead of all in the order of the data
    """
    given, q = q, [list(clusters) for clusters in q]
    for ((i, t),) in visits or far_apart(q, 1):
        known = given if order == "batch" else q
        weights = factors(problem, i)[t] * weight_from_before(known, problem, i, t, corrections, neighbour_weighting)
        weights = weights * weight_from_after(known, problem, i, t, corrections)
        weights = weights * weight_from_symbol(known, problem, i, t)
        q[i][t] = Chain(normalised(weights)[None], q[i][t].pairs)
    return q


# ---- CVI 2: whole sequences ------------------------------------------------------------------------------------------


def sequence_under(surrogate: Table, problem: Problem, i: int) -> Chain:
    """Marginals of one whole sequence under given parameters."""
    likelihood = likelihoods(surrogate.emission, problem.data[i], factors(problem, i))
    return forward_backward(surrogate.initial, surrogate.rows, likelihood, np.ones(len(surrogate.initial)))


def cvi_sequence_pass(
    q: Marginals,
    problem: Problem,
    exclude: bool = True,
    order: Order = "incremental",
    cluster_size: int = 1,
    visits: Visits | None = None,
) -> Marginals:
    """CVI 2: every sequence once by (3.48).

    Parameters
    ----------
    q : one cluster for each sequence
    exclude : counts without the visited sequences, as it should be, or with them
    order : counts of the newest marginals, or ("batch") of the marginals before the pass
    cluster_size : how many sequences are taken out at once and run under the same surrogate
    visits : these groups of sequences, in this order, instead of those that `cluster_size` makes
    """
    given, q = q, [list(clusters) for clusters in q]
    for group in visits or far_apart(q, cluster_size):
        counts = expected_counts(given if order == "batch" else q, problem, group if exclude else ())
        for i, _ in group:
            q[i] = [sequence_under(predictive(counts, problem), problem, i)]
    return q


# ---- CVI 3: subchains ------------------------------------------------------------------------------------------------


def message_from_before(
    q: Marginals, problem: Problem, place: Place, without: set[Place], neighbour_weighting: Weighting
) -> Array:
    """(K,) weights of a cluster's first state (3.68)."""
    i, c = place
    rows = updated(expected_counts(q, problem, without), problem).rows
    return averaged(q[i][c - 1].marginals[-1], shares(rows) if neighbour_weighting == "probabilities" else rows)


def message_from_after(q: Marginals, problem: Problem, place: Place, without: set[Place]) -> Array:
    """(K,) weights of a cluster's last state (3.69)."""
    i, c = place
    rows = updated(expected_counts(q, problem, without), problem).rows
    return averaged(q[i][c + 1].marginals[0], shares(rows).T)


def subchain_under(
    q: Marginals,
    problem: Problem,
    place: Place,
    without: set[Place],
    neighbour_weighting: Weighting,
    alone: bool = True,
) -> Chain:
    """New marginals of one cluster by (3.70), with counts without some clusters, this one among them or not.

    Parameters
    ----------
    alone : for the message from a neighbour, take out the neighbour as well: C^{∖i−1,i} and C^{∖i,i+1}
    """
    i, c = place
    start = sum(len(chain.marginals) for chain in q[i][:c])
    own = slice(start, start + len(q[i][c].marginals))
    surrogate = predictive(expected_counts(q, problem, without), problem)
    likelihood = likelihoods(surrogate.emission, problem.data[i][own], factors(problem, i)[own])
    first, last = surrogate.initial, np.ones(len(surrogate.initial))
    if c > 0:
        first = message_from_before(
            q, problem, place, without | {(i, c - 1)} if alone else without, neighbour_weighting
        )
    if c + 1 < len(q[i]):
        last = message_from_after(q, problem, place, without | {(i, c + 1)} if alone else without)
    return forward_backward(first, surrogate.rows, likelihood, last)


def cvi_subchain_pass(
    q: Marginals,
    problem: Problem,
    neighbour_weighting: Weighting = "counts",
    exclude: bool = True,
    order: Order = "incremental",
    cluster_size: int = 1,
    visits: Visits | None = None,
) -> Marginals:
    """CVI 3: every subchain once; how long they are is how `q` was cut.

    Parameters are those of `cvi_state_pass` and `cvi_sequence_pass`. Neighbours are taken out for the messages between
    them if clusters are taken out at all, and one by one.
    """
    given, q = q, [list(clusters) for clusters in q]
    for group in visits or far_apart(q, cluster_size):
        known = given if order == "batch" else [list(clusters) for clusters in q]
        without = set(group) if exclude else set()
        for i, c in group:
            q[i][c] = subchain_under(
                known, problem, (i, c), without, neighbour_weighting, alone=exclude and cluster_size == 1
            )
    return q


# ---- variational inference, for comparison ---------------------------------------------------------------------------


def geometric(counts: Table, problem: Problem) -> Table:
    """exp E[log θ] of the posterior after these counts."""
    posterior = updated(counts, problem)
    emission = exp_expected_log(posterior.emission.T).T
    return Table(exp_expected_log(posterior.initial), exp_expected_log(posterior.rows), emission)


def exp_expected_log(alpha: Array) -> Array:
    """exp(ψ(α) − ψ(Σα)) along the last axis; 0 where α is 0."""
    total = alpha.sum(axis=-1, keepdims=True)
    possible = alpha > 0
    value = np.exp(digamma(np.where(possible, alpha, 1.0)) - digamma(np.where(total > 0, total, 1.0)))
    return np.where(possible, value, 0.0)


def vi_pass(q: Marginals, problem: Problem) -> Marginals:
    """Mean field with parameters: all sequences under exp E[log θ] of the marginals before the pass."""
    surrogate = geometric(expected_counts(q, problem), problem)
    return [[sequence_under(surrogate, problem, i)] for i in range(len(q))]


# ---- how good marginals are ------------------------------------------------------------------------------------------


def entropy(q: Marginals) -> float:
    """Entropy of q: that of all pairs, less that of the states that two pairs share."""
    return sum(chain_entropy(chain) for clusters in q for chain in clusters)


def chain_entropy(chain: Chain) -> float:
    if len(chain.pairs) == 0:
        return plain_entropy(chain.marginals)
    return plain_entropy(chain.pairs) - plain_entropy(chain.marginals[1:-1])


def plain_entropy(probability: Array) -> float:
    return -float((probability * logs(np.where(probability > 0, probability, 1.0))).sum())


def expected_log_factors(q: Marginals, problem: Problem) -> float:
    """E[log legal], which is zero where states are either legal or not."""
    total = 0.0
    for i, clusters in enumerate(q):
        marginals = np.concatenate([chain.marginals for chain in clusters])
        total += float((marginals * logs(np.where(marginals > 0, factors(problem, i), 1.0))).sum())
    return total


def expected_bound(q: Marginals, problem: Problem) -> float:
    """The collapsed objective with expected counts inside the gamma functions of (3.24), plus the entropy of q.

    It is the bound of variational inference with the best q(parameters) for this q(z), since the integral over the
    parameters of exp E_q[log p(x, z | parameters)] is (3.24) at the expected counts. So it never falls during
    `vi_pass`, and never lies above `exact_bound`.
    """
    counts = expected_counts(q, problem)
    return float(log_joint_of_counts(counts, concentration(problem))) + expected_log_factors(q, problem) + entropy(q)


def log_probability(q: Marginals, paths: NDArray[np.int64]) -> Array:
    """(M,) log q of joint paths (M, N), the positions of all sequences in a row."""
    total, position = np.zeros(len(paths)), 0
    for chain in itertools.chain.from_iterable(q):
        total += logs(chain.marginals[0])[paths[:, position]]
        for pair in chain.pairs:
            total += logs(shares(pair))[paths[:, position], paths[:, position + 1]]
            position += 1
        position += 1
    return total


def exact_bound(q: Marginals, posterior: Posterior) -> float:
    """The collapsed bound (3.27), E_q[log p(x, z) − log q(z)], path by path."""
    log_q = log_probability(q, posterior.paths)
    likely = log_q > -np.inf
    return float((np.exp(log_q[likely]) * (posterior.log_joint[likely] - log_q[likely])).sum())


def co_clustering(q: Marginals) -> Array:
    """(N, N) probability under q that two positions are in the same state."""
    chains = list(itertools.chain.from_iterable(q))
    marginals = np.concatenate([chain.marginals for chain in chains])
    same: Array = marginals @ marginals.T
    position = 0
    for chain in chains:
        own = slice(position, position + len(chain.marginals))
        same[own, own] = co_clustering_within(chain)
        position = own.stop
    return same


def co_clustering_within(chain: Chain) -> Array:
    """(T, T) of one cluster, from the joint distribution of each state and every later one."""
    n_positions = len(chain.marginals)
    same = np.eye(n_positions)
    for s in range(n_positions):
        joint = np.diag(chain.marginals[s])
        for t in range(s + 1, n_positions):
            joint = joint @ shares(chain.pairs[t - 1])
            same[s, t] = same[t, s] = np.trace(joint)
    return same


def co_clustering_error(q: Marginals, posterior: Posterior) -> float:
    """Mean absolute error of the co-clustering probabilities of all pairs of different positions."""
    pairs = np.triu_indices(len(posterior.co_clustering), 1)
    return float(np.abs(co_clustering(q) - posterior.co_clustering)[pairs].mean())
