"""Store the results of the fits in `fit_cases.py`, as a given version of the package finds them:

    PYTHONPATH=/path/to/checkout/src:tests python tests/golden/make_fits.py COMMIT [case ...]

A result that is stored already is replaced only if it was named and the table says why it changed (`changed="..."`).
"""

import sys
from pathlib import Path

from fit_cases import BY_NAME, CASES, result
from fit_data import fingerprint
from stored_results import read_results, write_results

path = Path(__file__).parent / "fits.json"
commit, *wanted = sys.argv[1:]
stored = read_results(path)
for name in wanted:
    if name not in BY_NAME:
        sys.exit(f"there is no case {name!r}")
    if name in stored and BY_NAME[name].changed == stored[name]["changed"]:
        sys.exit(f"{name!r} is stored already; say in fit_cases.py why it changed, changed='...'")
for case in CASES:
    if case.name in wanted or (not wanted and case.name not in stored):
        header = {"commit": commit, "changed": case.changed, "data": fingerprint(case.family, case.shape)}
        stored[case.name] = header | result(case, case.fit())
        print(case.name)
write_results(path, {case.name: stored[case.name] for case in CASES if case.name in stored})
