"""Block-sparse emissions are categorical emissions with zeros outside the groups, on every algorithm."""

from __future__ import annotations

import warnings
from typing import Any

import emission_laws as laws
import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, BlockSparse, Categorical, Gibbs
from subchain.data import Sequences, Vocabulary, as_sequences
from subchain.data.word_groups import word_groups
from subchain.emissions.block_sparse import BlockDirichlet, Blocks
from subchain.emissions.categorical import DirichletTable
from subchain.emissions.incremental import Incremental
from subchain.engines.cpu.listed import LegalMessages
from subchain.errors import ConvergenceWarning, FileFormatError, InputError

GROUPS = np.array([0, 2, 1, 0, 2, 2, 1])
STATES = 7  # in groups of 3, 2 and 2


def blocks(n_states: int = STATES) -> Blocks:
    return Blocks(GROUPS, np.arange(n_states) * 3 // n_states)


class ZeroTable(DirichletTable):
    """A table that small updates change as any family: those of `DirichletTable` know no structural zeros."""

    def incremental(self, sums: Any) -> Incremental:
        return Incremental(self, sums)


class Zeros(Categorical):
    """A categorical family whose prior has structural zeros outside the groups."""

    name = "zeros"

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> Any:
        table = super().prior(data, n_states, flat=flat)
        return ZeroTable(np.where(blocks(n_states).legal, table.concentration, 0.0))


def data(missing: bool = True, lengths: tuple[int, ...] = (40, 1, 0, 25, 60)) -> Sequences:
    rng = np.random.default_rng(3)
    values = rng.integers(0, len(GROUPS), sum(lengths))
    if missing:
        values[rng.random(len(values)) < 0.1] = -1
    return Sequences(values, np.concatenate(([0], np.cumsum(lengths))))


def both(algorithm: Any, start: HMM, **settings: Any) -> tuple[HMM, HMM]:
    """The model with groups, and the one whose categorical table has the zeros and the legal states as evidence."""
    dense = HMM.from_parameters(start.initial_, start.transition_, start.emission_.dense)
    x = data(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = HMM(STATES, BlockSparse(GROUPS), inference=algorithm, init=start, random_state=0).fit(x)
        theirs = HMM(STATES, Zeros(n_categories=len(GROUPS)), inference=algorithm, init=dense, random_state=0)
        return ours, theirs.fit(x, allowed=blocks().legal)


def start_model(seed: int = 0) -> HMM:
    rng = np.random.default_rng(seed)
    table = np.where(blocks().legal.T, rng.gamma(1.0, size=(STATES, len(GROUPS))), 0.0)
    emission = BlockSparse.from_parameters(table / table.sum(axis=1, keepdims=True), GROUPS)
    return HMM.from_parameters(rng.dirichlet(np.ones(STATES)), rng.dirichlet(np.ones(STATES), STATES), emission)


def dirichlet_table() -> BlockDirichlet:
    rng = np.random.default_rng(0)
    possible = blocks(4).possible
    return BlockDirichlet(np.where(possible, 1.1 + rng.random(possible.shape), 0.0), blocks(4))


def test_every_law_of_families_holds() -> None:
    values = np.array([0, 3, -1, 0, 3, 3])  # of one group: others are impossible in some states, whose logs are −inf
    of_one = BlockDirichlet(np.array([[1.5, 3.0], [2.0, 1.2]]), Blocks(np.array([0, 0]), np.array([0, 0])))
    laws.check_all(of_one, np.minimum(values, 1))


def test_laws_that_hold_with_impossible_symbols() -> None:
    values = np.array([0, 1, 2, -1, 5, 6, 3])
    posterior = laws.updated(dirichlet_table(), values)
    laws.mode_is_the_densest_point(posterior)
    laws.divergence_is_positive_and_zero_from_itself(posterior, dirichlet_table())
    for likelihood in (posterior.mean(), posterior.expected_log(), posterior.predictive()):
        laws.scaled_likelihoods_tell_the_same(likelihood, values)
        laws.sums_add_up_over_blocks(likelihood, values)
    for record in (posterior, posterior.mean(), posterior.mean().zeros()):
        laws.records_survive_the_round_trip(record)
    laws.states_can_be_reordered(posterior, values)


@pytest.mark.parametrize(
    "algorithm",
    [
        EM(max_iter=4, tolerance=0.0),
        VI(max_iter=4, tolerance=0.0),
        VI(max_iter=4, tolerance=0.0, cluster="state"),
        CVI(max_iter=3, tolerance=0.0),
        CVI(max_iter=3, tolerance=0.0, order="batch"),
        CVI(max_iter=3, tolerance=0.0, cluster="subchain", length=10),
        CVI(max_iter=3, tolerance=0.0, cluster="state"),
        SVI(length=None, batch=2, max_updates=4, report_every=1),
        SCVI(length=None, batch=2, max_updates=4, report_every=1),
        EM(length=None, batch=2, max_updates=4, report_every=1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("missing", [False, True])
def test_the_same_as_a_table_with_the_same_zeros(algorithm: Any, missing: bool) -> None:
    ours, theirs = both(algorithm, start_model(), missing=missing)
    np.testing.assert_allclose(ours.transition_, theirs.transition_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ours.emission_.probabilities, theirs.emission_.probabilities, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ours.trace_.objective, theirs.trace_.objective, rtol=1e-9)


def test_the_same_without_telling_the_table_which_states_are_legal() -> None:
    x, start = data(), start_model()
    ours = start
    theirs = HMM.from_parameters(start.initial_, start.transition_, start.emission_.dense)
    assert np.isclose(ours.score(x), theirs.score(x), rtol=1e-12)
    np.testing.assert_array_equal(np.concatenate(ours.predict(x)), np.concatenate(theirs.predict(x)))
    for one, other in zip(ours.predict_proba(x), theirs.predict_proba(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    for kind in ("ordinary", "forecast"):
        for one, other in zip(ours.pseudo_residuals(x, kind), theirs.pseudo_residuals(x, kind), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


def test_passes_run_over_the_states_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = []
    run = LegalMessages.run

    def spied(self: LegalMessages, *arguments: Any, **settings: Any) -> Any:
        found = run(self, *arguments, **settings)
        visited.append(found.alpha.size)
        return found

    monkeypatch.setattr(LegalMessages, "run", spied)
    groups = np.arange(12)
    model = HMM(48, BlockSparse(groups), inference=EM(max_iter=1, tolerance=0.0), random_state=0)
    x = np.tile(groups, 20)
    model.fit(x)
    assert visited
    assert all(size == 4 * len(x) for size in visited)


def test_long_chains_that_cannot_be_cut_run_over_the_lists_where_these_have_few_transitions() -> None:
    groups = np.arange(64) // 2
    rng = np.random.default_rng(0)
    start = HMM(256, BlockSparse(groups), inference=EM(max_iter=1), random_state=0)
    x = rng.integers(0, 64, 2000)
    with pytest.warns(ConvergenceWarning):
        start.fit(x)
    dense = HMM.from_parameters(start.initial_, start.transition_, start.emission_.dense)
    assert np.isclose(start.score(x), dense.score(x), rtol=1e-11)
    np.testing.assert_array_equal(start.predict(x), dense.predict(x))


def test_other_evidence_counts_too() -> None:
    start, x = start_model(), data(missing=False)
    allowed = np.ones((len(GROUPS), STATES), dtype=bool)
    allowed[:, [0, 3, 5]] = False  # the first state of each group
    dense = HMM.from_parameters(start.initial_, start.transition_, start.emission_.dense)
    assert np.isclose(start.score(x, allowed=allowed), dense.score(x, allowed=allowed), rtol=1e-12)
    assert start.score(x, allowed=allowed) < start.score(x)


def test_gibbs_draws_only_states_of_the_group() -> None:
    x = data(missing=False)
    model = HMM(STATES, BlockSparse(GROUPS), inference=Gibbs(n_samples=3, burn_in=2, n_chains=1), random_state=0)
    model.fit(x)
    for sequence, states in zip(x, model.predict(x), strict=True):
        np.testing.assert_array_equal(blocks().states[states], GROUPS[np.asarray(sequence)])


def test_frozen_states_keep_their_parameters() -> None:
    start = start_model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        some = HMM(STATES, BlockSparse(GROUPS, frozen=[1, 4]), inference=VI(max_iter=3), init=start).fit(data())
        every = HMM(STATES, BlockSparse(GROUPS, frozen=True), inference=VI(max_iter=3), init=start).fit(data())
    kept, before = some.emission_.probabilities, start.emission_.probabilities
    np.testing.assert_array_equal(kept[[1, 4]], before[[1, 4]])
    assert not np.allclose(kept[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(every.emission_.probabilities, before)


def test_samples_are_symbols_of_the_states_group() -> None:
    model = start_model()
    drawn = model.sample(4000, random_state=1)
    np.testing.assert_array_equal(blocks().states[drawn.states], GROUPS[drawn.observations])
    counts = np.zeros((STATES, len(GROUPS)))
    np.add.at(counts, (drawn.states, drawn.observations), 1.0)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), model.emission_.probabilities, atol=0.06)


def test_reordered_states_keep_their_groups(tmp_path: Any) -> None:
    model, x = start_model(), data()
    before = model.score(x)
    model.order_states(by="dwell")
    assert np.isclose(model.score(x), before, rtol=1e-12)
    model.save(tmp_path / "model.safetensors")
    loaded = HMM.load(tmp_path / "model.safetensors")
    assert loaded.score(x) == model.score(x)
    np.testing.assert_array_equal(loaded.emission_.blocks.states, model.emission_.blocks.states)


def test_groups_of_words_are_read_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "groups.txt"
    path.write_text("the\t10\na\t10\ndog\t2\nruns\tverb\n")
    x = as_sequences([["the", "dog"], ["a", "dog"]])
    model = HMM(4, BlockSparse(str(path)), random_state=0).fit(x)
    words = x.vocabulary.to_list()
    emitted = model.emission_.probabilities > 0.0
    np.testing.assert_array_equal(emitted[:2, words.index("dog")], True)  # group 2 comes before group 10
    np.testing.assert_array_equal(emitted[2:, words.index("dog")], False)


@pytest.mark.parametrize(
    ("groups", "n_states", "says"),
    [
        (None, 2, "needs groups="),
        ([0, -1, 1], 2, "word 1 has no group"),
        ([0, 2, 2], 3, "group 1 has no word"),
        ([0, 5, 1], 6, "there cannot be more groups than words"),
        ([0, 1, 2], 2, "n_states=2 is less than the 3 groups"),
        ([0.5, 1.0], 2, "whole number for each word"),
        ([0, 1], 2, "has no group: groups has 2 entries"),
    ],
)
def test_groups_that_cannot_be_used(groups: Any, n_states: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        HMM(n_states, BlockSparse(groups)).fit(np.array([0, 1, 2, 0, 1]))


def test_unknown_words_join_the_largest_group(tmp_path: Any) -> None:
    path = tmp_path / "groups.txt"
    path.write_text("the 0\ndog 1\ncat 1\n")
    vocabulary = Vocabulary(["the", "dog", "cat", "<unk>"], unknown="<unk>")
    np.testing.assert_array_equal(word_groups(path, vocabulary), [0, 1, 1, 1])


def test_a_word_without_a_group_is_named(tmp_path: Any) -> None:
    path = tmp_path / "groups.txt"
    path.write_text("the 0\n")
    with pytest.raises(InputError, match="1 of 2 words have no group in .* such as 'dog'"):
        HMM(2, BlockSparse(path)).fit([["the", "dog"]])
    path.write_text("the 0\nthe 1\n")
    with pytest.raises(FileFormatError, match="line 2 of .* gives 'the' a second class"):
        HMM(2, BlockSparse(path)).fit([["the", "dog"]])
    path.write_text("the 0 1\n")
    with pytest.raises(FileFormatError, match="line 1 of .* is 'the 0 1'; a line of word classes"):
        HMM(2, BlockSparse(path)).fit([["the", "dog"]])
    with pytest.raises(InputError, match="the data have no vocabulary"):
        HMM(2, BlockSparse(path)).fit(np.array([0, 1]))
    with pytest.raises(InputError, match="groups has 1 entries, but the vocabulary has 2 words"):
        HMM(2, BlockSparse([0])).fit(Sequences(np.array([0, 1]), vocabulary=Vocabulary(["a", "b"])))


def test_the_number_of_states_cannot_be_learned() -> None:
    with pytest.raises(InputError, match="gives each state its group"):
        HMM(STATES, BlockSparse(GROUPS), transition=HDP()).fit(data())


def test_a_code_without_a_group_is_named() -> None:
    with pytest.raises(InputError, match=r"the symbol 5 at sequence 0, position 2 has no group: groups has 4 entries"):
        HMM(4, BlockSparse([0, 0, 1, 1])).fit([[0, 1, 5]])
    with pytest.raises(InputError, match="below −1"):
        HMM(4, BlockSparse([0, 0, 1, 1])).fit([[0, 1, -2]])


def test_a_start_with_other_groups_is_refused() -> None:
    x = np.array([0, 2, 1, 3] * 10)
    start = HMM(4, BlockSparse([0, 0, 1, 1]), inference=EM(max_iter=2, tolerance=0.0), random_state=0).fit(x)
    HMM(4, BlockSparse([0, 0, 1, 1]), inference=EM(max_iter=2, tolerance=0.0), init=start).fit(x)
    for groups, says in (
        ([0, 1, 0, 1], "symbol 1 is in group 0 there and in group 1 here"),
        ([0, 0, 1, 1, 1], "init knows 4 symbols, but groups has 5 entries"),
    ):
        with pytest.raises(InputError, match=says):
            HMM(4, BlockSparse(groups), inference="em", init=start).fit(x)
    with pytest.raises(InputError, match="divides the states among the groups in another way"):
        HMM(4, BlockSparse([0, 0, 1, 1]), inference="em", init=start.order_states(lambda m: [2, 0, 3, 1])).fit(x)


def test_files_of_groups_that_are_not_there_or_no_text(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="does not exist"):
        word_groups(tmp_path / "groups.txt", Vocabulary(["a"]))
    with pytest.raises(InputError, match="is a folder"):
        word_groups(tmp_path, Vocabulary(["a"]))
    (tmp_path / "groups.txt").write_bytes(b"a 0\nb\xff 1\n")
    with pytest.raises(FileFormatError, match="line 2 .* is not UTF-8"):
        word_groups(tmp_path / "groups.txt", Vocabulary(["a"]))


def test_probabilities_outside_a_states_group_are_refused() -> None:
    with pytest.raises(InputError, match=r"state 0 emits symbol 1 with probability 0\.5"):
        BlockSparse.from_parameters([[0.5, 0.5], [0.0, 1.0]], [0, 1])
