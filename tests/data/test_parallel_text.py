"""Sentence pairs from lists and files."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain.data import ParallelText, as_parallel_text, read_parallel, word_coding
from subchain.errors import FileFormatError, InputError

SOURCE = ["the house", "", "The green house"]
TARGET = ["das Haus", "nichts", "das grüne Haus"]


def content(text: ParallelText) -> list[tuple[list[str], list[str]]]:
    return list(text)


EXPECTED = content(ParallelText.from_sentences(SOURCE, TARGET))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("\n".join(SOURCE) + "\n", encoding="utf8")
    Path("a.de").write_text("\n".join(TARGET) + "\n", encoding="utf8")
    lines = [f"{s} ||| {t}" for s, t in zip(SOURCE, TARGET, strict=True)]
    Path("joined.txt").write_text("\n".join(lines) + "\n", encoding="utf8")


class TestLists:
    def test_tokens_and_lines_are_the_same_text(self) -> None:
        tokens = ParallelText.from_sentences([s.split() for s in SOURCE], [t.split() for t in TARGET])
        assert content(tokens) == EXPECTED
        assert tokens.source_tokens.dtype == np.int32
        assert tokens.source_offsets.tolist() == [0, 2, 2, 5]
        assert tokens.n_cells == 2 * 2 + 0 * 1 + 3 * 3

    def test_an_empty_sentence_is_kept(self) -> None:
        text = ParallelText.from_sentences(SOURCE, TARGET)
        assert len(text) == 3
        assert text[1] == ([], ["nichts"])

    def test_case_is_folded_on_demand(self) -> None:
        text = ParallelText.from_sentences(SOURCE, [t.split() for t in TARGET], lowercase=True)
        assert text.source_words == ["the", "house", "green"]
        assert text[-1][1] == ["das", "grüne", "haus"]

    def test_codes_of_another_text_are_kept(self) -> None:
        seen = ParallelText.from_sentences(SOURCE, TARGET)
        new = ParallelText.from_sentences(["green tree"], ["Haus"], like=seen)
        assert new.source_words[: len(seen.source_words)] == seen.source_words
        assert new.source_words[-1] == "tree"
        assert new.target_tokens.tolist() == [seen.target_words.index("Haus")]
        again = ParallelText.from_sentences(["green tree"], ["Haus"]).recoded(seen)
        assert again.source_tokens.tolist() == new.source_tokens.tolist()
        assert again.source_words == new.source_words
        assert content(again) == content(new)

    def test_exchanging_the_sides_twice_changes_nothing(self) -> None:
        text = ParallelText.from_sentences(SOURCE, TARGET)
        assert text.swapped()[0] == (["das", "Haus"], ["the", "house"])
        assert content(text.swapped().swapped()) == EXPECTED

    @pytest.mark.parametrize(
        ("source", "target", "told"),
        [
            (["a"], ["x", "y"], "source has 1 sentences, but target has 2"),
            ("a b", ["x"], "source must be a list of sentences, not one string"),
            ([["a", 3]], ["x"], "source sentence 0 holds 3 of type int"),
            (["a"], [None], "target sentence 0 is a NoneType"),
        ],
    )
    def test_what_is_no_parallel_text_is_refused(self, source: Any, target: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            ParallelText.from_sentences(source, target)

    def test_a_pair_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(IndexError, match="sentence pair 3 does not exist; there are 3 pairs"):
            ParallelText.from_sentences(SOURCE, TARGET)[3]


@pytest.mark.usefixtures("files")
class TestFiles:
    def test_two_files_one_file_and_lists_hold_the_same(self) -> None:
        assert content(read_parallel("a.en", "a.de")) == EXPECTED
        assert content(read_parallel("joined.txt")) == EXPECTED
        assert content(as_parallel_text(Path("a.en"), "a.de")) == EXPECTED
        assert content(as_parallel_text("joined.txt")) == EXPECTED
        assert content(as_parallel_text(SOURCE, TARGET)) == EXPECTED

    def test_files_may_be_compressed_or_open(self) -> None:
        with gzip.open("a.en.gz", "wt", encoding="utf8") as file:
            file.write(Path("a.en").read_text(encoding="utf8"))
        assert content(read_parallel("a.en.gz", io.StringIO("\n".join(TARGET)))) == EXPECTED

    def test_line_ends_of_other_systems_and_a_byte_order_mark_are_no_words(self) -> None:
        Path("dos.en").write_bytes("\ufeffthe house\r\n\r\n".encode())
        assert read_parallel("dos.en", io.StringIO("a\nb\n"))[0][0] == ["the", "house"]

    def test_case_is_folded_on_demand(self) -> None:
        for text in (read_parallel("a.en", "a.de", lowercase=True), read_parallel("joined.txt", lowercase=True)):
            assert text.source_words == ["the", "house", "green"]

    @pytest.mark.parametrize("lists", [False, True])
    def test_parquet(self, lists: bool) -> None:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {
            name: [line.split() for line in side] if lists else side for name, side in (("en", SOURCE), ("de", TARGET))
        }
        parquet.write_table(pyarrow.table(columns), "two.parquet")
        parquet.write_table(pyarrow.table({"n": [1, 2, 3]} | columns), "three.parquet")
        assert content(read_parallel("two.parquet")) == EXPECTED
        assert content(read_parallel("three.parquet", columns=("en", 2))) == EXPECTED
        with pytest.raises(InputError, match="has 3 columns, 'n', 'en', 'de'; choose"):
            read_parallel("three.parquet")
        with pytest.raises(InputError, match="column 'n' is of type int64; sentences are strings"):
            read_parallel("three.parquet", columns=("n", "en"))

    def test_a_null_in_a_parquet_file_is_refused(self) -> None:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"a": ["x", None], "b": ["y", "z"]}), "null.parquet")
        with pytest.raises(InputError, match="row 1 of column 'a' is null; give an empty string"):
            read_parallel("null.parquet")

    def test_numbers_of_lines_must_agree(self) -> None:
        Path("short.de").write_text("das Haus\n")
        with pytest.raises(InputError, match="'a.en' has 3 lines, but 'short.de' has 1"):
            read_parallel("a.en", "short.de")

    def test_a_file_in_another_encoding_is_named_with_its_line(self) -> None:
        Path("latin.de").write_bytes("das Haus\nnichts\ndas grüne Haus\n".encode("latin-1"))
        with pytest.raises(FileFormatError, match="line 3 of 'latin.de' is not UTF-8 text .byte 0xfc"):
            read_parallel("a.en", "latin.de")

    def test_encodings_that_are_mixed_in_one_file_too(self) -> None:
        Path("mixed.de").write_bytes("das Haus\nüber\n".encode() + "grün\n".encode("latin-1"))
        with pytest.raises(FileFormatError, match="line 3 of 'mixed.de'"):
            read_parallel("a.en", "mixed.de")

    @pytest.mark.parametrize(("line", "number"), [("the house das Haus", 0), ("the ||| das ||| la", 2)])
    def test_a_line_needs_one_separator(self, line: str, number: int) -> None:
        Path("bad.txt").write_text(f"a ||| b\n{line}\n")
        with pytest.raises(FileFormatError, match=f"line 2 of 'bad.txt' has {number} separators"):
            read_parallel("bad.txt")

    def test_an_empty_line_is_a_pair_of_empty_sentences(self) -> None:
        assert content(read_parallel(io.StringIO("a ||| b\n\n|||\n"))) == [(["a"], ["b"]), ([], []), ([], [])]

    def test_settings_that_contradict_each_other_are_refused(self) -> None:
        with pytest.raises(InputError, match="format 'delimited' is read from one file"):
            read_parallel("a.en", "a.de", format="delimited")
        with pytest.raises(InputError, match="format 'lines' is read from two files"):
            read_parallel("a.en", format="lines")
        with pytest.raises(InputError, match="columns= is for Parquet"):
            read_parallel("a.en", "a.de", columns=("a", "b"))
        with pytest.raises(InputError, match="unknown format of parallel text 'moses'"):
            read_parallel("a.en", format="moses")
        with pytest.raises(InputError, match="both be files, or both be lists"):
            as_parallel_text("a.en", [["x"]])
        with pytest.raises(InputError, match="there is no target"):
            as_parallel_text([["x"]])
        with pytest.raises(InputError, match="holds both sides"):
            as_parallel_text(ParallelText.from_sentences(["a"], ["b"]), ["c"])


def test_a_sentence_of_ten_thousand_tokens_is_read() -> None:
    text = read_parallel(io.StringIO("w " * 10_000), io.StringIO("v " * 10_000))
    assert text.n_cells == 10**8


class TestCompiledReading:
    """Files are read by compiled code; what it gives is what Python's methods of strings give."""

    SPACES = "\t\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000"
    LETTERS = "abÉßİΣ\u200b\x00\x1b\u180e中\U0001f600\u2010\u200f\u2080\u3001Â\x7f\x80"

    def read(
        self, folder: Path, lines: list[str], mark: bytes = b"", ending: str = "\n", **options: Any
    ) -> ParallelText:
        content = mark + "\n".join(lines).encode() + (ending.encode() if lines else b"")
        (folder / "one").write_bytes(content)
        (folder / "other").write_text("x\n" * len(lines))
        return read_parallel(folder / "one", folder / "other", **options)

    def check(self, found: ParallelText, lines: list[str], lowercase: bool = False) -> None:
        expected = ParallelText.from_sentences(lines, ["x"] * len(lines), lowercase)
        np.testing.assert_array_equal(found.source_tokens, expected.source_tokens)
        np.testing.assert_array_equal(found.source_offsets, expected.source_offsets)
        assert found.source_words == expected.source_words

    @pytest.mark.parametrize("chunk", [7, 1 << 24])
    @pytest.mark.parametrize("lowercase", [False, True])
    def test_words_lie_between_white_space_of_any_kind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, lowercase: bool
    ) -> None:
        monkeypatch.setattr(word_coding, "CHUNK", chunk)
        rng = np.random.default_rng(1)
        for _ in range(40):
            sizes = rng.integers(0, 30, size=rng.integers(0, 8))
            letters = [rng.choice(list(self.SPACES if rng.random() < 0.4 else self.LETTERS)) for _ in range(sum(sizes))]
            lines = ["".join(letters[:size]) for size in sizes]
            self.check(self.read(tmp_path, lines, lowercase=lowercase), lines, lowercase)

    def test_a_mark_of_the_byte_order_is_no_word(self, tmp_path: Path) -> None:
        self.check(self.read(tmp_path, ["a b", "c"], mark=b"\xef\xbb\xbf"), ["a b", "c"])
        self.check(self.read(tmp_path, [""], mark=b"\xef\xbb\xbf", ending=""), [""])

    def test_the_last_line_needs_no_end(self, tmp_path: Path) -> None:
        self.check(self.read(tmp_path, ["a b", "c"], ending=""), ["a b", "c"])

    def test_the_table_of_words_grows(self, tmp_path: Path) -> None:
        lines = [
            " ".join(f"word{number % 39_000}" for number in range(first, first + 50)) for first in range(0, 80_000, 50)
        ]
        lines.append("long" * 100_000 + " " + "long" * 100_000)
        self.check(self.read(tmp_path, lines), lines)

    def test_known_words_keep_their_codes(self, tmp_path: Path) -> None:
        seen = ParallelText.from_sentences(["b"], ["x"])
        assert self.read(tmp_path, ["a b"], like=seen).source_words == ["b", "a"]

    def test_bytes_that_are_no_text_are_named_with_their_line(self, tmp_path: Path) -> None:
        (tmp_path / "one").write_bytes(b"a\n\xe9t\xe9\n")
        (tmp_path / "other").write_bytes(b"a\nb\n")
        with pytest.raises(FileFormatError, match="line 2 of .*one' is not UTF-8"):
            read_parallel(tmp_path / "one", tmp_path / "other")
