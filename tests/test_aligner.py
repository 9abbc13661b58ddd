"""Word alignment: both models against enumeration, every algorithm, exact exclusion, resuming, files, new text."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from naive_alignment import distance_of, enumerate_alignments, enumerate_diagonal, expected_jumps, expected_weights

from subchain import CVI, EM, SCVI, VI, Gibbs
from subchain.alignment import ParallelText, WordAligner
from subchain.core.files import read_arrays, write_arrays
from subchain.errors import FileFormatError, InputError, NotFittedError
from subchain.propagation.alignment.pair import Model, Shares
from subchain.structures.alignment.ledger import AlignmentLedger, WordLedger
from subchain.structures.alignment.model import AlignmentPoint, AlignmentPosterior
from subchain.structures.alignment.structure import Alignments
from subchain.structures.alignment.text import AlignedText
from subchain.tables import JumpSums, JumpWeights, JumpWidths, TranslationSums, TranslationTable, TranslationWeights

SOURCE = ["a b c", "b a", "c c a b", "", "d", "a d b"]
TARGET = ["x y", "y z x", "x x z y", "y", "", "z w x"]
MAX_JUMP = 2
MODELS = ("ibm1", "diagonal", "hmm", "end jumps")


def generated(n_pairs: int, seed: int = 0, n_words: int = 30) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences, and word by word translations of them, with neighbours exchanged now and then."""
    rng, source, target = np.random.default_rng(seed), [], []
    for _ in range(n_pairs):
        words = rng.integers(n_words, size=rng.integers(1, 9))
        order = np.arange(len(words))
        for at in range(len(words) - 1):
            if rng.random() < 0.2:
                order[[at, at + 1]] = order[[at + 1, at]]
        source.append([f"s{word}" for word in words])
        target.append([f"t{words[at]}" for at in order])
    return source, target


def structure_of(model: str = "hmm", *, agrees: bool = False) -> tuple[Alignments, AlignmentPosterior]:
    data = AlignedText.of(ParallelText.from_sentences(SOURCE, TARGET))
    is_chain, has_ends = model in ("hmm", "end jumps"), model == "end jumps"
    structure = Alignments(data, Model(is_chain, 0.3, agrees, has_ends, model == "diagonal"))
    return structure, AlignmentPosterior(data.prior(0.4), jumps_of(model))


def jumps_of(model: str) -> JumpWidths:
    return JumpWidths.distances() if model == "diagonal" else JumpWidths.prior(MAX_JUMP, model == "end jumps")


def n_buckets_of(model: str) -> int:
    return jumps_of(model).counts.shape[1]


def random_point(structure: Alignments, seed: int = 0) -> AlignmentPoint:
    rng = np.random.default_rng(seed)
    model = structure.model
    counts, _ = structure.tables(
        n_buckets_of("end jumps" if model.has_ends else "diagonal" if model.is_diagonal else "hmm")
    )
    tables = [rng.random(array.shape) for array in counts]
    return AlignmentPoint(TranslationWeights(*tables[:3]), JumpWeights(tables[3]))


def naive(structure: Alignments, point: AlignmentPoint, pair: int) -> list[tuple[float, Any, Any]]:
    """Both directions of one sentence pair by enumeration."""
    cells, table, model = structure.data.cells, point.translation, structure.model
    source = cells.source[cells.source_starts[pair] : cells.source_starts[pair + 1]]
    target = cells.target[cells.target_starts[pair] : cells.target_starts[pair + 1]]
    entries = cells.entries[cells.starts[pair] : cells.starts[pair + 1]].reshape(len(target), len(source))
    jumps = point.jumps.weights if model.is_chain else [None, None]
    if model.is_diagonal:
        given = table.pairs[entries, 0], table.null_target[target], point.jumps.weights[0]
        other = table.pairs[entries.T, 1], table.null_source[source], point.jumps.weights[1]
        return [enumerate_diagonal(*side, model.null_probability) for side in (given, other)]
    how = model.null_probability, model.has_ends
    forward = enumerate_alignments(table.pairs[entries, 0], table.null_target[target], jumps[0], *how)
    weights, null = table.pairs[entries.T, 1], table.null_source[source]
    return [forward, enumerate_alignments(weights, null, jumps[1], *how)]


