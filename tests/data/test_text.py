"""Text files as coded words or characters."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data import Sequences, Vocabulary, read_text
from subchain.errors import FileFormatError, InputError

TEXT = "the cat saw\n   \nthe Dog\n\n"
CORPORA = Path(os.environ.get("SUBCHAIN_DATA", Path(__file__).parents[3] / "shared" / "data"))


def decoded(data: Sequences) -> list[list[str | None]]:
    assert data.vocabulary is not None
    return [data.vocabulary.decode(piece) for piece in data]


def test_lines_are_sequences_of_words_and_blank_lines_are_skipped() -> None:
    data = read_text(io.StringIO(TEXT))
    assert decoded(data) == [["the", "cat", "saw"], ["the", "Dog"]]
    assert data.values.dtype == np.int32
    assert data.vocabulary is not None
    assert data.vocabulary.to_list() == ["the", "cat", "saw", "Dog", "<unk>"]


def test_a_chain_is_one_long_sequence() -> None:
    assert decoded(read_text(io.StringIO(TEXT), sequences="chain")) == [["the", "cat", "saw", "the", "Dog"]]


def test_a_blank_line_ends_a_paragraph_and_several_end_one() -> None:
    data = read_text(io.StringIO("\n\nthe cat\nsaw\n \n\na dog\n"), sequences="paragraphs")
    assert decoded(data) == [["the", "cat", "saw"], ["a", "dog"]]
    assert data.names == (0, 1)


@pytest.mark.parametrize("sequences", ["lines", "chain", "paragraphs"])
def test_an_end_is_appended_to_every_line(sequences: Any) -> None:
    data = read_text(io.StringIO(TEXT), end="</s>", lower=True, sequences=sequences)
    flat = [symbol for piece in decoded(data) for symbol in piece]
    assert flat == ["the", "cat", "saw", "</s>", "the", "dog", "</s>"]


def test_characters_keep_their_blanks() -> None:
    assert decoded(read_text(io.StringIO("a b\r\n c\n"), unit="characters")) == [["a", " ", "b"], [" ", "c"]]
    chain = read_text(io.StringIO("ab\ncd"), unit="characters", sequences="chain", end="\n")
    assert decoded(chain) == [list("ab\ncd\n")]


def test_rare_words_are_unknown() -> None:
    data = read_text(io.StringIO(TEXT), min_count=2)
    assert decoded(data) == [["the", "<unk>", "<unk>"], ["the", "<unk>"]]
    small = read_text(io.StringIO(TEXT), max_size=2, unknown="?")
    assert small.vocabulary == Vocabulary(["the", "?"], "?")


def test_new_text_is_coded_with_the_old_vocabulary() -> None:
    train = read_text(io.StringIO(TEXT))
    test = read_text(io.StringIO("the dog saw"), vocabulary=train.vocabulary)
    assert test.vocabulary is train.vocabulary
    assert decoded(test) == [["the", "<unk>", "saw"]]
    with pytest.raises(InputError, match="symbol 'dog'"):
        read_text(io.StringIO("the dog"), vocabulary=Vocabulary(["the"]))


@given(st.lists(st.lists(st.text("abcä", min_size=1, max_size=3), max_size=6), max_size=8).filter(any))
def test_words_written_are_words_read(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    expected = [line for line in lines if line]
    assert decoded(read_text(io.StringIO(text))) == expected
    assert decoded(read_text(io.BytesIO(text.encode()))) == expected


@pytest.mark.parametrize(("suffix", "opener"), [("", open), (".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)])
def test_packed_files_are_unpacked(tmp_path: Path, suffix: str, opener: Any) -> None:
    path = tmp_path / f"x.txt{suffix}"
    with opener(path, "wb") as file:
        file.write("\ufeffthe cat\r\nthe d\u00f6g".encode())
    assert decoded(read_text(path)) == [["the", "cat"], ["the", "d\u00f6g"]]
    assert decoded(read_text(str(path))) == [["the", "cat"], ["the", "d\u00f6g"]]


def test_bytes_that_are_no_text_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"good\ngood\nb\xffd\n")
    for source in (path, io.BytesIO(path.read_bytes())):
        with pytest.raises(FileFormatError, match="line 3 of .* is not UTF-8 text \\(byte 0xff\\)"):
            read_text(source)
    with path.open(encoding="utf-8") as file, pytest.raises(FileFormatError, match="cannot be read after line 0"):
        read_text(file)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_damaged_packed_files_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}[suffix]
    with opener(path, "wb") as file:
        file.write(os.urandom(5000).hex().encode())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match="cannot be read after line"):
        read_text(path)
    path.write_bytes(b"not packed at all")
    with pytest.raises(FileFormatError, match="cannot be read after line 0"):
        read_text(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "word"}, "unknown unit of text 'word'.*Did you mean 'words'"),
        ({"sequences": "line"}, "unknown value of sequences 'line'.*Did you mean 'lines'"),
        ({"min_count": 0}, "min_count must be at least 1"),
    ],
)
def test_misspelt_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_text(io.StringIO(TEXT), **options)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the text holds no words"):
        read_text(io.StringIO(" \n\n"))
    with pytest.raises(InputError, match="does not exist"):
        read_text(tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match="from a path or an open file, not from a list"):
        read_text(["the cat"])  # type: ignore[arg-type]


@pytest.mark.skipif(not (CORPORA / "ptb").exists(), reason="the corpora are not here")
def test_the_penn_treebank_has_its_published_size() -> None:
    train = read_text(CORPORA / "ptb" / "ptb.train.txt.gz", end="</s>")
    valid = read_text(CORPORA / "ptb" / "ptb.valid.txt.gz", end="</s>", vocabulary=train.vocabulary)
    assert (train.n_sequences, train.n_observations) == (42_068, 929_589)
    assert (valid.n_sequences, valid.n_observations) == (3_370, 73_760)
    assert train.vocabulary is not None
    assert len(train.vocabulary) == 10_000
