"""Wang (2016), figures 3.10 and 3.12: tagging words with a dictionary that is complete, or lacks the rare words.

The dictionary has the tags of each word in the whole sample; with d, only those of words that the tagged sentences have
at least d times. EM, VI, CVI 1 and CVI 2 begin with random local posteriors and run for fifty iterations. The sample is
smaller than the corpus of the thesis and its dictionary less ambiguous, so that orderings can be compared but not
levels.
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
    with_dictionary,
)
from subchain.inference import CVI, Algorithm

ITERATIONS = 50
SWEEPS = {1: 2000, 2: 1000, 3: 1000, 5: 1000, 10: 1000}
LEVELS = (1, 2, 3, 5, 10)
#: Chosen by the accuracy on sentences 1001 to 2000, for VI, CVI 1, CVI 2 and Gibbs.
PRIORS = {
    1: (Priors(1.0, 0.03), Priors(1.0, 0.03), Priors(1.0, 0.03), Priors(1.0, 0.03)),
    2: (Priors(1.0, 0.1), Priors(1.0, 0.03), Priors(1.0, 0.03), Priors(0.1, 0.1)),
    3: (Priors(1.0, 0.1), Priors(1.0, 0.03), Priors(1.0, 0.03), Priors(0.1, 0.1)),
    5: (Priors(0.1, 0.3), Priors(1.0, 0.03), Priors(1.0, 0.1), Priors(0.1, 0.03)),
    10: (Priors(1.0, 0.1), Priors(1.0, 0.01), Priors(1.0, 0.03), Priors(1.0, 0.03)),
}
#: The thesis's accuracies, in the order of the names; of the complete dictionary on other numbers of sentences too.
THESIS = {
    1: (81.0, 79.2, 82.9, 84.2, 85.3),
    2: (69.6, 69.6, 73.8, 77.9, 79.0),
    3: (64.7, 61.1, 65.1, 74.1, 72.5),
    5: (54.7, 54.3, 64.7, 65.0, 64.2),
    10: (43.5, 43.6, 51.2, 53.3, 55.7),
}
THESIS_SIZES = {"1-2000": (81.1, 80.5, 83.1, 85.5, 85.0), "all": (81.4, 81.4, 83.7, 85.7, 84.6)}
#: What an independent program of the same algorithms gives for d = 2.
REFERENCE = {"EM": 79.7, "VI": 83.0, "CVI 2": 85.5}

BLOCKS = {
    "1-1000": (1, 1000),
    "1-2000": (1, 2000),
    "all": (1, None),
    "2001-3000": (2001, 3000),
    "2915-3914": (2915, 3914),
}
OTHERS = ("2001-3000", "2915-3914")
OTHER_LEVELS, OTHER_SEEDS = (1, 2, 3, 10), 2
INCLUDED = "CVI 2, own included"
N_CONFUSIONS = 5
#: Who is said to be ahead of whom, and whether we have reason to doubt it.
ORDERS = (
    ("CVI 2", "VI", False),
    ("CVI 1", "VI", True),
    ("CVI 2", "CVI 1", True),
    ("EM", "VI", True),
    ("Gibbs", "CVI 2", True),
)


class Cell(NamedTuple):
    """Some sentences, a dictionary, an algorithm, and how many runs."""

    sentences: str
    d: int
    algorithm: str
    seeds: int


class DictionaryTagging(Experiment):
    """Accuracies of five algorithms over dictionaries, numbers of sentences, and blocks of them."""

    name = "dictionary_tagging"
    title = "Tagging with a dictionary (Wang 2016, figures 3.10 and 3.12)"
    needs = ("treebank",)
    quick_seeds = 2

    def _cells(self) -> Iterator[Cell]:
        for d in (2,) if self.quick else LEVELS:
            yield from (Cell("1-1000", d, name, self.seeds) for name in NAMES)
        if self.quick:
            return
        for sentences in THESIS_SIZES:
            yield from (Cell(sentences, 1, name, self.seeds) for name in NAMES)
        for d in OTHER_LEVELS:
            yield Cell("1-1000", d, INCLUDED, OTHER_SEEDS)
            for sentences in OTHERS:
                yield from (Cell(sentences, d, name, OTHER_SEEDS) for name in (*NAMES[:4], INCLUDED))

    def rows(self) -> Iterable[Row]:
        text = penn_sample()
        for sentences, d, name, seeds in self._cells():
            task = with_dictionary(block(text, *BLOCKS[sentences]), text, d)
            left_open = task.ambiguity()
            inference, priors = self._algorithm(name, d)
            for seed in range(seeds):
                found = tag(task, inference, priors, "posteriors", seed)
                if seed == 0:
                    self._tell_confusions(found.report.confusions)
                yield {
                    "sentences": sentences, "d": d, "algorithm": name,
                    "alpha": None if priors is None else priors.transitions,
                    "beta": None if priors is None else priors.words,
                    "seed": seed, "accuracy": 100.0 * found.report.accuracy, "thesis": _thesis(sentences, d, name),
                    "tags_per_token": left_open.tags_per_token, "ambiguous": left_open.ambiguous,
                    "by_chance": 100.0 * left_open.random_accuracy, "seconds": found.seconds,
                }  # fmt: skip

    def _algorithm(self, name: str, d: int) -> tuple[Algorithm, Priors | None]:
        if name == INCLUDED:
            return CVI(cluster="sequence", exclude=False, max_iter=ITERATIONS, tolerance=0.0), Priors(1.0, 0.03)
        priors = (None, *PRIORS[d])[NAMES.index(name)]
        return algorithms(ITERATIONS, 100 if self.quick else SWEEPS[d])[name], priors

    def _tell_confusions(self, confusions: Iterable[Any]) -> None:
        for confusion in list(confusions)[:N_CONFUSIONS]:
            self.tell(f"    {confusion}")

    # ---- what came out -----------------------------------------------------------------------------------------------

    def summary(self, rows: list[Row]) -> list[str]:
        heads = ("d", "tags a word", *(f"{name} [thesis]" for name in NAMES))
        lines = []
        for d in dict.fromkeys(row["d"] for row in rows):
            lines.append(_line(rows, f"{d}", "1-1000", d))
        for sentences in THESIS_SIZES if not self.quick else ():
            lines.append(_line(rows, f"1, sentences {sentences}", sentences, 1))
        written = ["accuracy", *table(heads, lines)]
        if not self.quick:
            written += ["other blocks", *self._blocks(rows)]
        return written

    def _blocks(self, rows: list[Row]) -> list[str]:
        names = (*NAMES[:4], INCLUDED)
        lines = (
            [f"{d}", *(" / ".join(f"{score:.1f}" for score in _over_blocks(rows, d, name)) for name in names)]
            for d in OTHER_LEVELS
        )
        return table(("d", *names), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for name, value in REFERENCE.items():
            found = mean_of(rows, "accuracy", sentences="1-1000", d=2, algorithm=name)
            text = f"{name} is within half a point of {value} at d = 2"
            claims.append(Claim(text, abs(found - value) <= 0.5, f"{found:.2f}"))
        levels = list(dict.fromkeys(row["d"] for row in rows))
        leads = {}
        for d in levels:
            scores = {name: mean_of(rows, "accuracy", sentences="1-1000", d=d, algorithm=name) for name in NAMES}
            thesis = dict(zip(NAMES, THESIS[d], strict=True))
            claims += [ahead(f"d = {d}", scores, *order, thesis) for order in ORDERS]
            leads[d] = scores["CVI 2"] - scores["VI"]
        return claims if self.quick else [*claims, *self._margins(rows, leads)]

    def _margins(self, rows: list[Row], leads: dict[int, float]) -> Iterator[Claim]:
        """By how much CVI 2 is ahead of VI, over dictionaries and over blocks."""
        complete, *others = leads.values()
        shown = ", ".join(f"{lead:+.1f} at d = {d}" for d, lead in leads.items())
        yield Claim("CVI 2 leads VI by more where more is open", min(others) > complete, shown)
        found = [
            ours - theirs
            for d in OTHER_LEVELS
            for ours, theirs in zip(_over_blocks(rows, d, "CVI 2"), _over_blocks(rows, d, "VI"), strict=True)
        ]
        count = sum(lead > 0.0 for lead in found)
        evidence = f"{count} of {len(found)}, at least {min(found):+.1f}"
        yield Claim("CVI 2 is ahead of VI in three of four blocks", count >= 0.75 * len(found), evidence)

    def draw(self, rows: list[Row], axes: Any) -> None:
        levels = list(dict.fromkeys(row["d"] for row in rows))
        for number, name in enumerate(NAMES):
            ours = [mean_of(rows, "accuracy", sentences="1-1000", d=d, algorithm=name) for d in levels]
            axes.plot(levels, ours, "o-", color=f"C{number}", label=name)
            axes.plot(levels, [THESIS[d][number] for d in levels], "x:", color=f"C{number}", alpha=0.6)
        axes.set_xscale("log")
        axes.set_xticks(levels, [str(d) for d in levels])
        axes.set_xlabel("d: words seen less often may have any tag (dotted: the thesis, on another corpus)")
        axes.set_ylabel("accuracy")
        axes.legend()


def _thesis(sentences: str, d: int, name: str) -> float | None:
    """The thesis's mean for the same setting, if it has one."""
    known = THESIS[d] if sentences == "1-1000" else THESIS_SIZES.get(sentences)
    return None if known is None or name not in NAMES else known[NAMES.index(name)]


def _line(rows: list[Row], title: str, sentences: str, d: int) -> list[str]:
    """A line of the table of accuracies."""
    where: dict[str, Any] = {"sentences": sentences, "d": d}
    scores = (f"{cell(rows, 'accuracy', algorithm=name, **where)} [{_thesis(sentences, d, name)}]" for name in NAMES)
    return [title, f"{mean_of(rows, 'tags_per_token', **where):.2f}", *scores]


def _over_blocks(rows: list[Row], d: int, name: str) -> list[float]:
    """Mean accuracies of the first runs on each block of a thousand sentences."""
    some = [row for row in rows if row["seed"] < OTHER_SEEDS]
    return [mean_of(some, "accuracy", sentences=block, d=d, algorithm=name) for block in ("1-1000", *OTHERS)]
