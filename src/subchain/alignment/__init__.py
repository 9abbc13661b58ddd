"""Word alignment: everything for parallel text, links and their scores in one place."""

from subchain.data.links import GoldLinks, Links, read_gold, read_links, write_links
from subchain.data.parallel_reading import pack_parallel, read_parallel
from subchain.data.parallel_text import ParallelText
from subchain.metrics.alignment import AlignmentReport, AlignmentScores, alignment_report
from subchain.models.aligner import WordAligner
from subchain.tasks.symmetrization import product_links, symmetrize

__all__ = [
    "AlignmentReport",
    "AlignmentScores",
    "GoldLinks",
    "Links",
    "ParallelText",
    "WordAligner",
    "alignment_report",
    "pack_parallel",
    "product_links",
    "read_gold",
    "read_links",
    "read_parallel",
    "symmetrize",
    "write_links",
]
