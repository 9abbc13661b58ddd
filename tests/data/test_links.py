"""Links and their files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain.data import Links, ParallelText, read_gold, read_links, write_links
from subchain.errors import FileFormatError, InputError

PAIRS = [[(2, 0), (0, 1), (1, 1)], [], [(0, 0)]]


def lists(links: Links) -> list[list[list[int]]]:
    return [pair.tolist() for pair in links]


class TestLinks:
    def test_they_are_sorted_and_distinct(self) -> None:
        links = Links.from_pairs([[(2, 0), (0, 1), (2, 0)], np.array([[1, 1]], dtype=np.uint8), set()])
        assert lists(links) == [[[0, 1], [2, 0]], [[1, 1]], []]
        assert links[-2].tolist() == [[1, 1]]
        assert links.pairs.tolist() == [0, 0, 1]

    def test_they_can_be_sorted_by_either_side(self) -> None:
        links = Links.from_pairs(PAIRS)
        assert lists(links)[0] == [[0, 1], [1, 1], [2, 0]]
        assert lists(links.sorted_by("target"))[0] == [[2, 0], [0, 1], [1, 1]]
        assert lists(links.sorted_by("target").sorted_by("source")) == lists(links)

    def test_sides_can_be_exchanged_and_pairs_chosen(self) -> None:
        links = Links.from_pairs(PAIRS)
        assert lists(links.swapped())[0] == [[0, 2], [1, 0], [1, 1]]
        assert lists(links.between(1, 3)) == [[], [[0, 0]]]

    def test_there_may_be_none(self) -> None:
        assert len(Links.from_pairs([])) == 0
        assert lists(Links.from_pairs([[], []])) == [[], []]

    @pytest.mark.parametrize(
        ("pairs", "told"),
        [
            ([[], [(0, -1)]], r"link \(0, -1\) of sentence pair 1"),
            ([[(0, 1, 2)]], r"shape \(n, 2\)"),
            ([[(0.5, 1.0)]], "whole numbers"),
            ([[(0, 1), (2,)]], "pairs of whole numbers"),
            ([3], "pairs of whole numbers"),
            ([[(0, 0)]] * 10 + [[(2**31 - 1, 2**31 - 1)]], "are too large"),
        ],
    )
    def test_what_is_no_link_is_refused(self, pairs: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            Links.from_pairs(pairs)


class TestFiles:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        links = Links.from_pairs(PAIRS)
        write_links(tmp_path / "a.txt", links)
        assert (tmp_path / "a.txt").read_text() == "0-1 1-1 2-0\n\n0-0\n"
        assert lists(read_links(tmp_path / "a.txt")) == lists(links)
        write_links(tmp_path / "b.txt", links, format="moses")
        assert (tmp_path / "b.txt").read_text() == "2-0 0-1 1-1\n\n0-0\n"
        assert lists(read_links(tmp_path / "b.txt")) == lists(links)

    def test_a_write_that_fails_leaves_the_old_file(self, tmp_path: Path) -> None:
        path = tmp_path / "links.txt"
        path.write_text("old\n")
        with pytest.raises(InputError, match="unknown format of links 'giza'"):
            write_links(path, Links.from_pairs(PAIRS), format="giza")
        assert path.read_text() == "old\n"
        assert list(tmp_path.iterdir()) == [path]

    def test_gold_links_are_sure_or_possible(self) -> None:
        gold = read_gold(io.StringIO("0-0 1?0 2p1\n\n"))
        assert lists(gold.sure) == [[[0, 0]], []]
        assert lists(gold.possible) == [[[0, 0], [1, 0], [2, 1]], []]
        assert lists(read_gold(io.StringIO("0-3"), swap=True).sure) == [[[3, 0]]]

    @pytest.mark.parametrize("word", ["1", "1-", "a-b", "1-2-3", "-1-2", "1:2", "1-2,", "1.0-2", "1234567890-0"])
    def test_what_is_no_link_is_named_with_its_line(self, word: str, tmp_path: Path) -> None:
        (tmp_path / "bad.a").write_text(f"0-0\n0-0 {word} 1-1\n")
        with pytest.raises(FileFormatError, match=f"line 2 of '.*bad.a' holds '{word}'"):
            read_gold(tmp_path / "bad.a")

    def test_positions_outside_the_sentence_are_refused(self, tmp_path: Path) -> None:
        text = ParallelText.from_sentences(["a b", "a b"], ["x y z", "x"])
        (tmp_path / "gold.a").write_text("1-2\n0-0 1?1\n")
        with pytest.raises(FileFormatError, match="line 2 of .* links target position 1, but the target .* has 1 tok"):
            read_gold(tmp_path / "gold.a", text)
        with pytest.raises(FileFormatError, match="line 1 of .* links source position 2, but the source .* has 2 tok"):
            read_gold(tmp_path / "gold.a", text, swap=True)

    def test_lines_must_be_those_of_the_text(self) -> None:
        text = ParallelText.from_sentences(["a"], ["x"])
        with pytest.raises(InputError, match="has 2 lines, but the text has 1 sentence pairs"):
            read_links(io.StringIO("0-0\n0-0\n"), text)

    def test_an_empty_sentence_can_have_no_links(self) -> None:
        text = ParallelText.from_sentences(["a", ""], ["x", "y"])
        assert lists(read_links(io.StringIO("0-0\n\n"), text)) == [[[0, 0]], []]
        with pytest.raises(FileFormatError, match="line 2 of .*source sentence has 0 tokens"):
            read_links(io.StringIO("0-0\n0-0\n"), text)
