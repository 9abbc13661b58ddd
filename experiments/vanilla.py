"""Wang (2016), figure 3.17: what knowledge of the rest of the chain is worth, over lengths of subchains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.text import course, one_chain
from subchain import SCVI, SVI, Buffer, Guards

SETTINGS: dict[str, tuple[type[SVI] | type[SCVI], Any]] = {
    "SVI, vanilla": (SVI, "stationary"),
    "SVI": (SVI, Buffer(10)),
    "SCVI, vanilla": (SCVI, "stationary"),
    "SCVI": (SCVI, Guards("marginals")),
}
LENGTHS = (2, 5, 10)


class Vanilla(Experiment):
    """Scores after ten thousand updates."""

    name = "vanilla"
    title = "One long chain of words, with and without boundaries (Wang 2016, figure 3.17)"
    needs = ("ptb",)

    def rows(self) -> Iterable[Row]:
        text = one_chain()
        updates = 1000 if self.quick else 10_000
        for seed in range(1, self.seeds + 1):
            for length in LENGTHS:
                for setting, (kind, boundary) in SETTINGS.items():
                    where = {"setting": setting, "length": length, "seed": seed}
                    for point in course(text, kind, 45, length, boundary, 0.5, updates, seed):
                        yield where | point

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for length in LENGTHS:
            scores = {name: mean_of(rows, "score", setting=name, length=length, last=True) for name in SETTINGS}
            claims.append(
                Claim(
                    f"SCVI is ahead of SVI at length {length}",
                    scores["SCVI"] > scores["SVI"],
                    f"{scores['SCVI']:.3f}, {scores['SVI']:.3f}",
                    published="much more accurate at each length",
                )
            )
        for name in ("SVI", "SCVI"):
            gains = {
                length: mean_of(rows, "score", setting=name, length=length, last=True)
                - mean_of(rows, "score", setting=f"{name}, vanilla", length=length, last=True)
                for length in LENGTHS
            }
            shown = ", ".join(f"{gain:+.3f} at {length}" for length, gain in gains.items())
            claims.append(
                Claim(
                    f"{name}: boundaries matter most for short subchains",
                    gains[2] == max(gains.values()),
                    shown,
                    published="significant improvements where subchains are short",
                )
            )
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for number, setting in enumerate(SETTINGS):
            for length, style in zip(LENGTHS, ("-", "--", ":"), strict=True):
                points = sorted({row["updates"] for row in rows})
                scores = [mean_of(rows, "score", setting=setting, length=length, updates=point) for point in points]
                axes.plot(points, scores, style, color=f"C{number}", label=f"{setting}, {length}")
        axes.set_xlabel("updates")
        axes.set_ylabel("log probability a held-out word")
        axes.legend(fontsize=6)
