"""Measured data with answers that are known from elsewhere: nothing is said but the number of states.

The data are not part of this project; the tests are skipped without them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import Bernoulli, DiagonalGaussian, Gaussian, Poisson, read

Fit = Callable[..., Any]


def test_earthquakes_per_year(fit: Fit, shared_data: Path) -> None:
    """Zucchini & MacDonald, *Hidden Markov Models for Time Series*: means of about 13, 20 and 30."""
    answer = fit(shared_data / "tutorial" / "earthquakes.csv", 3)
    assert isinstance(answer.model.family_, Poisson)
    assert answer.data.n_observations == 107
    np.testing.assert_allclose(np.sort(answer.model.emission_.rates.ravel()), [13.1, 19.7, 29.7], atol=0.7)
    assert "Poisson, because the data are small whole numbers from 6 to 41" in answer.notes
    assert "column 'year' increases by 1" in answer.notes


def test_two_chromatin_lines(fit: Fit, shared_data: Path) -> None:
    """One state is the promoters: it has H3K4me3, a few percent of the bins, and many starts of genes."""
    n, folder = 60_000, shared_data / "chromatin"
    with np.load(folder / "chromhmm_hg18_chr11.npz") as whole:
        np.savez("lines.npz", GM12878=whole["GM12878"][:n], K562=whole["K562"][:n], marks=whole["marks"])
    answer = fit("lines.npz", 4)
    assert isinstance(answer.model.family_, Bernoulli)
    assert answer.data.names == ("GM12878", "K562")
    mark = answer.model.emission_.probabilities[:, answer.data.columns.index("H3K4me3")]
    promoters = int(mark.argmax())
    assert mark[promoters] > 0.8
    assert 0.02 < answer.model.state_occupancy_[promoters] < 0.06
    assert 0.7 < answer.model.state_occupancy_.max() < 0.87  # bins without any mark
    starts = np.unique(np.loadtxt(folder / "refseq_tss_chr11.tsv", skiprows=1, usecols=0, dtype=int) // 200)
    for line in answer.states.reshape(2, n):
        assert (line[starts[starts < n]] == promoters).mean() > 0.25


def test_intervals_between_heart_beats(fit: Fit, shared_data: Path) -> None:
    """In record 106 the short intervals end at ventricular premature beats, which cardiologists have marked."""
    with np.load(shared_data / "mitbih" / "mitbih_rr_beats.npz") as beats:
        record = beats["records"].tolist().index("106")
        rows = slice(beats["offsets"][record] + 1, beats["offsets"][record + 1])
        Path("rr.csv").write_text("rr\n" + "\n".join(map(str, beats["rr"][rows])) + "\n")
        is_premature = (beats["beat_symbols"][beats["beat"][rows]] == "V").astype(int)
    answer = fit("rr.csv", 3)
    assert isinstance(answer.model.family_, Gaussian)
    short = int(answer.model.emission_.means.ravel().argmin())
    assert ((answer.states == short) == is_premature).mean() >= 0.99
    assert "large whole numbers" in answer.notes


def test_a_folder_of_audio_features(fit: Fit, shared_data: Path) -> None:
    """Two of the four tracks sound like nothing else: each has a state that the other tracks hardly use."""
    Path("tracks").mkdir()
    with np.load(shared_data / "audio" / "music_mfcc.npz") as music:
        begins = np.cumsum([0, *music["train_lengths"][:-1]])
        for name, begin in zip(music["train_names"], begins, strict=True):
            np.save(Path("tracks", f"{name}.npy"), music["train"][begin : begin + 2000])
    answer = fit("tracks", 4)
    assert isinstance(answer.model.family_, DiagonalGaussian)
    assert answer.data.lengths.tolist() == [2000] * 4
    shares = np.array([np.bincount(states, minlength=4) / 2000 for states in answer.states.reshape(4, 2000)])
    for name, part in (("st_castle_darkforestkeep", 0.6), ("st_forest_forest", 0.9)):
        track = answer.data.names.index(name)
        own = int(shares[track].argmax())
        assert shares[track, own] > part
        assert np.delete(shares[:, own], track).max() < 0.1


def test_sentences_of_a_tagged_corpus_are_sequences(shared_data: Path) -> None:
    with pytest.warns(UserWarning, match="was read as observations"):
        data = read(shared_data / "treebank" / "wsj-sample.tagged.tsv.gz")
    assert (data.n_sequences, data.n_observations) == (3914, 94_084)
