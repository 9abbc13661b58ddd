"""What pytest collects: examples in docstrings of `subchain.neural` only where PyTorch is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") is not None else ["src/subchain/neural/*"]
