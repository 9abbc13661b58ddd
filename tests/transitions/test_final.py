"""How sequences end (`final=`): everything is compared with sums over all paths."""

import naive
import numpy as np
import pytest

from subchain import CVI, EM, HMM, SVI, VI, Categorical, Gaussian, Gibbs
from subchain.data import as_sequences
from subchain.engines import Part, resolve_engine
from subchain.engines.subchains import Grid
from subchain.errors import InputError
from subchain.inference import SCVI
from subchain.transitions import Dirichlet, banded, left_right
from subchain.transitions.sums import ChainSums

INITIAL = np.array([0.5, 0.3, 0.2])
TRANSITION = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
TABLE = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
SEQUENCES = [np.array([0, 1, 2, 2, 0]), np.array([2]), np.array([1, 1, 0, 2])]
#: Arguments `final`, with the weights of ending and of going on that they stand for.
KINDS = {
    "states": ([0, 2], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
    "booleans": (np.array([False, True, False]), [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
    "probabilities": ([0.1, 0.5, 0.0], [0.1, 0.5, 0.0], [0.9, 0.5, 1.0]),
    "certain": ([0.0, 1.0, 0.2], [0.0, 1.0, 0.2], [1.0, 0.0, 0.8]),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def model(kind):
    return HMM.from_parameters(INITIAL, TRANSITION, Categorical.from_parameters(TABLE), final=KINDS[kind][0])


def log_likelihood(x, kind, table=TABLE):
    """Log weights of the states at each position, (T, K): what they emit, and how the sequence ends or goes on."""
    _, final, onward = KINDS[kind]
    emitted = naive.logs(table[:, x].T)
    return emitted + np.vstack((np.tile(naive.logs(onward), (len(x) - 1, 1)), naive.logs(final)))


def enumerated(x, kind):
    return naive.enumerate_marginals(log_likelihood(x, kind), INITIAL, TRANSITION)


@kinds
class TestGivenEnds:
    def test_scores_and_marginals_are_sums_over_all_paths(self, kind):
        expected = [enumerated(x, kind) for x in SEQUENCES]
        assert np.allclose(model(kind).score_sequences(SEQUENCES), [one.log_likelihood for one in expected])
        for found, one in zip(model(kind).predict_proba(SEQUENCES), expected, strict=True):
            assert np.allclose(found, one.smoothed)
        pairs = sum(one.pairs for one in expected)
        assert np.allclose(model(kind).expected_statistics(SEQUENCES).pairs, pairs)

    def test_steps_sum_to_the_score(self, kind):
        steps = model(kind).score_steps(SEQUENCES)
        assert np.allclose([part.sum() for part in steps], model(kind).score_sequences(SEQUENCES))

    def test_the_best_path_is_the_best_of_all(self, kind):
        for x in SEQUENCES:
            best, _ = naive.enumerate_best_path(log_likelihood(x, kind), INITIAL, TRANSITION)
            assert (model(kind).predict(x, "viterbi") == best).all()

    def test_an_observation_is_predicted_from_the_others_and_the_end(self, kind):
        for position in range(5):
            x = SEQUENCES[0]
            parts = np.array([log_likelihood(x, kind), log_likelihood(x, kind, np.ones((3, 3)))])
            without = np.where(np.arange(5)[:, None] == position, parts[1], parts[0])
            expected = naive.enumerate_marginals(parts[0], INITIAL, TRANSITION).log_likelihood
            expected -= naive.enumerate_marginals(without, INITIAL, TRANSITION).log_likelihood
            assert np.isclose(model(kind).score_samples(x)[position], expected)
            masked = model(kind).score_samples(x, mask=np.arange(5) == position)
            assert np.isclose(masked[position], expected)

    def test_drawn_paths_have_the_probabilities_of_all_paths(self, kind):
        x = SEQUENCES[2]
        paths, joint = naive.all_paths(log_likelihood(x, kind), INITIAL, TRANSITION)
        probability = np.exp(joint - naive.log_sum(joint))
        drawn = model(kind).sample_paths(x, 20_000, random_state=0)
        codes = (drawn * 3 ** np.arange(3, -1, -1)).sum(axis=1)
        assert np.allclose(np.bincount(codes, minlength=81) / 20_000, probability, atol=0.02)
        assert (paths[probability > 0.0, -1][:, None] == np.flatnonzero(KINDS[kind][1])).any(axis=1).all()

    def test_sampled_sequences_end_legally_and_as_often_as_they_should(self, kind):
        silent = log_likelihood(np.zeros(3, dtype=int), kind, np.ones((3, 3)))
        expected = naive.enumerate_marginals(silent, INITIAL, TRANSITION).smoothed
        rng = np.random.default_rng(0)
        drawn = np.array([model(kind).sample(3, random_state=rng).states for _ in range(2_000)])
        found = np.array([np.bincount(column, minlength=3) / 2_000 for column in drawn.T])
        assert np.allclose(found, expected, atol=0.05)
        assert (found[-1][np.array(KINDS[kind][1]) == 0.0] == 0.0).all()

    def test_the_past_of_a_sequence_does_not_know_its_end(self, kind):
        """Filters, streams and forecasts take the sequence to go on."""
        x, onward = SEQUENCES[0], np.array(KINDS[kind][2])
        goes_on = naive.marginals(naive.logs(TABLE[:, x].T), INITIAL, onward[:, None] * TRANSITION)
        assert np.allclose(model(kind).filter(x), goes_on.filtered)
        stream = model(kind).stream()
        assert np.allclose([stream.update(symbol) for symbol in x], goes_on.filtered)
        ahead = [goes_on.filtered[-1] @ (onward[:, None] * TRANSITION)]
        ahead.append(ahead[0] @ (onward[:, None] * TRANSITION))
        expected = [states / states.sum() for states in ahead]
        assert np.allclose(stream.predicted, expected[0])
        assert np.allclose(model(kind).forecast(x, steps=2).states, expected)

    def test_a_continuation_ends_legally(self, kind):
        drawn = [model(kind).sample(2, given=[0, 1], random_state=seed).states[-1] for seed in range(30)]
        assert set(drawn) <= set(np.flatnonzero(KINDS[kind][1]))

    def test_a_file_and_another_order_keep_it(self, kind, tmp_path):
        model(kind).save(tmp_path / "model.hmm")
        loaded = HMM.load(tmp_path / "model.hmm")
        score = loaded.score(SEQUENCES)
        assert score == model(kind).score(SEQUENCES)
        turned = loaded.order_states(by=lambda _: [2, 0, 1])
        assert (turned.final_ == np.array(KINDS[kind][1])[[1, 2, 0]]).all()
        assert np.isclose(turned.score(SEQUENCES), score)

    @pytest.mark.parametrize(
        "inference",
        [EM(max_iter=3), VI(max_iter=3), VI(max_iter=3, cluster="state"), CVI(max_iter=3), SVI(max_updates=20),
         SCVI(max_updates=20), EM(batch=2, max_updates=20), Gibbs(n_samples=20, burn_in=5, n_chains=2),
         Gibbs("sequence", n_samples=20, burn_in=5, n_chains=2),
         Gibbs("sequence", "sampled", n_samples=20, burn_in=5, n_chains=2)],
        ids=repr,
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
    def test_every_algorithm_decodes_ends_that_are_legal(self, kind, inference):
        rng = np.random.default_rng(1)
        x = [rng.integers(3, size=size) for size in (7, 4, 6, 5)]
        prior = Dirichlet(final=KINDS[kind][0])
        fitted = HMM(3, Categorical(n_categories=3), prior, inference, random_state=0, n_jobs=1).fit(x)
        legal = set(np.flatnonzero(KINDS[kind][1]))
        assert {int(path[-1]) for path in fitted.predict(x)} <= legal
        assert {int(path[-1]) for path in fitted.predict(x, "viterbi")} <= legal
        assert (fitted.final_ == KINDS[kind][1]).all()


def test_the_probabilities_of_all_sequences_of_all_lengths_sum_to_one():
    ends = np.array([0.3, 0.5, 0.4])
    given = HMM.from_parameters(INITIAL, TRANSITION, Categorical.from_parameters(np.ones((3, 1))), final=ends)
    scores = given.score_sequences([np.zeros(length, dtype=int) for length in range(1, 60)])
    assert np.isclose(np.exp(scores).sum(), 1.0)


def test_a_band_of_many_states_ends_as_a_matrix_does():
    n_states = 70
    rng = np.random.default_rng(0)
    x = np.sort(rng.integers(5, size=40))
    prior = Dirichlet(mask=banded(n_states, 3), final=[0, 7])
    fitted = HMM(n_states, Categorical(n_categories=5), prior, EM(max_iter=3), random_state=0)
    with pytest.warns(UserWarning, match="before it settled"):
        fitted.fit(x)
    log_weights = naive.logs(fitted.emission_.probabilities[:, x].T)
    log_weights[-1, np.delete(np.arange(n_states), [0, 7])] = -np.inf
    expected = naive.marginals(log_weights, fitted.initial_, fitted.transition_)
    assert np.isclose(fitted.score(x), expected.log_likelihood)
    assert np.allclose(fitted.predict_proba(x), expected.smoothed)


def exact_posterior(x, kind):
    """Posterior marginals (T, K) with flat priors on everything, by the evidence of every path."""
    prior = Dirichlet().prior(3, flat=False)
    emission = Categorical(n_categories=3).prior(as_sequences(x), 3, flat=False)
    paths, _ = naive.all_paths(np.zeros((len(x), 3)), INITIAL, TRANSITION)
    ends = log_likelihood(x, kind, np.ones((3, 3)))
    logs = []
    for path in paths:
        pairs = np.zeros((3, 3))
        np.add.at(pairs, (path[:-1], path[1:]), 1.0)
        sums = emission.mean().zeros()
        emission.mean().accumulate(x, np.eye(3)[path].T.copy(), sums)
        of_chain = prior.log_evidence(ChainSums(np.eye(3)[path[0]], pairs))
        logs.append(of_chain + emission.log_evidence(sums) + ends[np.arange(len(x)), path].sum())
    weights = np.exp(np.array(logs) - np.max(logs))
    return np.array([np.bincount(column, weights, minlength=3) for column in paths.T]) / weights.sum()


@pytest.mark.parametrize("block", [("state", "collapsed"), ("sequence", "collapsed"), ("sequence", "sampled")])
@pytest.mark.parametrize("kind", ["states", "probabilities"])
def test_gibbs_draws_from_the_posterior_given_the_ends(kind, block):
    x = SEQUENCES[2]
    sampler = Gibbs(*block, n_samples=6_000, burn_in=100, n_chains=1)
    prior = Dirichlet(final=KINDS[kind][0])
    fitted = HMM(3, Categorical(n_categories=3), prior, sampler, random_state=0, n_jobs=1).fit(x)
    assert np.allclose(fitted.predict_proba(x), exact_posterior(x, kind), atol=0.06)


class TestLearnedEnds:
    def sequences(self):
        """Sequences that stop soon once they have reached the last state, and hardly ever before."""
        rng = np.random.default_rng(0)
        found = []
        for _ in range(60):
            state, path = 0, []
            while True:
                path.append(state)
                if rng.random() < (0.02, 0.02, 0.4)[state]:
                    break
                state = min(state + (rng.random() < 0.2), 2)
            found.append(rng.normal(4.0 * np.array(path), 1.0))
        return found

    @pytest.mark.parametrize(
        "inference", [EM(), VI(), Gibbs("sequence", "sampled", n_samples=100, burn_in=50, n_chains=1)], ids=repr
    )
    def test_it_finds_where_sequences_end(self, inference):
        x = self.sequences()
        fitted = HMM(3, "gaussian", Dirichlet(final="learned"), inference, random_state=0, n_jobs=1).fit(x)
        fitted.order_states(by="mean")
        assert np.allclose(fitted.final_, [0.02, 0.02, 0.4], atol=0.08)

    def test_an_iteration_of_em_counts_the_ends_of_all_paths(self):
        start = HMM.from_parameters(
            INITIAL, TRANSITION, Categorical.from_parameters(TABLE), final=KINDS["probabilities"][0]
        )
        prior = Dirichlet(final="learned")
        with pytest.warns(UserWarning, match="before it settled"):
            fitted = HMM(3, Categorical(n_categories=3), prior, EM(max_iter=1), init=start).fit(SEQUENCES)
        expected = [enumerated(x, "probabilities") for x in SEQUENCES]
        ended = sum(one.smoothed[-1] for one in expected)
        left = sum(one.smoothed[:-1].sum(axis=0) for one in expected)
        assert np.allclose(fitted.final_, ended / (ended + left))

    @pytest.mark.parametrize("algorithm", [EM, VI])
    def test_the_objective_never_falls(self, algorithm):
        fitted = HMM(3, "gaussian", Dirichlet(final="learned"), algorithm(), random_state=1).fit(self.sequences())
        assert np.diff(fitted.trace_.objective).min() >= -1e-8

    def test_the_objective_of_vi_is_below_that_of_the_true_posterior_and_counts_the_ends(self):
        """The bound of a model of one state is exact: it is the evidence of its lengths and observations."""
        x = [np.zeros(3, dtype=int), np.zeros(5, dtype=int)]
        fitted = HMM(1, Categorical(n_categories=1), Dirichlet(final="learned"), VI(), random_state=0).fit(x)
        # two sequences end, six positions are followed by another: B(3, 7) = 2! 6! / 9!
        assert np.isclose(fitted.trace_.objective[-1], np.log(2.0 * 720.0 / 362880.0))

    def test_parameters_of_ending_count(self):
        x = self.sequences()
        plain, learned = (
            HMM(2, "gaussian", Dirichlet(final=final), EM(), random_state=0).fit(x) for final in (None, "learned")
        )
        assert learned.n_parameters_ == plain.n_parameters_ + 2

    @pytest.mark.parametrize(
        "inference", [SVI(), SCVI(), CVI(), EM(batch=2), Gibbs("state"), Gibbs("sequence")], ids=repr
    )
    def test_algorithms_that_cannot_learn_it_say_which_can(self, inference):
        with pytest.raises(InputError, match=r"EM\(\), VI\(\) or Gibbs\(block='sequence', parameters='sampled'\)"):
            HMM(2, "gaussian", Dirichlet(final="learned"), inference).fit(self.sequences())

    def test_batches_of_whole_sequences_can_follow_each_other(self):
        x = self.sequences()
        fitted = HMM(2, "gaussian", Dirichlet(final="learned"), random_state=0)
        fitted.partial_fit(x[:30]).partial_fit(x[30:])
        assert np.isclose(fitted.statistics_.chain.ended()[:, 0].sum(), 60.0)
        with pytest.raises(InputError, match="whole sequences"):
            fitted.partial_fit(x[0], continues=True)


def test_a_left_right_model_whose_sequences_end_in_the_last_state():
    """Short words of three sounds: without `final`, a sequence may seem to stop in the middle of the word."""
    rng = np.random.default_rng(0)
    x = [rng.normal(np.repeat([0.0, 1.0, 2.0], rng.integers(3, 8, size=3)), 1.0) for _ in range(40)]
    prior = Dirichlet(mask=left_right(3, 1), initial=[1, 0, 0], final=[2])
    fitted = HMM(3, "gaussian", prior, random_state=0).fit(x)
    assert all(path[0] == 0 and path[-1] == 2 for path in fitted.predict(x, "viterbi"))
    assert fitted.sample(9, random_state=0).states[-1] == 2
    with pytest.raises(InputError, match="no path of n=2 states ends"):
        fitted.sample(2)


def test_only_the_last_subchain_of_a_sequence_sees_its_end():
    """A chain without observations knows nothing of its states but at its end, and so do its subchains."""
    x = np.zeros(90, dtype=int)
    table = Categorical.from_parameters([[1.0], [1.0]])
    known = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], table, final=[1])
    point, data = known._point(), as_sequences(x)
    part = Part(data, point.evidence(data, None))
    batch = Grid(data.offsets, 30).batch(np.arange(3))
    start = np.full((2, 3), 0.5)
    run = resolve_engine("cpu", 1).minibatch(point.surrogate(), part, batch, start, np.ones_like(start))
    assert np.allclose(run.ends.last_marginal, [[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])


def test_held_out_sequences_are_scored_with_their_ends():
    x = TestLearnedEnds().sequences()
    fitted = HMM(2, "gaussian", Dirichlet(final="learned"), EM(max_iter=4, tolerance=0.0), random_state=0)
    fitted.fit(x[:40], validation=x[40:])
    held_out = fitted.score(x[40:]) / sum(map(len, x[40:]))
    assert np.isclose(fitted.trace_.validation[-1], held_out)


@pytest.mark.parametrize(
    ("final", "message"),
    [
        ([3], "names state 3"),
        ([0, 0, 1], "list of states or one entry"),
        ([0.2, 1.5, 0.0], "between 0 and 1"),
        ([False, False, False], "no state in which"),
        ("last", "final must be 'learned'"),
        ([True, False], "3 values True or False"),
    ],
)
def test_what_final_may_not_be(final, message):
    with pytest.raises(InputError, match=message):
        HMM(3, Gaussian(), Dirichlet(final=final)).fit(np.arange(9.0))


def test_parameters_cannot_have_ends_that_are_to_be_learned():
    with pytest.raises(InputError, match="is for a fit"):
        HMM.from_parameters(INITIAL, TRANSITION, Categorical.from_parameters(TABLE), final="learned")
