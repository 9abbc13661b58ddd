"""Files of any kind, and folders of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subchain import read
from subchain.data.reading import kind_of
from subchain.errors import FileFormatError, InputError


def test_words_are_lines_and_characters_a_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the cat\nthe dog\n")
    assert read(path).lengths.tolist() == [2, 2]
    characters = read(path, unit="characters")
    assert characters.n_sequences == 1
    assert "".join(map(str, characters.vocabulary.decode(characters[0]))) == "the cat\nthe dog\n"  # type: ignore[union-attr]
    assert read(path, unit="characters", sequences="lines").lengths.tolist() == [7, 7]


def test_files_of_a_folder_share_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("dog dog dog cat\n")
    (tmp_path / "a.txt").write_text("cat mouse\n")
    (tmp_path / "notes.md").write_text("left out")
    data = read(tmp_path)
    assert data.names == ("a", "b")
    assert data.vocabulary is not None
    assert data.vocabulary.to_list() == ["dog", "cat", "mouse", "<unk>"]
    assert [data.vocabulary.decode(line) for line in data] == [["cat", "mouse"], ["dog", "dog", "dog", "cat"]]


def test_logs_with_one_event_a_line_are_sessions_between_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "ann.txt").write_text("login\nview\nlogout\n\nlogin\nlogout\n")
    (tmp_path / "bob.txt").write_text("login\n\n")
    with pytest.warns(UserWarning, match="a blank line ends a sequence; sequences='lines' makes every line"):
        data = read(tmp_path)
    assert data.vocabulary is not None
    assert [data.vocabulary.decode(session) for session in data] == [
        ["login", "view", "logout"], ["login", "logout"], ["login"],
    ]  # fmt: skip
    assert data.names == ("ann.0", "ann.1", "bob.0")
    assert read(tmp_path, sequences="lines").n_sequences == 6
    assert read(tmp_path, sequences="chain").names == ("ann", "bob")


def test_one_line_with_two_words_makes_lines_the_sequences_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("yes\nno\n")
    (tmp_path / "b.txt").write_text("yes\nnot now\n")
    assert read(tmp_path).lengths.tolist() == [1, 1, 1, 2]


def test_arrays_of_a_folder_stay_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2), dtype=np.float32))
    np.save(tmp_path / "b.npy", np.ones((4, 2)))
    data = read([tmp_path / "b.npy", tmp_path / "a.npy"])
    assert data.lengths.tolist() == [4, 3]
    assert data.values.dtype == np.float64
    assert read(tmp_path, columns=1).values.shape == (7,)


def test_columns_of_tables_and_their_missing_symbols(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,kind\n1.5,x\n2.5,\n")
    (tmp_path / "b.csv").write_text("n,kind\n3.5,y\n")
    data = read(tmp_path)
    assert data.columns == ("n", "kind")
    np.testing.assert_array_equal(data.values, [[1.5, 0.0], [2.5, np.nan], [3.5, 1.0]])
    assert read(tmp_path, columns="n").values.reshape(-1).tolist() == [1.5, 2.5, 3.5]


def test_an_array_of_several_is_chosen_and_divided(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(5), y=np.arange(6.0), lengths=np.array([2, 3]))
    assert read(path, array="x").lengths.tolist() == [2, 3]
    assert read(path, array="y").lengths.tolist() == [6]
    with pytest.raises(InputError, match=r"several arrays; choose with array=.*: x \(5,\), y \(6,\)"):
        read(path)
    with pytest.raises(InputError, match="unknown array of a.npz 'z'"):
        read(path, array="z")


def test_strings_beside_an_array_name_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, counts=np.zeros((4, 3)), marks=np.array(["a", "b", "c"]), chrom=np.array("chr1"), bin_size=200)
    assert read(path).columns == ("a", "b", "c")
    assert read(path, columns=["c", "a"]).columns == ("c", "a")


def test_several_arrays_become_sequences_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, K5=np.ones((4, 2)), GM=np.zeros((3, 2)), marks=np.array(["a", "b"]), bin_size=200, odd=np.ones(3))
    data = read(path, array=["GM", "K5"])
    assert data.names == ("GM", "K5")
    assert data.lengths.tolist() == [3, 4]
    assert data.columns == ("a", "b")
    assert data[1].tolist() == np.ones((4, 2)).tolist()
    assert read(path, array=["GM"]).names == ("GM",)
    assert read(path, array=["GM", "K5"], columns="b").names == ("GM", "K5")
    with pytest.raises(InputError, match=r"'odd' has the shape \(3,\) and 'GM' has \(3, 2\)"):
        read(path, array=["GM", "odd"])
    with pytest.raises(InputError, match="names an array twice"):
        read(path, array=["GM", "GM"])
    with pytest.raises(InputError, match="unknown array of a.npz 'KK'"):
        read(path, array=["GM", "KK"])
    with pytest.raises(InputError, match="several arrays; choose with array="):
        read(path, array=[])


def test_several_arrays_are_not_divided_by_lengths(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(5), y=np.arange(6), lengths=np.array([2, 3]))
    with pytest.raises(InputError, match="a.npz divides 'x' into sequences by 'lengths'"):
        read(tmp_path / "a.npz", array=["x", "y"])


def test_arrays_of_several_files_bear_the_names_of_both(tmp_path: Path) -> None:
    for name in ("chr1", "chr2"):
        np.savez(tmp_path / f"{name}.npz", GM=np.zeros(3), K5=np.ones(2))
    assert read(tmp_path, array=["GM", "K5"]).names == ("chr1.GM", "chr1.K5", "chr2.GM", "chr2.K5")
    assert read(tmp_path, array="K5").names == ("chr1", "chr2")


def test_sequences_of_several_tables_keep_names_that_differ(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("animal,n\nx,1\nx,2\ny,3\n")
    (tmp_path / "b.csv").write_text("animal,n\nz,4\n")
    assert read(tmp_path, columns="n", sequence="animal").names == ("x", "y", "z")


def test_a_treebank_is_its_words(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("1\tDogs\tdog\tNOUN" + "\t_" * 6 + "\n2\tbark\tbark\tVERB" + "\t_" * 6 + "\n\n")
    assert read(path).vocabulary.to_list()[:2] == ["Dogs", "bark"]  # type: ignore[union-attr]
    assert read(path, columns="lemma").vocabulary.to_list()[:2] == ["dog", "bark"]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="one observed field"):
        read(path, columns=["form", "lemma"])


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "b.csv").write_text("m\n1\n")
    with pytest.raises(InputError, match="b.csv has other columns than a.csv"):
        read(tmp_path)
    (tmp_path / "b.csv").write_text("n\nx\n")
    with pytest.raises(InputError, match="symbols where a.csv holds numbers"):
        read(tmp_path)
    np.save(tmp_path / "c.npy", np.zeros(3))
    with pytest.raises(InputError, match="several kinds: table .*, array"):
        read(tmp_path)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no supported file.*given with format="):
        read(tmp_path)
    with pytest.raises(InputError, match="no file was given"):
        read([])
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "a.npy")
    with pytest.raises(InputError, match="of an unsupported kind"):
        kind_of("a.doc")
    (tmp_path / "a.npz").write_text("nothing")
    with pytest.raises(FileFormatError, match="cannot be read as NumPy arrays"):
        read(tmp_path / "a.npz")
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(InputError, match="unknown unit"):
        read(tmp_path / "a.txt", unit="letters")


def test_kinds_follow_from_names() -> None:
    assert [kind_of(name) for name in ("a.txt.gz", "A.NPY", "a.pq", "x.y.conllu.xz")] == [
        "text", "array", "parquet", "treebank"
    ]  # fmt: skip
