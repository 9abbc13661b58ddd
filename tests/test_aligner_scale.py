"""Word alignment of texts larger than memory, on threads: the same results by other ways, and what they cost."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_aligner import generated

from subchain import CVI, memory_estimate
from subchain.alignment import Links, ParallelText, WordAligner, pack_parallel, read_parallel, write_links
from subchain.core.components import clone
from subchain.errors import FileFormatError, InputError
from subchain.propagation.alignment.pair import Model
from subchain.structures.alignment import text as text_module
from subchain.structures.alignment.ledger import AlignmentLedger
from subchain.structures.alignment.model import AlignmentPosterior
from subchain.structures.alignment.rounds import RoundLedger
from subchain.structures.alignment.structure import Alignments
from subchain.structures.alignment.text import AlignedText
from subchain.tables import JumpWidths, TranslationTable

MAX_JUMP = 3


def prepared(n_pairs: int, **settings: Any) -> AlignedText:
    source, target = generated(n_pairs)
    source[3], target[5] = [], []
    source[7] = ["s1", "s1", "s2", "s1"]  # words that are repeated
    return AlignedText.of(ParallelText.from_sentences(source, target), **settings)


def structure_of(data: AlignedText, agrees: bool, n_jobs: int = 1) -> tuple[Alignments, AlignmentPosterior]:
    structure = Alignments(data, Model(True, 0.3, agrees), n_jobs)
    return structure, AlignmentPosterior(data.prior(0.4), JumpWidths.prior(MAX_JUMP))


def ledger_of(data: AlignedText, agrees: bool, n_jobs: int = 1) -> RoundLedger:
    structure, prior = structure_of(data, agrees, n_jobs)
    ledger = RoundLedger(structure, prior)
    ledger.begin(structure.nothing(prior.jumps.counts.shape[1]))
    return ledger


class TestWordPairs:
    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_they_are_those_that_occur_together(self, n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_module, "BLOCK_CELLS", 50)
        data = prepared(80, n_jobs=n_jobs)
        source, target = np.repeat(np.arange(len(data.rows) - 1), np.diff(data.rows)), data.targets
        expected = {
            (s, t)
            for pair in range(data.n_pairs)
            for s in data.cells.source[data.cells.source_starts[pair] : data.cells.source_starts[pair + 1]].tolist()
            for t in data.cells.target[data.cells.target_starts[pair] : data.cells.target_starts[pair + 1]].tolist()
        }
        assert list(zip(source.tolist(), target.tolist(), strict=True)) == sorted(expected)

    def test_cells_that_are_looked_up_are_those_that_are_kept(self) -> None:
        kept, looked_up = prepared(80), prepared(80, keeps_entries=False, n_jobs=2)
        pairs = np.array([70, 3, 7, 5, 12])
        cells, numbers = looked_up.part(pairs)
        for number, pair in zip(numbers, pairs, strict=True):
            here = cells.entries[cells.starts[number] : cells.starts[number + 1]]
            np.testing.assert_array_equal(
                here, kept.cells.entries[kept.cells.starts[pair] : kept.cells.starts[pair + 1]]
            )

    @pytest.mark.parametrize("agrees", [False, True])
    def test_statistics_are_the_same(self, agrees: bool) -> None:
        found = []
        for keeps in (True, False):
            structure, prior = structure_of(prepared(80, keeps_entries=keeps), agrees)
            first = structure.statistics(prior.predictive())
            found.append(structure.statistics(prior.update(first).predictive()))
        for name, array in found[0].arrays().items():
            np.testing.assert_array_equal(found[1].arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("agrees", [False, True])
def test_weights_of_counts_are_those_of_the_mean(agrees: bool) -> None:
    structure, prior = structure_of(prepared(60), agrees)
    posterior = prior.update(structure.statistics(prior.mean()))
    with_table, with_counts = structure.statistics(posterior.mean()), structure.statistics(posterior.predictive())
    for name, array in with_table.arrays().items():
        if "exposures" not in name:
            np.testing.assert_allclose(with_counts.arrays()[name], array, rtol=1e-9, atol=1e-12, err_msg=name)


class TestRounds:
    @pytest.mark.parametrize("agrees", [False, True])
    def test_every_pair_sees_the_counts_of_the_beginning_without_its_own(self, agrees: bool) -> None:
        data, pairs = prepared(60), np.array([7, 3, 20, 5, 21])
        together = ledger_of(data, agrees)
        together.visit_round(pairs, excludes=True)
        for pair in pairs:
            alone = ledger_of(data, agrees)
            alone.visit(np.array([pair]), excludes=True, puts_back=True)
            cells = slice(data.cells.starts[pair], data.cells.starts[pair + 1])
            np.testing.assert_allclose(
                together.posteriors.links[cells], alone.posteriors.links[cells], rtol=1e-5, atol=1e-7
            )
            np.testing.assert_allclose(
                together.posteriors.jumps[pair], alone.posteriors.jumps[pair], rtol=1e-5, atol=1e-6
            )

    def test_without_exclusion_a_pair_sees_all_counts(self) -> None:
        data = prepared(60)
        ledger, other = ledger_of(data, agrees=True), ledger_of(data, agrees=True)
        ledger.visit_round(np.array([7]), excludes=False)
        other.visit(np.array([7]), excludes=False, puts_back=True)
        cells = slice(data.cells.starts[7], data.cells.starts[8])
        np.testing.assert_allclose(ledger.posteriors.links[cells], other.posteriors.links[cells], rtol=1e-5)

    @pytest.mark.parametrize("n_rounds", [0, 3])
    @pytest.mark.parametrize("n_jobs", [1, 3])
    @pytest.mark.parametrize("agrees", [False, True])
    def test_counts_stay_the_sum_of_the_stored_posteriors(self, agrees: bool, n_jobs: int, n_rounds: int) -> None:
        ledger = ledger_of(prepared(60), agrees, n_jobs)
        for _ in range(n_rounds):
            ledger.visit_round(np.arange(60), excludes=True)
        kept, totals = [array.copy() for array in ledger.table], [array.copy() for array in ledger.totals]
        ledger.add_up()
        for found, summed in zip([*kept, *totals], [*ledger.table, *ledger.totals], strict=True):
            np.testing.assert_allclose(found, summed, atol=1e-11)

    def test_they_have_the_same_bits_on_any_number_of_threads(self) -> None:
        source, target = generated(700)  # rounds of ten pairs
        one, eight = (
            WordAligner(inference=CVI(order="shards"), progress=False, n_jobs=n).fit(source, target) for n in (1, 8)
        )
        for key, array in one.posterior_.arrays().items():
            np.testing.assert_array_equal(eight.posterior_.arrays()[key], array, err_msg=key)
        np.testing.assert_array_equal(one.links().source, eight.links().source)

    def test_single_words_are_not_visited_in_rounds(self) -> None:
        with pytest.raises(InputError, match="whole sentence pairs"):
            WordAligner(inference=CVI(cluster="state", order="shards"), progress=False).fit(*generated(5))


class TestPackedText:
    @pytest.fixture
    def packed(self, tmp_path: Path) -> Path:
        source, target = generated(50)
        source[2], target[4] = [], []
        for name, side in (("a", source), ("b", target)):
            (tmp_path / name).write_text("".join(" ".join(words) + "\n" for words in side), encoding="utf8")
        pack_parallel(tmp_path / "text.pairs", tmp_path / "a", tmp_path / "b")
        return tmp_path / "text.pairs"

    def test_it_is_the_text(self, packed: Path) -> None:
        plain = read_parallel(packed.parent / "a", packed.parent / "b")
        found = read_parallel(packed)
        assert isinstance(found.source_tokens, np.memmap)
        assert list(found) == list(plain)
        assert (found.source_words, found.target_words) == (plain.source_words, plain.target_words)

    @pytest.mark.parametrize("inference", ["cvi", "scvi"])
    def test_it_is_fitted_and_aligned_like_any_other(self, inference: str, packed: Path) -> None:
        plain = read_parallel(packed.parent / "a", packed.parent / "b")
        one, other = (
            WordAligner(inference=inference, random_state=0, progress=False).fit(text) for text in (plain, packed)
        )
        for key, array in one.posterior_.arrays().items():
            np.testing.assert_array_equal(other.posterior_.arrays()[key], array, err_msg=key)
        np.testing.assert_array_equal(
            one.links().source, other.links(packed).source if inference == "scvi" else other.links().source
        )

    def test_a_text_without_pairs_or_with_odd_words_is_kept(self, tmp_path: Path) -> None:
        from subchain.data.packed_parallel import pack_pairs

        assert len(pack_pairs(tmp_path / "none.pairs", [])) == 0
        odd = [(["a\nb", '"', "ü"], [])]
        assert list(pack_pairs(tmp_path / "odd.pairs", odd)) == odd

    @pytest.mark.parametrize("damage", ["cut", "longer", "header", "code", "offset", "words", "version", "text"])
    def test_damaged_files_are_refused(self, damage: str, packed: Path) -> None:
        content = bytearray(packed.read_bytes())
        first = content.index(b"\n") + 1
        offsets = first + -first % 64
        tokens = offsets + 8 * 51
        tokens += -tokens % 64
        if damage == "cut":
            content = content[:-10]
        elif damage == "longer":
            content += b"more"
        elif damage == "header":
            content[:first] = b"[1]\n"
        elif damage == "code":
            content[tokens : tokens + 4] = (10**6).to_bytes(4, "little")
        elif damage == "offset":
            content[offsets + 8 : offsets + 16] = (10**9).to_bytes(8, "little")
        elif damage == "words":
            content = content.replace(b'"s1"', b'"s2"', 1)
        elif damage == "version":
            content = content.replace(b'"version": 1', b'"version": 9')
        else:
            content = bytearray(b"the house ||| das Haus\n")
        packed.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"text\.pairs"):
            read_parallel(packed)

    def test_bad_input_is_refused_and_leaves_no_file(self, packed: Path) -> None:
        folder = packed.parent
        (folder / "short").write_text("one line\n")
        (folder / "latin").write_bytes("déjà vu\n".encode("latin-1") * 50)
        before = set(folder.iterdir())
        with pytest.raises(InputError, match="has 50 lines, but .*short' has 1"):
            pack_parallel(folder / "new.pairs", folder / "a", folder / "short")
        with pytest.raises(FileFormatError, match="line 1 of .*latin' is not UTF-8"):
            pack_parallel(folder / "new.pairs", folder / "a", folder / "latin")
        with pytest.raises(InputError, match="ends in .pairs"):
            pack_parallel(folder / "new.txt", folder / "a", folder / "b")
        with pytest.raises(InputError, match="packed already"):
            pack_parallel(folder / "new.pairs", packed)
        with pytest.raises(InputError, match="when it is packed"):
            read_parallel(packed, lowercase=True)
        assert set(folder.iterdir()) == before


class TestLinksAsTheyCome:
    def test_lines_are_those_of_all_links(self, tmp_path: Path) -> None:
        parts = [Links.from_pairs([[(0, 0), (12, 3)], []]), Links.from_pairs([[(1234567890, 10), (2, 11)]])]
        write_links(tmp_path / "parts", iter(parts))
        write_links(tmp_path / "whole", Links.joined(parts))
        assert (
            (tmp_path / "parts").read_text() == "0-0 12-3\n\n2-11 1234567890-10\n" == (tmp_path / "whole").read_text()
        )
        write_links(tmp_path / "parts", iter(parts), format="moses")
        assert (tmp_path / "parts").read_text() == "0-0 12-3\n\n1234567890-10 2-11\n"

    def test_blocks_are_the_links_of_all_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source, target = generated(60)
        aligner = WordAligner(progress=False, n_jobs=2).fit(source, target)
        whole, new, score = aligner.links(), aligner.links(source, target), aligner.score(source, target)
        monkeypatch.setattr("subchain.models.alignment_blocks.BLOCK_CELLS", 100)
        for expected, text in ((whole, ()), (new, (source, target))):
            blocks = list(aligner.link_blocks(*text))
            assert len(blocks) > 5
            found = Links.joined(blocks)
            for name in ("source", "target", "offsets"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert aligner.score(source, target) == pytest.approx(score)


def test_a_prior_without_counts_has_no_table_of_them() -> None:
    data = prepared(60)
    prior = data.prior(0.1)
    assert not prior.has_counts
    assert prior.pairs.shape == (len(data.targets), 2)
    known = TranslationTable.prior(data.rows, data.targets, len(data.text.target_words), 0.1)
    known = known.update(structure_of(data, True)[0].statistics(structure_of(data, True)[1].mean()).part("translation"))
    assert data.prior(0.1, known).has_counts


@pytest.mark.parametrize("inference", ["cvi", "scvi", "em", "vi"])
def test_the_estimate_of_memory_is_right_within_a_fifth(inference: str) -> None:
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, size=(2, 6000, 12)), 4000)
    source, target = ([[f"w{word}" for word in sentence] for sentence in side] for side in words.tolist())
    text = ParallelText.from_sentences(source, target)
    aligner = WordAligner(inference=inference, progress=False, n_jobs=2, random_state=0)
    aligner.fit(text)  # code is compiled before it is measured
    aligner = clone(aligner)
    estimate = memory_estimate(aligner, text).total
    tracemalloc.start()
    try:
        aligner.fit(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.8 * peak < estimate < 1.2 * peak


def test_memory_of_samplers_is_not_guessed() -> None:
    with pytest.raises(InputError, match="not known"):
        memory_estimate(WordAligner(inference="gibbs"), (["a"], ["b"]))


@pytest.mark.parametrize("agrees", [False, True])
def test_rounds_begin_with_the_shares_that_visits_in_turn_begin_with(agrees: bool) -> None:
    structure, prior = structure_of(prepared(60), agrees)
    found = [kind(structure, prior) for kind in (AlignmentLedger, RoundLedger)]
    for ledger in found:
        ledger.begin(structure.statistics(prior.mean()))
    for name in ("links", "jumps"):
        one, other = (ledger.shares[name] for ledger in found)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