@pytest.mark.parametrize("model", MODELS)
def test_posteriors_likelihood_and_jumps_equal_sums_over_all_alignments(model: str) -> None:
    structure, _ = structure_of(model)
    point, pairs = random_point(structure), np.arange(6)
    shares = Shares(np.zeros((structure.data.n_cells, 2)), np.zeros((6, 2, n_buckets_of(model))))
    _, logs = structure.posteriors(point, pairs, shares)
    for pair in (0, 1, 2, 5):
        (one, links, jumps), (other, reverse, reverse_jumps) = naive(structure, point, pair)
        first, last = structure.data.cells.starts[pair : pair + 2]
        found = shares.links[first:last].reshape(*links.shape, 2)
        assert logs[pair] == pytest.approx(one + other, rel=1e-12)
        np.testing.assert_allclose(found[..., 0], links, rtol=1e-10)
        np.testing.assert_allclose(found[..., 1], reverse.T, rtol=1e-10)
        if model != "ibm1":
            np.testing.assert_allclose(shares.jumps[pair], [jumps, reverse_jumps], rtol=1e-10, atol=1e-12)
    assert (logs[[3, 4]] == 0.0).all()


@pytest.mark.parametrize("agrees", [False, True])
def test_statistics_are_the_posteriors_of_all_cells_by_word_pair(agrees: bool) -> None:
    structure, _ = structure_of(agrees=agrees)
    point = random_point(structure)
    found, cells = structure.statistics(point), structure.data.cells
    counts, nulls = np.zeros_like(point.translation.pairs), np.zeros_like(point.translation.null_target)
    for pair in (0, 1, 2, 5):
        (_, links, _), (_, reverse, _) = naive(structure, point, pair)
        share = links * reverse.T if agrees else links
        np.add.at(counts[:, 0], cells.entries[cells.starts[pair] : cells.starts[pair + 1]], share.ravel())
        target = cells.target[cells.target_starts[pair] : cells.target_starts[pair + 1]]
        np.add.at(nulls, target, 1.0 - links.sum(axis=1))
    np.testing.assert_allclose(found.translation.pairs[:, 0], counts[:, 0], atol=1e-12)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found.translation.null_target, nulls, atol=1e-12)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", MODELS)
def test_draws_have_the_frequencies_of_the_posterior(model: str) -> None:
    structure, _ = structure_of(model)
    point, pair = random_point(structure), np.array([0])
    rng, n = np.random.default_rng(1), 4000
    drawn = np.array([structure.draw(point, pair, rng)[0] for _ in range(n)])
    (_, links, _), (_, reverse, _) = naive(structure, point, 0)
    found = np.array([[(drawn[:, j] == i).mean() for i in range(3)] for j in range(2)])
    backward = np.array([[(drawn[:, 2 + i] == j).mean() for j in range(2)] for i in range(3)])
    np.testing.assert_allclose(found, links, atol=0.04)
    np.testing.assert_allclose(backward, reverse, atol=0.04)


def test_collapsed_draws_put_whole_links_into_the_counts() -> None:
    structure, prior = structure_of()
    walkers = structure.walkers(Gibbs("sequence", "collapsed"), prior, 3)
    walker = walkers.walker(0, walkers.start(1, prior.mean(), {})[0])
    walker.begin(prior.mean())
    walker.sweeps(0, np.ones(4))
    found: Any = walker.statistics()
    np.testing.assert_allclose(found.translation.pairs, np.round(found.translation.pairs), atol=1e-12)
    n_linked = (walker.hidden >= 0).sum()
    assert found.translation.pairs.sum() == found.jumps.counts.sum() == n_linked


@pytest.mark.parametrize(("stage", "end_jumps"), [("ibm1", False), ("diagonal", False), ("hmm", False), ("hmm", True)])
def test_the_likelihood_of_em_never_falls(stage: str, end_jumps: bool) -> None:
    source, target = generated(60)
    settings: dict[str, Any] = {"agreement": False, "end_jumps": end_jumps, "iterations": 40, "progress": False}
    aligner = WordAligner((stage,), EM(), **settings).fit(source, target)
    objective = np.array(aligner.trace_.objective)
    assert (np.diff(objective) >= -1e-9 * np.abs(objective[-1])).all()
    assert aligner.score(source, target) >= objective[-1] - 1e-6 * abs(objective[-1])


