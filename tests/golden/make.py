"""Write the golden model files of a release, for every family that has none yet:

    PYTHONPATH=src:tests python tests/golden/make.py 0.1.0

Files that are there stay: they are what later versions must load.
"""

import json
import sys
from pathlib import Path

from examples import EVERY_FAMILY as FAMILIES
from examples import example

from subchain import HMM, VI


def main(version: str) -> None:
    """Write a file for every family, and the scores that it must give."""
    here = Path(__file__).parent
    scores_file = here / "scores.json"
    scores = json.loads(scores_file.read_text()) if scores_file.exists() else {}
    for family in FAMILIES:
        if (here / f"{family}-{version}.safetensors").exists():
            continue
        specification, data = example(family)
        model = HMM(3, specification, inference=VI(max_iter=3, tolerance=0.0), random_state=0, n_jobs=1).fit(data)
        model.state_names_ = ["low", "middle", "high"]
        name = f"{family}-{version}"
        model.save(here / f"{name}.safetensors")
        scores[name] = model.score_sequences(example(family, "ragged", seed=7)[1]).tolist()
    scores_file.write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
