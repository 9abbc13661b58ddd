"""Data that experiments need and the package may not carry: where they are looked for, and where they come from.

The folder is that of the environment variable SUBCHAIN_DATA, or `../shared/data`.
"""

from __future__ import annotations

import os
from pathlib import Path

from subchain.errors import InputError

#: The variable that names the folder, and the folder if it is not set.
VARIABLE, USUAL = "SUBCHAIN_DATA", "../shared/data"

#: What a folder of data holds, and where a person gets it.
SOURCES = {
    "ptb": (
        "the language-modelling text of the Penn Treebank (ptb.train.txt, packed with gzip): part of the "
        "simple-examples of Mikolov's RNNLM toolkit; the text is licensed by the LDC (LDC99T42)"
    ),
    "wikitext2": (
        "WikiText-2 (wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens, packed with xz): Merity et al. 2016, "
        "CC BY-SA 3.0"
    ),
    "treebank": (
        "wsj-sample.tagged.tsv.gz, word and tag on a line, a blank line after each sentence: from the NLTK data "
        "package 'treebank', a tenth of the Penn Treebank, for non-commercial use; and "
        "wsj-sample.dependencies.tsv.gz, word, tag and head: from the package 'dependency_treebank'; for trees "
        "wsj-sample.trees.txt.gz, a bracketed tree on a line, and wsj-sample.files.tsv, each file's number of trees"
    ),
    "ud-ewt": (
        "en_ewt-ud-train.conllu, packed with gzip: UD_English-EWT of Universal Dependencies "
        "(universaldependencies.org), CC BY-SA 4.0"
    ),
    "hansards": (
        "English and French of the Canadian parliament: train.e.xz, train.f.xz, and the hand-aligned pairs dev37 and "
        "test447 (.e, .f, .a: French position, - or ?, English position), the sets of the HLT-NAACL 2003 shared task"
    ),
    "zulu-verbs": (
        "zulu-verbs-core2283.tsv, packed with gzip: word, and its morphemes joined by hyphens; 2,283 verbs of the "
        "Ukwabelana corpus (github.com/NWU-MuST/bristol-mt-morphology), GNU GPL 3"
    ),
    "audio": (
        "music_codewords.npz, arrays train and test of 50 codewords a row: spectral features of the music of SuperTux "
        "(supertux/supertux) and Xonotic (xonotic/xonotic-music.pk3dir), clustered into 256"
    ),
    "chromatin": (
        "marks of chromosome 11 as arrays (chromhmm_hg18_chr11.npz) and refseq_tss_chr11.tsv: from SAMPLEDATA_HG18 and "
        "ANCHORFILES of ChromHMM, github.com/jernst98/ChromHMM"
    ),
    "mitbih": (
        "mitbih_rr_beats.npz, beats, RR intervals and rhythms of all 48 records as arrays: from the annotations of the "
        "MIT-BIH Arrhythmia Database, physionet.org/content/mitdb"
    ),
}


class MissingDataError(InputError):
    """Data of an experiment that are not there."""


def data_folder() -> Path:
    """Where data are looked for."""
    return Path(os.environ.get(VARIABLE, USUAL))


def data_file(*parts: str) -> Path:
    """A file of a corpus that is not part of the package."""
    path = data_folder().joinpath(*parts)
    if not path.exists():
        source = f" It is {SOURCES[parts[0]]}." if parts[0] in SOURCES else ""
        raise MissingDataError(
            f"{path} does not exist; set SUBCHAIN_DATA (or --data) to the folder that holds {parts[0]}/.{source}"
        )
    return path


def is_there(corpus: str) -> bool:
    """Whether the data folder holds a corpus."""
    return data_folder().joinpath(corpus).is_dir()
