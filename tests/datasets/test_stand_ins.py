"""Files that stand in for the data of the examples have the form of those."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subchain.datasets import write_stand_in
from subchain.errors import InputError

#: Arrays of the real file of heart beats that no page reads.
UNUSED = {"sample", "beat", "beat_symbols", "aami_class_of_symbol", "aami_names"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("chromatin", "mitbih"):
        write_stand_in(name, folder / name)
    return folder


@pytest.mark.parametrize("file", ["chromatin/chromhmm_hg18_chr11.npz", "mitbih/mitbih_rr_beats.npz"])
def test_arrays_have_the_names_and_kinds_of_the_real_ones(file: str, folder: Path, shared_data: Path) -> None:
    real, drawn = np.load(shared_data / file), np.load(folder / file)
    assert set(real) - UNUSED == set(drawn)
    for name in drawn:
        assert drawn[name].dtype.kind == real[name].dtype.kind, name
        assert drawn[name].ndim == real[name].ndim, name
    if "marks" in drawn:
        assert drawn["marks"].tolist() == real["marks"].tolist()
        assert drawn["K562"].shape == real["K562"].shape
    else:
        assert drawn["records"].tolist() == real["records"].tolist()
        assert set(drawn["rhythm_names"]) <= set(real["rhythm_names"])


def test_annotation_has_the_columns_of_the_real_one(folder: Path, shared_data: Path) -> None:
    for drawn in (folder / "chromatin").glob("*.tsv"):
        head, first, *_ = drawn.read_text().splitlines()
        real = (shared_data / "chromatin" / drawn.name).read_text().splitlines()
        assert head == real[0]
        assert len(first.split("\t")) == len(real[1].split("\t"))


def test_heart_beats_have_one_sequence_a_record_and_gaps_at_their_beginnings(folder: Path) -> None:
    beats = np.load(folder / "mitbih" / "mitbih_rr_beats.npz")
    first = beats["offsets"][:-1]
    assert len(first) == len(beats["records"]) == 48
    assert (beats["rr"][first] == -1).all()
    assert (np.delete(beats["rr"], first) > 0).all()


def test_the_same_seed_writes_the_same_files(tmp_path: Path, folder: Path) -> None:
    again = np.load(write_stand_in("mitbih", tmp_path) / "mitbih_rr_beats.npz")
    assert np.array_equal(again["rr"], np.load(folder / "mitbih" / "mitbih_rr_beats.npz")["rr"])


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="chromatin"):
        write_stand_in("chromatine", tmp_path / "new")
    assert not (tmp_path / "new").exists()
