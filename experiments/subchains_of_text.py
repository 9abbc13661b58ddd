"""Wang & Blunsom (2015), figure 2: SVI and SCVI on one long chain of words, with and without knowledge of the rest.

Twelve states, a thousand words an update, five thousand updates; the score is the mean log probability of held-out
words given all others. Beside the paper's curves: stored messages in place of stored marginals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.text import course, one_chain
from subchain import SCVI, SVI, Buffer, Guards

SETTINGS: dict[str, tuple[type[SVI] | type[SCVI], Any]] = {
    "SVI": (SVI, "stationary"),
    "SVI, buffer": (SVI, Buffer(20)),
    "SCVI": (SCVI, "stationary"),
    "SCVI, marginals": (SCVI, Guards("marginals")),
    "SCVI, messages": (SCVI, Guards("messages")),
    "SCVI, buffer": (SCVI, Buffer(20)),
}


class SubchainsOfText(Experiment):
    """The table behind the figure: settings × lengths × forgetting rates × seeds."""

    name = "subchains_of_text"
    title = "Held-out words of one long chain (Wang & Blunsom 2015, figure 2)"
    needs = ("ptb",)

    def rows(self) -> Iterable[Row]:
        text = one_chain()
        updates = 1000 if self.quick else 5000
        for setting, length, forgetting in self._cells():
            kind, boundary = SETTINGS[setting]
            for seed in range(1, self.seeds + 1):
                where = {"setting": setting, "length": length, "forgetting": forgetting, "seed": seed}
                for point in course(text, kind, 12, length, boundary, forgetting, updates, seed):
                    yield where | point

    def _cells(self) -> Iterator[tuple[str, int, float]]:
        for forgetting in (0.5,) if self.quick else (0.5, 0.9):
            for length in (2, 10) if self.quick else (2, 3, 10):
                for setting in SETTINGS:
                    if forgetting == 0.5 or setting != "SCVI, buffer":
                        yield setting, length, forgetting

    def claims(self, rows: list[Row]) -> list[Claim]:
        def score(setting: str, length: int, forgetting: float = 0.5) -> float:
            return mean_of(rows, "score", setting=setting, length=length, forgetting=forgetting, last=True)

        claims = []
        for length in sorted({row["length"] for row in rows}):
            ahead = score("SCVI, messages", length) - score("SVI, buffer", length)
            claims.append(
                Claim(
                    f"collapsing is worth at least 0.25 at length {length}",
                    ahead >= 0.25,
                    f"{ahead:.3f} a word",
                    published="ahead by large margins",
                    doubted=self.quick,  # a thousand updates are too few
                )
            )
            gain = score("SCVI, messages", length) - score("SCVI, marginals", length)
            claims.append(Claim(f"messages are as good as marginals at length {length}", gain > -0.05, f"{gain:+.3f}"))
        guarded = score("SCVI, messages", 2) - score("SCVI", 2)
        claims.append(
            Claim(
                "guards are worth at least 0.25 at length 2",
                guarded >= 0.25,
                f"{guarded:.3f}",
                self.quick,
                published="noticeable improvements where subchains are short",
            )
        )
        if not self.quick:
            for length in (2, 10):
                found = score("SCVI, messages", length)
                claims.append(
                    Claim(f"SCVI with messages reaches −5.70 at length {length}", found >= -5.70, f"{found:.3f}")
                )
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for setting in SETTINGS:
            for length, style in ((2, "-"), (10, ":")):
                points = sorted({row["updates"] for row in rows if row["length"] == length})
                scores = [
                    mean_of(rows, "score", setting=setting, length=length, forgetting=0.5, updates=point)
                    for point in points
                ]
                color = f"C{list(SETTINGS).index(setting)}"
                axes.plot(points, scores, style, color=color, label=setting if length == 2 else None)
        axes.set_xlabel("updates (solid: length 2, dotted: length 10; forgetting 0.5)")
        axes.set_ylabel("log probability a held-out word")
        axes.legend(fontsize=8)
