"""Old import paths that still work: documented modules that have moved are found, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Modules that the documentation named before they moved, and where they are.
MOVED = {
    "subchain.fitted": "subchain.models.fitted",
    "subchain.memory": "subchain.models.memory",
    "subchain.model": "subchain.models.hmm",
    "subchain.records": "subchain.core.records",
    "subchain.samples": "subchain.core.samples",
    "subchain.statistics": "subchain.engines.statistics",
    "subchain.inference.posterior": "subchain.structures.chain.model",
    "subchain.inference.trace": "subchain.inference.run.trace",
}
#: Classes of these modules that have other names now.
RENAMED = {
    "subchain.statistics": {"Statistics": "HMMStatistics"},
    "subchain.inference.posterior": {"Point": "HMMPoint", "ModelPosterior": "HMMPosterior"},
}

#: Names in these modules that were renamed on the way, and what they are called now.
RENAMED = {
    "subchain.statistics": {"Statistics": "HMMStatistics"},
    "subchain.inference.posterior": {"Point": "HMMPoint", "ModelPosterior": "HMMPosterior"},
}


class MovedModules(MetaPathFinder, Loader):
    """Find modules by their old paths; what they contain is looked up in the new ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old path, after a warning; None for every other path."""
        if fullname not in MOVED:
            return None
        warnings.warn(f"{fullname} was moved; import from {MOVED[fullname]}.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Give the empty module the names of the module at the new path."""
        present = importlib.import_module(MOVED[module.__name__])
        module.__doc__ = present.__doc__
        module.__dict__.update({name: item for name, item in vars(present).items() if not name.startswith("__")})
        for old, new in RENAMED.get(module.__name__, {}).items():
            setattr(module, old, getattr(present, new))


def install() -> None:
    """Add the finder behind the others, once; `import subchain` does so."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
