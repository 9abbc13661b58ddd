"""Observations as one flat array with offsets, readers of files and tables, vocabularies, evidence on the states."""

from subchain.core.renamed import renamed_function
from subchain.data.ambiguity import Ambiguity
from subchain.data.classes import read_word_classes, word_classes
from subchain.data.conllu import TaggedText, read_conllu
from subchain.data.convert import as_sequences
from subchain.data.delimited import read_csv
from subchain.data.dependencies import Dependencies, read_dependencies
from subchain.data.dependency_writing import drawn_tree, write_dependencies
from subchain.data.evidence import Evidence
from subchain.data.held_out import HoldOut
from subchain.data.links import GoldLinks, Links, read_gold, read_links, write_links
from subchain.data.missing import check_finite, empty_columns, is_missing, missing_rows
from subchain.data.new_data import as_sequences_like
from subchain.data.parallel_reading import as_parallel_text, pack_parallel, read_parallel
from subchain.data.parallel_text import ParallelText
from subchain.data.reading import read
from subchain.data.sequences import Sequences
from subchain.data.tables import read_parquet
from subchain.data.tag_dictionary import TagDictionary
from subchain.data.tagged import read_tagged
from subchain.data.text import read_text
from subchain.data.tree import Tree
from subchain.data.vocabulary import Vocabulary

read_alike = renamed_function("read_alike", as_sequences_like)

__all__ = [
    "Ambiguity",
    "Dependencies",
    "Evidence",
    "GoldLinks",
    "HoldOut",
    "Links",
    "ParallelText",
    "Sequences",
    "TagDictionary",
    "TaggedText",
    "Tree",
    "Vocabulary",
    "as_parallel_text",
    "as_sequences",
    "as_sequences_like",
    "check_finite",
    "drawn_tree",
    "empty_columns",
    "is_missing",
    "missing_rows",
    "pack_parallel",
    "read",
    "read_alike",
    "read_conllu",
    "read_csv",
    "read_dependencies",
    "read_gold",
    "read_links",
    "read_parallel",
    "read_parquet",
    "read_tagged",
    "read_text",
    "read_word_classes",
    "word_classes",
    "write_dependencies",
    "write_links",
]
