"""Wang (2016), figure 3.6: what it costs to predict several observations at once as if each were the next.

Collapsed inference visits a whole sequence under counts that do not grow while it is visited. Exactly, each of its
observations would be predicted by counts in which those before it are contained too. Measured is the mean difference of
the two probabilities, (3.53), for draws from distributions that come from the prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row, mean_of

KNOWN = (1_000, 1_000_000)
#: Concentration of each category, and how many there are.
PRIORS = ((0.1, 10), (0.1, 50), (10.0, 10))
RUNS = 20


class JointPredictive(Experiment):
    """Errors for numbers of known and of predicted observations."""

    name = "joint_predictive"
    title = "Predicting observations at once as if each were the next (Wang 2016, figure 3.6)"

    def rows(self) -> Iterable[Row]:
        for known in KNOWN[:1] if self.quick else KNOWN:
            for beta, n_categories in PRIORS:
                for run in range(RUNS):
                    errors = running_error(known, beta, n_categories, np.random.default_rng([run, known]))
                    for predicted in powers_of_ten(known):
                        yield {
                            "known": known, "beta": beta, "categories": n_categories, "predicted": predicted,
                            "run": run, "error": float(errors[predicted - 1]),
                        }  # fmt: skip

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for beta, n_categories in PRIORS:
            prior = {"beta": beta, "categories": n_categories}
            for known in dict.fromkeys(row["known"] for row in rows):
                errors = [mean_of(rows, "error", known=known, predicted=m, **prior) for m in powers_of_ten(known)]
                claims.append(
                    Claim(
                        f"β = {beta}, K = {n_categories}, I = {known:.0e}: the error grows with M",
                        bool((np.diff(errors) > 0.0).all()),
                        ", ".join(f"{error:.1e}" for error in errors),
                        published="grows with M",
                    )
                )
            if not self.quick:
                claims += self._of_many(rows, prior)
        return claims

    def _of_many(self, rows: list[Row], prior: dict[str, Any]) -> Iterable[Claim]:
        """What the thesis says of a million known observations."""
        few, many = KNOWN
        title = f"β = {prior['beta']}, K = {prior['categories']}"
        falls = {
            m: (
                mean_of(rows, "error", known=few, predicted=m, **prior),
                mean_of(rows, "error", known=many, predicted=m, **prior),
            )
            for m in powers_of_ten(few)[1:]
        }
        yield Claim(
            f"{title}: the error falls with I",
            all(more < less for less, more in falls.values()),
            ", ".join(f"{more / less:.0e} times at M = {m}" for m, (less, more) in falls.items()),
            published="dramatically smaller for larger I",
        )
        for predicted, limit in ((10, 1e-6), (1000, 1e-5)):
            error = mean_of(rows, "error", known=many, predicted=predicted, **prior)
            text = f"{title}: below {limit:.0e} at I = 1e+06, M = {predicted}"
            yield Claim(text, error < limit, f"{error:.1e}", published=f"below {limit:.0e}")

    def draw(self, rows: list[Row], axes: Any) -> None:
        for known, style in zip(KNOWN, ("--", "-"), strict=True):
            for number, (beta, n_categories) in enumerate(PRIORS):
                chosen = [
                    row for row in rows if (row["known"], row["beta"], row["categories"]) == (known, beta, n_categories)
                ]
                points = sorted({row["predicted"] for row in chosen} - {1})
                found = [[row["error"] for row in chosen if row["predicted"] == point] for point in points]
                axes.errorbar(
                    points, [np.mean(errors) for errors in found], [np.std(errors) for errors in found],
                    linestyle=style, color=f"C{number}", label=f"I = {known:.0e}, β = {beta}, K = {n_categories}",
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("observations that are predicted, M (with one there is no error)")
        axes.set_ylabel("mean error of a probability")
        axes.legend(fontsize=7)


def powers_of_ten(largest: int) -> list[int]:
    """1, 10, … up to a power of ten."""
    return [10**power for power in range(round(np.log10(largest)) + 1)]


def running_error(known: int, beta: float, n_categories: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(3.53) for the first 1, 2, … of as many observations as are known."""
    probabilities = rng.dirichlet(np.full(n_categories, beta))
    counts = rng.multinomial(known, probabilities)
    observed = rng.choice(n_categories, size=known, p=probabilities)
    before = np.arange(known)
    total = known + n_categories * beta
    fixed = counts[observed] + beta
    exact = (fixed + earlier_alike(observed, n_categories)) / (total + before)
    errors: NDArray[np.float64] = np.cumsum(np.abs(exact - fixed / total)) / (before + 1)
    return errors


def earlier_alike(observed: NDArray[np.int64], n_categories: int) -> NDArray[np.int64]:
    """How many observations before each one were the same."""
    found = np.empty(len(observed), dtype=np.int64)
    for category in range(n_categories):
        positions = np.flatnonzero(observed == category)
        found[positions] = np.arange(len(positions))
    return found
