"""Rendering of the report page from its template, and writing it as one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from subchain.core.files import checked_target, replace_file
from subchain.data.links import GoldLinks
from subchain.errors import InputError
from subchain.models.aligner import WordAligner
from subchain.models.dmv import DMV
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.pcfg import PCFG
from subchain.reports import emitted, facts, goodness, uncertainty
from subchain.reports.alignment import alignment_page
from subchain.reports.cards import borders, cards
from subchain.reports.convergence import convergence
from subchain.reports.grammar import grammar_page
from subchain.reports.packing import Packing, as_roots
from subchain.reports.positions import Positions
from subchain.reports.rendering import render_page
from subchain.reports.reproduction import script
from subchain.reports.subject import Subject
from subchain.reports.timeline import timeline

#: Scripts and styles of a page in the order of execution; paths are relative to this package.
SCRIPTS = (
    "page/base.js",
    "page/recorder.js",
    "page/figures.js",
    "page/charts.js",
    "page/curves.js",
    "page/emitted.js",
    "page/goodness.js",
    "page/moves.js",
    "page/timeline.js",
    "page/names.js",
    "page/start.js",
)
STYLES = ("page/page.css",)


def report(
    model: Any,
    x: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    step: float = 1,
    unit: str | None = None,
    offset: float = 0,
    allowed: Any = None,
    states: Any = None,
    evidence: Any = None,
    gold: GoldLinks | None = None,
    pairs: Iterable[int] | None = None,
) -> None:
    """Write a report on a fitted model and data: one self-contained HTML file.

    Use it to inspect a fit or to share it. The data are scanned in blocks, so that sequences of any length are
    possible; the page stays small.

    Parameters
    ----------
    model : HMM, WordAligner, DMV, PCFG or LatentPCFG
        A fitted or loaded model.
    x : array, list of arrays, (X, lengths), Sequences, path, or table
        The data to show, in any form that `HMM.fit` takes. For an aligner: parallel text, a file of it, a tuple of two
        files or lists of sentences, or None for the text that it was fitted to. For a grammar: sentences in any form
        that it parses; their trees, if they have any, are shown beside those of the grammar, and give scores.
    path : str or path
        The file to write. The write is atomic.
    title : str, optional
        Heading of the page; by default the name of the data's file, if there is one.
    step, unit, offset : float, str, float, optional
        Coordinates of positions: position i of a sequence is at `offset + i * step`, in `unit`. Give
        `step=200, unit="bp"` for bins of 200 base pairs, and `step=0.02, unit="s"` for 50 observations per second.
    allowed, states, evidence
        Evidence about the states, as in `HMM.predict`.
    gold : GoldLinks, optional
        For an aligner: links of the first sentence pairs by annotators, which are shown and give scores.
    pairs : sequence of int, optional
        For an aligner: numbers of the sentence pairs whose alignments are shown, from 0; by default 200 of them.

    Raises
    ------
    InputError
        If the model is not fitted, the data do not fit it, `step`, `unit` or `offset` are invalid, or the file cannot
        be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from subchain import HMM, report
    >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
    >>> model = HMM(n_states=2, emission="categorical", random_state=0).fit(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(model, x, f"{folder}/report.html")
    """
    target = checked_target(path)  # fail before the computation, not after it
    if isinstance(model, (DMV, PCFG, LatentPCFG)):
        if (step, unit, offset, allowed, states, evidence, gold, pairs) != (1, None, 0, None, None, None, None, None):
            raise InputError("a report on a grammar takes sentences, path and title= only; gold trees are those of x.")
        replace_file(target, grammar_page(model, x, title).encode("utf8", "replace"))
        return
    if isinstance(model, WordAligner):
        if (step, unit, offset, allowed, states, evidence) != (1, None, 0, None, None, None):
            raise InputError("step=, unit=, offset=, allowed=, states= and evidence= are for HMMs, not for aligners.")
        replace_file(target, alignment_page(model, x, title, gold, pairs).encode("utf8", "replace"))
        return
    if gold is not None or pairs is not None:
        raise InputError("gold= and pairs= are for word aligners.")
    positions = Positions.read(step, unit, offset)
    subject = Subject.read(model, x, {"allowed": allowed, "states": states, "evidence": evidence})
    content = render(subject, positions, title or facts.title(x, subject)).encode("utf8", "replace")
    replace_file(target, content)


def render(subject: Subject, positions: Positions, title: str) -> str:
    """Return the page as HTML text."""
    sections = contents(subject, positions)
    return render_page(
        "page/page.html", SCRIPTS, STYLES, sections,
        title=title,
        headline=facts.headline(subject),
        left_out=facts.left_out(subject),
        facts=facts.facts(subject),
        cards=cards(subject, positions),
        borders=borders(subject),
        course=sections["course"],
        heat=sections["heat"],
        pairs=sections["pairs"],
        dwelling=sections["dwelling"],
        check=sections["check"],
        simulations=goodness.about_simulations(subject),
        moves=sections["frequent"],
        drawn=uncertainty.sampler_summary(subject),
        intervals=subject.intervals,
        call=script(subject, positions),
        origins=facts.origins(subject),
        n_sequences=subject.data.n_sequences,
    )  # fmt: skip


def contents(subject: Subject, positions: Positions) -> dict[str, Any]:
    """Return the data of the page's scripts as JSON values."""
    packing = Packing()
    packing.add("transition", as_roots(subject.transition))
    found = subject.intervals
    if found is not None and found.transition is not None:
        packing.add("transitionBounds", as_roots(found.transition))
    whole = subject.summary.whole
    along = timeline(subject, packing)
    paired = emitted.pairs(subject, packing)
    return {
        "fingerprint": subject.data.fingerprint(),
        "states": [
            {"number": number, "name": name, "occupancy": round(float(share), 6)}
            for number, name, share in zip(subject.shown.tolist(), subject.names, subject.occupancy, strict=True)
        ],
        "order": subject.order.tolist(),
        "course": convergence(subject),
        "heat": emitted.heat_map(subject),
        "pairs": paired,
        "dwelling": goodness.dwelling(subject, positions),
        "check": goodness.predictive(subject),
        "certainty": uncertainty.certainty(subject),
        "frequent": uncertainty.frequent_transitions(subject),
        "doubt": (whole.mean_entropies() / np.log(2)).round(4).tolist(),
        "nPositions": subject.data.n_observations,
        "positions": positions.as_json(),
        "sequences": uncertainty.sequence_starts(subject),
        "timeline": along,
        "arrays": packing.index,
        "block": packing.block(),
    }
