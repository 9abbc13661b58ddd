"""`subchain align-score`: compare links with gold links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subchain.cli import options
from subchain.cli.output import Output, command_output

if TYPE_CHECKING:
    from subchain.data import GoldLinks, Links

#: How much lower the error rate must be with gold links the other way round before a note says so.
CLEARLY = 0.3


def align_score(
    links: Annotated[Path, typer.Argument(metavar="LINKS", help="Links as `subchain align` writes them.")],
    gold: Annotated[
        Path, typer.Argument(metavar="GOLD", help="Gold links: i-j for sure ones, i?j or ipj for possible ones.")
    ],
    swap: Annotated[bool, typer.Option("--swap", help="GOLD has the target position first.")] = False,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="FROM-TO", help="The lines of LINKS that GOLD belongs to, counted from 1."),
    ] = None,
    text: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--text", metavar="SOURCE TARGET", help="The text of GOLD, to check all positions by."),
    ] = None,
    level: Annotated[float, typer.Option("--level", metavar="P", help="Probability of the intervals.")] = 0.95,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Compute precision, recall, F1 and the alignment error rate (AER) of links.

    Intervals are bootstrap intervals over sentence pairs.
    """
    with command_output(as_json) as out:
        from subchain.cli.inputs import existing
        from subchain.data import read_gold, read_links, read_parallel
        from subchain.data.links import check_inside
        from subchain.metrics import alignment_report

        for path in (links, gold, *(text or ())):
            existing(path)
        sentences = None if text is None else read_parallel(*text)
        wanted = read_gold(gold, sentences, swap)
        found, first_line = _chosen(read_links(links), lines, links, len(wanted.sure), gold)
        if sentences is not None:
            check_inside(found, sentences, repr(str(links)), first_line)
        report = alignment_report(found, *wanted, level=level, random_state=seed)
        out.add(
            **report.scores._asdict(),
            intervals=dict(zip(report.scores._fields, zip(report.low, report.high, strict=True), strict=True)),
            level=level, n_pairs=report.n_pairs, n_links=report.n_links, n_sure=report.n_sure,
            n_possible=report.n_possible,
        )  # fmt: skip
        out.line(str(report))
        _note_of_order(out, found, wanted, report.scores.aer, swap)


def _chosen(found: Links, lines: str | None, path: Path, n_gold: int, gold: Path) -> tuple[Links, int]:
    """Return the links of the chosen lines, and the first of these lines; there must be one line per gold line."""
    from subchain.errors import InputError

    first_line = 1
    if lines is not None:
        first, dash, last = lines.partition("-")
        if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
            raise InputError(f"--lines must be a range such as 38-484, not {lines!r}.")
        if int(last) > len(found):
            raise InputError(f"--lines {lines} is outside {str(path)!r}, which has {len(found):,} lines.")
        first_line = int(first)
        found = found.between(first_line - 1, int(last))
    if len(found) != n_gold:
        raise InputError(
            f"{str(path)!r} has {len(found):,} {'chosen ' if lines else ''}lines, but {str(gold)!r} has {n_gold:,}; "
            "choose the lines that the gold links belong to with --lines FROM-TO."
        )
    return found, first_line


def _note_of_order(out: Output, found: Links, wanted: GoldLinks, aer: float, swap: bool) -> None:
    """Add a note if the gold links fit far better the other way round."""
    from subchain.metrics.alignment import link_counts, scores_of

    counts = link_counts(found, wanted.sure.swapped(), wanted.possible.swapped())
    other = float(scores_of(counts.sum(axis=0)).aer)
    if other < aer - CLEARLY:
        out.note(
            f"with source and target of the gold links exchanged AER is {other:.2%}; "
            + ("leave --swap out." if swap else "add --swap if GOLD has the target position first.")
        )
