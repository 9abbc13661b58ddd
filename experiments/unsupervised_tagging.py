"""Wang (2016), figure 3.13: tags induced without a dictionary, scored in four ways.

As many states as there are tags; every word begins with one random state, and the algorithms run for so many iterations
as the corpora's settings say. Beside the thesis's corpus, of which there is a sample, UD English with its 17 universal
tags. Whoever uses few states scores well by variation of information alone, so the number of states is told too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import (
    NAMES,
    Priors,
    ahead,
    algorithms,
    block,
    cell,
    penn_sample,
    table,
    tag,
    ud_english,
)
from subchain.data import TaggedText
from subchain.metrics import TaggingReport

PENN_PRIORS = (None, Priors(1.0, 0.01), Priors(0.1, 0.003), Priors(0.1, 0.01), Priors(0.1, 0.01))
UD_PRIORS = (None, Priors(1.0, 0.03), Priors(0.1, 0.003), Priors(1.0, 0.03), Priors(0.1, 0.03))
SWEEPS = 1000


class Corpus(NamedTuple):
    """Sentences that are tagged, with the priors of the algorithms in the order of their names.

    Attributes
    ----------
    first, last : sentences of the corpus, counted from 1
    iterations : of the deterministic algorithms
    most_seeds : runs at most
    """

    name: str
    is_penn: bool
    first: int
    last: int | None
    iterations: int
    priors: tuple[Priors | None, ...]
    most_seeds: int = 10
    algorithms: tuple[str, ...] = NAMES


CORPORA = (
    Corpus("Penn 1-1000", True, 1, 1000, 100, PENN_PRIORS),
    Corpus("UD English 1-1000", False, 1, 1000, 200, UD_PRIORS),
    Corpus("Penn 2001-3000", True, 2001, 3000, 100, PENN_PRIORS, 2, NAMES[:4]),
    Corpus("Penn 2915-3914", True, 2915, 3914, 100, PENN_PRIORS, 2, NAMES[:4]),
    Corpus("Penn, all", True, 1, None, 100, PENN_PRIORS, 3),
)
#: Columns of the table: what is reported, by the names in a `TaggingReport`, in percent or as it is, digits.
MEASURES = {
    "1-1 greedy": ("greedy_one_to_one", 100.0, 1),
    "1-1 optimal": ("optimal_one_to_one", 100.0, 1),
    "M-1": ("many_to_one", 100.0, 1),
    "M-1 split": ("cross_validated_many_to_one", 100.0, 1),
    "V-I": ("variation_of_information", 1.0, 2),
    "V-M": ("v_measure", 100.0, 1),
    "states": ("states_used", 1.0, 1),
}
#: The thesis's means, in the order of the names, of a thousand sentences and of all 49,208.
THESIS = {
    "Penn 1-1000": {
        "1-1 greedy": (26.3, 24.9, 30.4, 32.5, 30.3),
        "M-1 split": (38.9, 33.6, 48.1, 50.5, 51.4),
        "V-I": (6.55, 6.86, 5.46, 5.32, 5.16),
        "V-M": (31.0, 27.9, 42.8, 44.4, 45.4),
    },
    "Penn, all": {
        "1-1 greedy": (37.6, 42.0, 39.5, 46.2, 41.3),
        "M-1 split": (59.7, 56.4, 59.2, 63.5, 63.7),
        "V-I": (4.65, 4.82, 4.31, 4.10, 4.19),
        "V-M": (51.4, 49.5, 53.3, 56.7, 56.4),
    },
}
#: V-measures that an independent program of the same algorithms gives on the first thousand sentences.
REFERENCE = {"VI": 30.4, "CVI 2": 42.5, "Gibbs": 45.2}
#: Fewer states than these are no tagging.
FEWEST = 5
#: Who is said to be ahead of whom, and whether we have reason to doubt it.
ORDERS = (
    ("CVI 2", "VI", False),
    ("CVI 1", "VI", False),
    ("CVI 2", "CVI 1", True),
    ("EM", "VI", True),
    ("Gibbs", "CVI 2", True),
)


class UnsupervisedTagging(Experiment):
    """Four metrics of five algorithms on three corpora, and V-measures of further blocks."""

    name = "unsupervised_tagging"
    title = "Tags induced without a dictionary (Wang 2016, figure 3.13)"
    needs = ("treebank", "ud-ewt")
    quick_seeds = 2

    def rows(self) -> Iterable[Row]:
        penn, ud = penn_sample(), None if self.quick else ud_english()
        for corpus in CORPORA[:1] if self.quick else CORPORA:
            text = penn if corpus.is_penn else ud
            assert text is not None
            yield from self._of_corpus(corpus, text)

    def _of_corpus(self, corpus: Corpus, text: TaggedText) -> Iterator[Row]:
        task = block(text, corpus.first, corpus.last)
        share = 0.2 if self.quick else 1.0
        known = algorithms(int(share * corpus.iterations), int(share * SWEEPS))
        for name in corpus.algorithms:
            priors = corpus.priors[NAMES.index(name)]
            for seed in range(min(self.seeds, corpus.most_seeds)):
                found = tag(task, known[name], priors, "states", seed)
                yield (
                    {"corpus": corpus.name, "algorithm": name, "seed": seed}
                    | scores(found.report)
                    | {"seconds": found.seconds}
                )

    def summary(self, rows: list[Row]) -> list[str]:
        written = []
        for corpus in dict.fromkeys(row["corpus"] for row in rows):
            names = _run(rows, corpus)
            lines = (
                [measure, *(_entry(rows, corpus, name, measure, digits) for name in names)]
                for measure, (_, _, digits) in MEASURES.items()
            )
            written += [corpus, *table(("metric", *names), lines)]
        return written

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for corpus in dict.fromkeys(row["corpus"] for row in rows):
            scores = {name: mean_of(rows, "V-M", corpus=corpus, algorithm=name) for name in NAMES}
            thesis = dict(zip(NAMES, THESIS.get(corpus, {}).get("V-M", ()), strict=False))
            claims += [
                ahead(f"V-measure, {corpus}", scores, *order, thesis)
                for order in ORDERS
                if order[0] in _run(rows, corpus)
            ]
        if not self.quick:
            for name, value in REFERENCE.items():
                reached = mean_of(rows, "V-M", corpus="Penn 1-1000", algorithm=name)
                text = f"{name}: the V-measure is within half a point of {value}"
                claims.append(Claim(text, abs(reached - value) <= 0.5, f"{reached:.2f}"))
        fewest = min(row["states"] for row in rows)
        claims.append(Claim(f"no run ends with fewer than {FEWEST} states", fewest >= FEWEST, f"{fewest:.0f}"))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        corpora = list(dict.fromkeys(row["corpus"] for row in rows))
        for number, name in enumerate(NAMES):
            for place, corpus in enumerate(corpora):
                chosen = [row["V-M"] for row in rows if (row["corpus"], row["algorithm"]) == (corpus, name)]
                axes.scatter(
                    [place + 0.12 * (number - 2)] * len(chosen), chosen, s=12, color=f"C{number}",
                    label=name if place == 0 else None,
                )  # fmt: skip
                known = THESIS.get(corpus, {}).get("V-M")
                if known is not None:
                    axes.scatter([place + 0.12 * (number - 2)], [known[number]], marker="_", s=120, color=f"C{number}")
        axes.set_xticks(range(len(corpora)), corpora, fontsize=7)
        axes.set_xlabel("dots: runs; bars: means of the thesis (its whole corpus is twelve times as large)")
        axes.set_ylabel("V-measure")
        axes.legend(fontsize=8)


def scores(report: TaggingReport) -> dict[str, float]:
    """The measures of a tagging by the names that tables have for them."""
    return {name: float(getattr(report, field)) * scale for name, (field, scale, _) in MEASURES.items()}


def _entry(rows: list[Row], corpus: str, name: str, measure: str, digits: int) -> str:
    """Ours and, in brackets, the thesis's."""
    ours = cell(rows, measure, digits, corpus=corpus, algorithm=name)
    known = THESIS.get(corpus, {}).get(measure)
    return ours if known is None else f"{ours} [{known[NAMES.index(name)]}]"


def _run(rows: list[Row], corpus: str) -> list[str]:
    """The algorithms that a corpus was tagged with."""
    used = {row["algorithm"] for row in rows if row["corpus"] == corpus}
    return [name for name in NAMES if name in used]
