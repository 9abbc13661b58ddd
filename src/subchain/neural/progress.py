"""A line for each epoch."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from subchain.neural.training import NeuralTrace


def printer(is_shown: bool) -> Callable[[NeuralTrace], None]:
    """Return a function that prints the last epoch of a trace to standard error, or nothing."""
    return _print if is_shown else lambda _: None


def _print(trace: NeuralTrace) -> None:
    print(line(trace), file=sys.stderr, flush=True)


def line(trace: NeuralTrace) -> str:
    """Return the last epoch of a trace in one line."""
    parts = [f"epoch {len(trace)}", f"training perplexity {trace.train[-1]:.2f}"]
    if not math.isnan(trace.validation[-1]):
        parts.append(f"validation {trace.validation[-1]:.2f}")
    if not math.isnan(trace.averaged[-1]):
        parts.append(f"averaged {trace.averaged[-1]:.2f}")
    return ", ".join([*parts, f"step size {trace.learning_rate[-1]:.2g}", f"{trace.seconds[-1]:.1f} s"])
