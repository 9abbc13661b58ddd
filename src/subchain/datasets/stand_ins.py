"""Stand-ins for data that the package may not carry: files of the same form, drawn from models.

The examples of the documentation read real data, which are public. With a stand-in the same code runs without them;
what it prints is then about simulated data.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.datasets.laws import RandomState
from subchain.datasets.paths import sample_chain
from subchain.errors import unknown_name

#: Marks of the chromatin data; the last column is the control.
MARKS = ("CTCF", "H3K27ac", "H3K27me3", "H3K36me3", "H3K4me1", "H3K4me2", "H3K4me3", "H3K9ac", "H4K20me1", "WCE")
#: Kinds of places along a chromosome: % of the bins, bins that a visit lasts, and % of the bins with each mark.
PLACES = {
    "insulator": (2.0, 4.0, (93, 1, 4, 2, 10, 4, 1, 0, 9, 1)),
    "active promoter": (2.0, 6.0, (20, 90, 1, 5, 14, 94, 99, 98, 8, 1)),
    "promoter flank": (2.0, 4.5, (11, 90, 1, 17, 97, 97, 85, 81, 10, 1)),
    "weak promoter": (2.0, 4.0, (14, 8, 3, 5, 52, 81, 60, 18, 5, 0)),
    "poised promoter": (0.5, 6.0, (15, 2, 70, 1, 44, 76, 60, 13, 5, 0)),
    "strong enhancer": (3.0, 4.0, (5, 60, 0, 24, 90, 33, 10, 17, 10, 0)),
    "weak enhancer": (5.0, 8.0, (1, 2, 1, 1, 60, 5, 1, 1, 3, 0)),
    "transcribed": (12.0, 33.0, (1, 1, 0, 60, 2, 0, 0, 0, 3, 0)),
    "repressed": (15.0, 30.0, (0, 0, 40, 0, 1, 0, 0, 0, 3, 0)),
    "quiet": (55.5, 73.0, (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    "artefact": (1.0, 4.0, (75, 36, 52, 69, 37, 29, 68, 47, 63, 80)),
}
#: Probability that a mark is seen where it is not; no mark is certain or impossible.
NOISE = 0.001
#: Bins of the chromosome, and base pairs of a bin.
N_BINS, WIDTH = 672_261, 200

#: Records of the heart-beat data, and those with a rhythm other than sinus.
RECORDS = tuple(
    str(number)
    for number in (
        *range(100, 110), *range(111, 120), *range(121, 125), *range(200, 204), 205, *range(207, 211), *range(212, 216),
        217, *range(219, 224), 228, *range(230, 235),
    )
)  # fmt: skip
RHYTHMS = {
    "(AFIB": ("201", "202", "203", "210", "217", "219", "221", "222"),
    "(B": ("106", "119", "200", "208", "213", "214", "223", "233"),
    "(T": ("124", "201", "205", "208", "215", "228"),
    "(P": ("102", "104", "107", "217"),
    "(AFL": ("202", "203", "222"),
}
#: Beats of a record, beats of an episode, and samples a second.
N_BEATS, EPISODE, RATE = 1_200, 150, 360


def write_stand_in(name: str, folder: str | PathLike[str], random_state: RandomState = 0) -> Path:
    """Write simulated files in the form of the data of an example.

    Use it to run an example of the documentation without its data: set the environment variable `SUBCHAIN_DATA` to the
    folder above.

    Parameters
    ----------
    name : {"chromatin", "mitbih"}
        Marks along a chromosome of two cell lines, with annotation; or RR intervals and rhythms of 48 records.
    folder : path
        Folder for the files; made if there is none. Files of the same names are replaced.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same files.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in write_stand_in("mitbih", folder).iterdir())
    ['mitbih_rr_beats.npz']
    """
    if name not in STAND_INS:
        raise unknown_name("stand-in", name, STAND_INS)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    STAND_INS[name](path, np.random.default_rng(random_state))
    return path


# ---- chromatin -------------------------------------------------------------------------------------------------------


def _chromatin(folder: Path, rng: np.random.Generator) -> None:
    share, dwell = (np.array([place[i] for place in PLACES.values()]) for i in (0, 1))
    visits = np.tile(share / dwell, (len(share), 1)) * (1.0 - np.eye(len(share)))
    transition = np.diag(1.0 - 1.0 / dwell) + visits / visits.sum(axis=1, keepdims=True) / dwell[:, None]
    chances = np.clip(np.array([place[2] for place in PLACES.values()]) / 100.0, NOISE, 1.0 - NOISE)
    paths = {cell: sample_chain(share / share.sum(), transition, N_BINS, rng) for cell in ("GM12878", "K562")}
    bins: dict[str, Any] = {
        cell: (rng.random((N_BINS, len(MARKS))) < chances[path]).astype(np.uint8) for cell, path in paths.items()
    }
    about: dict[str, Any] = {"bin_size": np.int32(WIDTH), "chrom": np.array("chr11"), "assembly": np.array("simulated")}
    np.savez_compressed(folder / "chromhmm_hg18_chr11.npz", **bins, marks=np.array(MARKS), **about)
    _annotation(folder, paths["GM12878"], rng)


def _annotation(folder: Path, path: NDArray[np.int32], rng: np.random.Generator) -> None:
    """Write genes that begin at promoters, CpG islands there, and quiet stretches as lamina."""
    names = list(PLACES)
    promoters = np.flatnonzero(np.diff(path, prepend=-1) * (path == names.index("active promoter")))
    others = np.sort(rng.integers(N_BINS, size=len(promoters)))  # genes that are silent in these cells
    starts = WIDTH * np.sort(np.concatenate([promoters, others])) + 100
    ends = np.minimum(starts + rng.integers(2_000, 60_000, len(starts)), WIDTH * N_BINS)
    edges = np.flatnonzero(np.diff(path == names.index("quiet"), prepend=False, append=False)).reshape(-1, 2)
    tables: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {
        "refseq_genes": (starts, ends),
        "refseq_tes": (ends - 1, ends),
        "cpg_islands": (WIDTH * promoters, WIDTH * promoters + 700),
        "laminB1_lads": (WIDTH * edges[:, 0], WIDTH * edges[:, 1]),
    }
    for name, (begin, end) in tables.items():
        _table(folder / f"{name}_chr11.tsv", "start\tend", begin, end)
    _table(folder / "refseq_tss_chr11.tsv", "pos0\tstrand", starts, rng.choice(["+", "-"], len(starts)))


def _table(path: Path, head: str, *columns: NDArray[Any]) -> None:
    rows = ("\t".join(map(str, row)) for row in zip(*columns, strict=True))
    path.write_text("\n".join([head, *rows, ""]), encoding="utf8")


# ---- heart beats -----------------------------------------------------------------------------------------------------


def _heart_beats(folder: Path, rng: np.random.Generator) -> None:
    names = ["(N", *RHYTHMS]
    codes, seconds = [], []
    for record in RECORDS:
        own = [0, *(1 + i for i, records in enumerate(RHYTHMS.values()) if record in records)]
        rhythm = np.repeat(np.resize(own, N_BEATS // EPISODE), EPISODE)
        codes.append(rhythm)
        seconds.append(rng.normal(0.8, 0.1) * _intervals(rhythm, names, rng))
    rr = np.rint(RATE * np.concatenate(seconds)).astype(np.int32)
    offsets = np.arange(0, len(rr) + 1, N_BEATS, dtype=np.int32)
    rr[offsets[:-1]] = -1  # the first beat of a record has no interval
    np.savez_compressed(
        folder / "mitbih_rr_beats.npz",
        records=np.array(RECORDS), offsets=offsets, rr=rr, fs=np.int32(RATE),
        rhythm=np.concatenate(codes).astype(np.uint8), rhythm_names=np.array(names),
        vf_before=np.zeros(len(rr), dtype=bool),
    )  # fmt: skip


def _intervals(rhythm: NDArray[np.int64], names: list[str], rng: np.random.Generator) -> NDArray[np.float64]:
    """RR intervals as multiples of the usual one."""
    beat, n = np.arange(len(rhythm)), len(rhythm)
    extra = rng.random(n) < 0.02  # early beats now and then
    sinus = np.where(extra, 0.65, np.where(np.roll(extra, 1), 1.3, 1.0))
    by_rhythm = {
        "(N": sinus,
        "(AFIB": np.clip(rng.normal(0.9, 0.22, n), 0.4, 1.8),
        "(B": np.where(beat % 2 == 0, 0.65, 1.35),
        "(T": np.where(beat % 3 == 0, 0.65, 1.15),
        "(P": np.full(n, 1.0),
        "(AFL": np.where(beat % 5 == 0, 0.8, 0.55),
    }
    base = np.choose(rhythm, [by_rhythm[name] for name in names])
    spread = np.where(rhythm == names.index("(P"), 0.005, 0.04)  # a pacemaker is regular
    return base * np.exp(rng.normal(0.0, spread))


#: How each stand-in is written.
STAND_INS: dict[str, Callable[[Path, np.random.Generator], None]] = {"chromatin": _chromatin, "mitbih": _heart_beats}
