"""How many small batches a second `partial_fit` learns from.

python -m benchmarks.streaming
"""

from __future__ import annotations

import time

import numpy as np
from rich.table import Table

from benchmarks.tables import wide_console
from subchain import HMM, Categorical

BATCHES, SIZE, ROUNDS = 500, 50, 5
FAMILIES = {
    "categorical": (Categorical(n_categories=6), lambda rng: rng.integers(0, 6, SIZE)),
    "gaussian": ("gaussian", lambda rng: rng.normal(size=(SIZE, 2))),
}


def main() -> None:
    """The command."""
    table = Table("family", "batches a second", title=f"batches of {SIZE}", title_justify="left", title_style="bold")
    for family, (emission, draw) in FAMILIES.items():
        rng = np.random.default_rng(0)
        batches = [draw(rng) for _ in range(BATCHES)]
        model = HMM(4, emission, random_state=0)
        best = 0.0
        for _ in range(ROUNDS):
            began = time.process_time()
            for batch in batches:
                model.partial_fit(batch)
            best = max(best, BATCHES / (time.process_time() - began))
        table.add_row(family, f"{best:,.0f}")
    wide_console().print(table)


if __name__ == "__main__":
    main()
