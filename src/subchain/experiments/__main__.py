"""The command: list experiments, or run one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from subchain.errors import SubchainError
from subchain.experiments.registry import EXPERIMENTS


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status says whether any claim fails."""
    parser = argparse.ArgumentParser(prog="subchain.experiments", description=__doc__)
    parser.add_argument("name", nargs="?", choices=EXPERIMENTS, help="which one (without: a list)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for table, figure and verdict")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and settings, for a look")
    parser.add_argument("--seeds", type=int, default=3, help="runs of every setting (3)")
    parser.add_argument("--budget", type=float, help="seconds of every run, for experiments that are about time")
    options = parser.parse_args(arguments)
    if options.name is None:
        for name, kind in EXPERIMENTS.items():
            print(f"{name:20} {kind.title}")
        return 0
    try:
        claims = EXPERIMENTS[options.name](options.quick, options.seeds, budget=options.budget).run(options.out)
    except SubchainError as error:
        print(error, file=sys.stderr)
        return 2
    for claim in claims:
        print(claim)
    return 1 if any(claim.failed for claim in claims) else 0


if __name__ == "__main__":
    sys.exit(main())