@pytest.mark.parametrize("agrees", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", [AlignmentLedger, WordLedger])
def test_counts_after_a_pass_are_the_sum_of_the_stored_posteriors(
    model: str, agrees: bool, kind: type[AlignmentLedger]
) -> None:
    structure, prior = structure_of(model, agrees=agrees)
    ledger = kind(structure, prior)
    ledger.begin(structure.nothing(n_buckets_of(model)))
    for _ in range(3):
        ledger.visit(np.arange(6), excludes=True, puts_back=True)
    counts, totals = ledger.table, ledger.totals
    links, cells = ledger.posteriors.links.astype(float), structure.data.cells
    share = links[:, :1] * links[:, 1:] if agrees else links
    expected = np.zeros_like(counts.pairs)
    np.add.at(expected, cells.entries, share)
    np.testing.assert_allclose(counts.pairs, expected, atol=1e-13)
    np.testing.assert_allclose(counts.jumps, ledger.posteriors.jumps.sum(axis=0), atol=1e-6)
    table = TranslationTable.prior(structure.data.rows, structure.data.targets, len(counts.null_target), 0.4)
    after = table.update(TranslationSums(*counts[:3]))
    np.testing.assert_allclose(totals.source, after.totals_source, atol=1e-12)
    np.testing.assert_allclose(totals.target, after.totals_target, atol=1e-12)
    n_target = sum(len(target.split()) for target, source in zip(TARGET, SOURCE, strict=True) if source and target)
    if not agrees:
        assert totals.source.sum() == pytest.approx(n_target)


def test_a_visit_takes_the_sentence_pair_out_first() -> None:
    structure, prior = structure_of()
    ledger = AlignmentLedger(structure, prior)
    ledger.begin(structure.nothing(2 * MAX_JUMP + 1))
    others = np.array([1, 2, 5])
    without = Shares(ledger.posteriors.links.copy(), ledger.posteriors.jumps.copy())
    ledger.visit(np.array([0]), excludes=True, puts_back=True)
    visited = ledger.posteriors.links[: structure.data.cells.starts[1]].copy()
    alone = AlignmentLedger(structure, prior)
    alone.shares = without._asdict()
    alone.posteriors.links[: structure.data.cells.starts[1]] = 0.0
    alone.add_up()
    sums = TranslationSums(alone.table.pairs, alone.table.null_target, alone.table.null_source)
    sums.null_target[structure.data.cells.target[:2]] -= 1.0  # zero links are NULL links, which are taken out too
    sums.null_source[structure.data.cells.source[:3]] -= 1.0
    jumps = JumpSums(without.jumps[others].sum(axis=0).astype(float), np.zeros((2, 2 * MAX_JUMP + 1)))
    point = AlignmentPosterior(prior.translation.update(sums), prior.jumps.update(jumps)).mean()
    (_, links, _), (_, reverse, _) = naive(structure, point, 0)  # type: ignore[arg-type]
    np.testing.assert_allclose(visited.reshape(2, 3, 2)[..., 0], links, rtol=1e-5)
    np.testing.assert_allclose(visited.reshape(2, 3, 2)[..., 1], reverse.T, rtol=1e-5)


def naive_diagonal(q: Any, word: int, weights: Any, null: float, distances: Any) -> Any:
    """Return the distribution of one word in the diagonal model; `distances` are those of other sentences."""
    n_words, n_positions = q.shape
    for number, i in itertools.product(range(n_words), range(n_positions)):
        if number != word:
            distances[distance_of(number, i, n_words, n_positions)] += q[number, i]
    of = distances[[distance_of(word, i, n_words, n_positions) for i in range(n_positions)]]
    found = np.append(0.7 * weights * of / of.sum(), 0.3 * null)
    return found / found.sum()


def visited_words(
    structure: Alignments, links: Any, jumps: Any, pair: int, concentration: float, of_jumps: float
) -> None:
    """Visit the words of a sentence pair: all counts are summed anew for each word, from `links` (cells, 2)."""
    cells, model = structure.data.cells, structure.model
    sources = np.repeat(np.arange(len(structure.data.rows) - 1), np.diff(structure.data.rows))
    shapes = len(structure.data.text.source_words), len(structure.data.text.target_words)

    def places(pair: int, direction: int) -> tuple[Any, Any]:
        source = cells.source[cells.source_starts[pair] : cells.source_starts[pair + 1]]
        target = cells.target[cells.target_starts[pair] : cells.target_starts[pair + 1]]
        table = np.arange(cells.starts[pair], cells.starts[pair + 1]).reshape(len(target), len(source))
        return (table, target) if direction == 0 else (table.T, source)

    for direction in range(2):
        table, words = places(pair, direction)
        for word in range(len(words)):
            own = table[word]
            counts, nulls = np.zeros(shapes), np.zeros(shapes[1 - direction])
            share = links.prod(axis=1) if model.agrees else links[:, direction]
            kept = np.ones(len(links), dtype=bool)
            kept[own] = False
            entries = cells.entries[kept]
            np.add.at(counts, (sources[entries], structure.data.targets[entries]), share[kept])
            for other in (0, 1, 2, 5):
                of_other, its_words = places(other, direction)
                for number, code in enumerate(its_words):
                    if (other, number) != (pair, word):
                        nulls[code] += 1.0 - links[of_other[number], direction].sum()
            rows = counts if direction == 0 else counts.T
            predictive = (rows + concentration) / (rows.sum(axis=1, keepdims=True) + rows.shape[1] * concentration)
            null = (nulls[words[word]] + concentration) / (nulls.sum() + len(nulls) * concentration)
            weights = predictive[places(pair, 1 - direction)[1], words[word]]
            if model.is_diagonal:
                widths = sum(jumps[other, direction] for other in (0, 1, 2, 5) if other != pair) + of_jumps
                new = naive_diagonal(links[table, direction], word, weights, null, widths)
            elif model.is_chain:
                q = links[table, direction]
                widths = sum(jumps[other, direction] for other in (0, 1, 2, 5) if other != pair) + of_jumps
                widths = widths + expected_jumps(q, jumps.shape[2], model.has_ends, without=word)
                new = expected_weights(q, word, weights, null, widths, model.null_probability, model.has_ends)
            else:
                new = np.append(weights, null) / (weights.sum() + null)
            links[own, direction] = new[:-1].astype(np.float32)


@pytest.mark.parametrize("agrees", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_visits_of_words_are_those_by_enumeration(model: str, agrees: bool) -> None:
    structure, prior = structure_of(model, agrees=agrees)
    ledger = WordLedger(structure, prior)
    ledger.begin(structure.nothing(n_buckets_of(model)))
    ledger.visit(np.arange(6), excludes=True, puts_back=True)
    ledger.posteriors.links[:] *= np.random.default_rng(0).random(ledger.posteriors.links.shape)  # any q will do
    ledger.add_up()
    links, jumps = ledger.posteriors.links.astype(float), ledger.posteriors.jumps.astype(float)
    for pair in (1, 0, 5):
        ledger.visit(np.array([pair]), excludes=True, puts_back=True)
        visited_words(structure, links, jumps, pair, 0.4, 1.0)
        np.testing.assert_allclose(ledger.posteriors.links, links, rtol=2e-6)
        if structure.model.is_chain:
            for direction in range(2):
                table = np.arange(*structure.data.cells.starts[pair : pair + 2])
                n_source = np.diff(structure.data.cells.source_starts)[pair]
                q = links[table.reshape(-1, n_source), direction]
                found = expected_jumps(q if direction == 0 else q.T, jumps.shape[2], structure.model.has_ends)
                np.testing.assert_allclose(ledger.posteriors.jumps[pair, direction], found, rtol=1e-5, atol=1e-7)
        jumps[pair] = ledger.posteriors.jumps[pair]


def test_words_may_be_visited_without_exclusion_or_under_the_same_counts() -> None:
    structure, prior = structure_of("end jumps")
    for excludes, puts_back in ((False, True), (True, False), (False, False)):
        ledger = WordLedger(structure, prior)
        ledger.begin(structure.nothing(n_buckets_of("end jumps")))
        before = [array.copy() for array in ledger.table]
        ledger.visit(np.arange(6), excludes=excludes, puts_back=puts_back)
        ledger.visit(np.arange(6), excludes=excludes, puts_back=puts_back)
        if not puts_back:
            for array, was in zip(ledger.table, before, strict=True):
                np.testing.assert_allclose(array, was, atol=1e-12)
            ledger.add_up()
        kept, now = ledger.statistics, ledger.posteriors.links.copy()
        ledger.add_up()
        for name in ("translation", "jumps"):
            assert kept.part(name).is_close(ledger.statistics.part(name), 1e-6)
        ledger.visit(np.array([0]), excludes=excludes, puts_back=puts_back)
        assert np.abs(ledger.posteriors.links - now).max() > 1e-4


ALGORITHMS = {
    "em": EM(),
    "vi": VI(),
    "cvi": CVI(),
    "cvi by word": CVI(cluster="state"),
    "batch cvi by word": CVI(cluster="state", order="batch"),
    "shuffled cvi": CVI(order="shuffled"),
    "batch cvi": CVI(order="batch"),
    "scvi": SCVI(batch=20, max_passes=5.0),
    "gibbs": Gibbs(n_samples=10, burn_in=10, n_chains=2),
    "gibbs with drawn parameters": Gibbs(parameters="sampled", n_samples=10, burn_in=10, n_chains=2),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_finds_word_by_word_translations(name: str) -> None:
    source, target = generated(150)
    aligner = WordAligner(inference=ALGORITHMS[name], progress=False, random_state=0).fit(source, target)
    right = total = 0
    for links, one, other in zip(aligner.align(), source, target, strict=True):
        right += sum(one[i][1:] == other[j][1:] for i, j in links.tolist())
        total += max(len(links), len(one))
    assert right / total > 0.9
    best = aligner.lexicon_[:30]
    assert sum(one[1:] == other[1:] for one, other in zip(best["source"], best["target"], strict=True)) >= 28


@pytest.mark.parametrize("name", ["em", "cvi", "cvi by word", "shuffled cvi", "scvi", "gibbs"])
def test_an_interrupted_fit_resumes_in_the_same_bits(name: str, tmp_path: Any) -> None:
    source, target = generated(60)
    long: dict[str, Any] = {"inference": ALGORITHMS[name]}
    short = long
    if name == "gibbs":
        short = {"inference": Gibbs(n_samples=4, burn_in=10, n_chains=2)}
    elif name != "scvi":
        short, long = long | {"iterations": 2}, long | {"iterations": 5}
    settings: dict[str, Any] = {"progress": False, "random_state": 3}
    whole = WordAligner(**settings, **long).fit(source, target)
    stage = ("ibm1",)
    WordAligner(stage, **settings, **short).fit(source, target, checkpoint=tmp_path / "c")
    resumed = WordAligner(**settings, **long).fit(source, target, checkpoint=tmp_path / "c", resume=True)
    for key, array in whole.posterior_.arrays().items():
        np.testing.assert_array_equal(resumed.posterior_.arrays()[key], array, err_msg=key)
    np.testing.assert_array_equal(resumed.links().source, whole.links().source)


@pytest.mark.parametrize("name", ["em", "vi", "cvi", "scvi"])
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    source, target = generated(100)
    one, three = (
        WordAligner(inference=ALGORITHMS[name], progress=False, random_state=0, n_jobs=n).fit(source, target)
        for n in (1, 3)
    )
    for key, array in one.posterior_.arrays().items():
        np.testing.assert_array_equal(three.posterior_.arrays()[key], array)
    for first, second in zip(one.posterior(), three.posterior(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["em", "cvi"])
def test_exchanging_source_and_target_transposes_everything(name: str) -> None:
    source, target = generated(40)
    there, back = (
        WordAligner(inference=ALGORITHMS[name], progress=False).fit(*sides)
        for sides in ((source, target), (target, source))
    )
    for one, other in zip(there.posterior(), back.posterior(), strict=True):
        np.testing.assert_allclose(one, other.T, atol=1e-4)
    forward, backward = there.posterior(direction="forward"), back.posterior(direction="backward")
    for one, other in zip(forward, backward, strict=True):
        np.testing.assert_allclose(one, other.T, atol=1e-4)


def test_new_text_is_aligned_without_refitting_and_files_keep_everything(tmp_path: Any) -> None:
    source, target = generated(150)
    aligner = WordAligner(progress=False).fit(source, target)
    aligner.save(tmp_path / "aligner.safetensors")
    loaded = WordAligner.load(tmp_path / "aligner.safetensors")
    new = [["s3", "unseen", "s7"], [], ["s1"]], [["t3", "t7"], ["t1"], ["t1"]]
    for found in (aligner, loaded):
        assert [links.tolist() for links in found.align(*new)] == [[[0, 0], [2, 1]], [], [[0, 0]]]
        assert [table.shape for table in found.posterior(*new)] == [(3, 2), (0, 1), (1, 1)]
    assert loaded.score(*new) == aligner.score(*new)
    assert loaded.lexicon_.tolist() == aligner.lexicon_.tolist()
    with pytest.raises(InputError, match="training text"):
        loaded.align()


def test_files_of_the_first_version_load(tmp_path: Any) -> None:
    source, target = generated(40)
    aligner = WordAligner(end_jumps=False, null_probability=0.2, progress=False).fit(source, target)
    aligner.save(tmp_path / "new")
    arrays, header = read_arrays(tmp_path / "new", "word aligner")
    del (
        header["stage"],
        header["settings"]["end_jumps"],
        header["settings"]["prefix"],
        header["settings"]["rare"],
        header["read_with"],
    )
    write_arrays(tmp_path / "old", arrays, header | {"version": 1, "is_chain": True})
    old = WordAligner.load(tmp_path / "old")
    assert (old.stage_, old.end_jumps) == ("hmm", False)
    assert old.score(source, target) == aligner.score(source, target)
    assert old.links(source, target).source.tolist() == aligner.links(source, target).source.tolist()
    header["settings"]["max_jump"] = 7
    write_arrays(tmp_path / "odd", arrays, header | {"stage": "hmm"})
    with pytest.raises(FileFormatError, match="jumps"):
        WordAligner.load(tmp_path / "odd")


@pytest.mark.parametrize("name", ["em", "vi", "cvi", "cvi by word", "scvi", "gibbs"])
def test_the_diagonal_model_aligns_by_itself_and_before_the_hidden_markov_model(name: str, tmp_path: Any) -> None:
    source, target = generated(150)
    for stages in (("diagonal",), ("diagonal", "hmm"), ("ibm1", "diagonal")):
        aligner = WordAligner(stages, ALGORITHMS[name], progress=False, random_state=0).fit(source, target)
        right = total = 0
        for links, one, other in zip(aligner.align(), source, target, strict=True):
            right += sum(one[i][1:] == other[j][1:] for i, j in links.tolist())
            total += max(len(links), len(one))
        assert right / total > 0.9
        aligner.save(tmp_path / "aligner")
        assert WordAligner.load(tmp_path / "aligner").score(source, target) == aligner.score(source, target)
    near = aligner.posterior_.jumps.mean().weights
    assert (near[:, :10].sum(axis=1) > 0.8).all()


def test_a_prior_of_another_kind_gives_its_words_alone() -> None:
    source, target = generated(150)
    known = WordAligner(("diagonal",), progress=False).fit(source, target)
    few = [["s4", "s7", "new"]], [["t7", "t4", "new"]]
    carried = WordAligner(progress=False).fit(*few, prior=known)
    assert carried.posterior_.jumps.counts.sum() < 10.0
    assert carried.posterior_.translation.totals_source.sum() > known.posterior_.translation.totals_source.sum()
    with pytest.raises(InputError, match="give both the same"):
        WordAligner(end_jumps=False, progress=False).fit(*few, prior=known)


def test_counts_of_a_fitted_aligner_are_the_prior_of_another() -> None:
    source, target = generated(150)
    known = WordAligner(progress=False).fit(source, target)
    few = [["s4", "s7", "new"], ["s9"]], [["t7", "t4", "new"], ["t9"]]
    carried = WordAligner(progress=False).fit(*few, prior=known)
    assert {(0, 1), (1, 0)} <= {tuple(link) for link in carried.align()[0].tolist()}
    assert carried.posterior_.translation.totals_source.sum() > known.posterior_.translation.totals_source.sum()
    assert len(carried.source_words_) == len(known.source_words_) + 1


def test_a_single_sentence_pair_is_aligned_by_the_prior() -> None:
    known = WordAligner(progress=False).fit(*generated(150))
    alone = WordAligner(progress=False).fit([["s4", "s5"]], [["t4", "t5"]], prior=known)
    assert alone.align()[0].tolist() == [[0, 0], [1, 1]]
    for table in WordAligner(progress=False).fit([["a", "b"]], [["x"]]).posterior(direction="backward"):
        np.testing.assert_allclose(table, table[0, 0] * np.ones((2, 1)), rtol=1e-6)


def test_kl_and_evidence_of_the_sparse_table_are_those_of_dense_rows() -> None:
    from scipy.special import digamma, gammaln

    structure, prior = structure_of("ibm1")
    sums: Any = structure.statistics(random_point(structure)).part("translation")
    table, after = prior.translation, prior.translation.update(sums)
    divergence = evidence = 0.0
    for direction, (n_rows, n_words) in enumerate(((4, 4), (4, 4))):
        counts = np.zeros((n_rows + 1, n_words))
        rows, columns = table.sources(), table.targets
        counts[(rows, columns) if direction == 0 else (columns, rows)] = sums.pairs[:, direction]
        counts[-1] = sums.null_target if direction == 0 else sums.null_source
        own, given = counts + 0.4, np.full_like(counts, 0.4)
        total, before = own.sum(axis=1), given.sum(axis=1)
        evidence += (gammaln(before) - gammaln(total)).sum() + (gammaln(own) - gammaln(given)).sum()
        slope = ((own - given) * (digamma(own) - digamma(total)[:, None])).sum()
        divergence += (gammaln(total) - gammaln(before)).sum() - (gammaln(own) - gammaln(given)).sum() + slope
        mean = own / total[:, None]
        found = after.mean().pairs[:, direction]
        np.testing.assert_allclose(found, mean[(rows, columns) if direction == 0 else (columns, rows)], rtol=1e-12)
    assert after.kl(table) == pytest.approx(divergence, rel=1e-10)
    assert table.log_evidence(sums) == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("kind", [CVI, EM, VI])
def test_iterations_of_an_algorithm_are_those_it_was_given(kind: Any) -> None:
    def lengths(algorithm: Any, iterations: Any = None) -> list[int]:
        aligner = WordAligner(inference=algorithm, iterations=iterations, progress=False).fit(*generated(20))
        return [len(trace.objective) for trace in aligner.traces_]

    assert lengths(kind(max_iter=4)) == [4, 4]
    assert lengths(kind(max_iter=4), (1, 2)) == [1, 2]
    assert lengths(kind()) == lengths(kind.__name__.lower())
    if kind is not CVI:  # which has no objective to stop by
        assert sum(lengths(kind(max_iter=90, tolerance=1e-2))) < 100


def test_bad_input_is_refused() -> None:
    source, target = generated(5)
    refused: list[tuple[str, WordAligner, Any, Any]] = [
        ("stage", WordAligner(("ibm7",)), source, target),
        ("symmetris", WordAligner(symmetrize="grow"), source, target),
        ("threshold", WordAligner(threshold=1.5), source, target),
        ("concentration", WordAligner(concentration=0.0), source, target),
        ("max_jump", WordAligner(max_jump=0), source, target),
        ("does not align", WordAligner(inference="beam"), source, target),
        ("iterations", WordAligner(iterations=[1]), source, target),
        ("cluster", WordAligner(inference=CVI(cluster="subchain", length=2)), source, target),
        ("neighbour", WordAligner(inference=CVI(cluster="state", corrections=False)), source, target),
        ("5 sentences", WordAligner(), source, target[:4]),
        ("no sentence pair", WordAligner(), [[]], [["a"]]),
        ("there is no target", WordAligner(), source, None),
        ("threshold", WordAligner(threshold="0.4"), source, target),  # type: ignore[arg-type]
        ("threshold", WordAligner(threshold=float("nan")), source, target),
        ("null_probability", WordAligner(null_probability="a fifth"), source, target),  # type: ignore[arg-type]
        ("stages", WordAligner(5), source, target),  # type: ignore[arg-type]
        ("stage", WordAligner([1]), source, target),  # type: ignore[list-item]
        ("iterations", WordAligner(iterations=2.0), source, target),  # type: ignore[arg-type]
        ("iterations", WordAligner(iterations="33"), source, target),
        ("iterations", WordAligner(iterations=(2, 0)), source, target),
        ("n_jobs", WordAligner(n_jobs="a"), source, target),  # type: ignore[arg-type]
        ("end_jumps", WordAligner(end_jumps="no"), source, target),  # type: ignore[arg-type]
        ("agreement", WordAligner(agreement=None), source, target),  # type: ignore[arg-type]
        ("max_jump", WordAligner(max_jump=True), source, target),
        ("symmetris", WordAligner(symmetrize=["a"]), source, target),  # type: ignore[arg-type]
        ("inference", WordAligner(inference=5), source, target),  # type: ignore[arg-type]
    ]
    for message, aligner, one, other in refused:
        with pytest.raises(InputError, match=message):
            aligner.set_params(progress=False).fit(one, other)
    with pytest.raises(NotFittedError):
        WordAligner().align(source, target)
    with pytest.raises(InputError, match="prior must be"):
        WordAligner(progress=False).fit(source, target, prior=5)  # type: ignore[arg-type]
    fitted = WordAligner(progress=False).fit(source, target)
    with pytest.raises(InputError, match="no source"):
        fitted.align(None, target)
    with pytest.raises(InputError, match="threshold"):
        fitted.set_params(threshold="x").align()


def test_a_sentence_of_ten_thousand_words_is_left_out_with_a_warning() -> None:
    source, target = generated(20)
    with pytest.warns(UserWarning, match="pair 20 has a sentence of more than 1,000 words and no links; split it"):
        aligner = WordAligner(progress=False).fit([*source, ["a"] * 10_000], [*target, ["b"] * 3])
    assert aligner.align()[20].shape == (0, 2)
    with pytest.warns(UserWarning, match="2 sentence pairs have .* the first of them pair 1; split them"):
        assert aligner.align([["s1"], *[["a"] * 1001] * 2], [["t1"], ["b"], ["b"]])[1].shape == (0, 2)


@pytest.mark.parametrize("inference", ["cvi", "gibbs", "em"])
def test_the_training_text_has_a_score_too(inference: str) -> None:
    source, target = generated(30)
    aligner = WordAligner(inference=inference, progress=False, random_state=0).fit(source, target)
    assert aligner.score() == pytest.approx(aligner.score(source, target), rel=1e-6)


@pytest.mark.parametrize(
    "settings", [{"end_jumps": False}, {"null_probability": 0.9}, {"max_jump": 3}, {"agreement": False}]
)
def test_settings_that_change_later_do_not_change_what_was_fitted(settings: dict[str, Any], tmp_path: Any) -> None:
    source, target = generated(40)
    aligner = WordAligner(inference="em", progress=False).fit(source, target)
    score = aligner.score(source, target)
    aligner.set_params(**settings)
    aligner.save(tmp_path / "aligner")
    loaded = WordAligner.load(tmp_path / "aligner")
    assert score == aligner.score(source, target) == loaded.score(source, target)
    assert loaded.get_params(deep=False)[next(iter(settings))] == next(iter(settings.values()))
    WordAligner(progress=False).fit(source, target, prior=loaded)


def test_a_damaged_file_is_refused(tmp_path: Any) -> None:
    source, target = generated(20)
    aligner = WordAligner(progress=False).fit(source, target)
    aligner.posterior_ = dataclasses.replace(
        aligner.posterior_, translation=dataclasses.replace(aligner.posterior_.translation, concentration=-1.0)
    )
    aligner.save(tmp_path / "bad")
    with pytest.raises(FileFormatError, match="concentration"):
        WordAligner.load(tmp_path / "bad")


def test_the_default_probability_of_null_depends_on_whether_the_directions_have_to_agree() -> None:
    apart = {"agreement": False, "symmetrize": "grow-diag"}
    for settings, expected in (
        ({}, 0.2), ({"symmetrize": "union"}, 0.2), ({"agreement": False}, 0.2), (apart, 0.4),
        (apart | {"inference": "vi"}, 0.2), (apart | {"null_probability": 0.3}, 0.3),
    ):  # fmt: skip
        aligner = WordAligner(progress=False, iterations=1, **settings).fit(SOURCE, TARGET)
        assert aligner._read_with["null_probability"] == expected, settings
