"""A grammar of a file, whichever kind it is."""

from __future__ import annotations

import os

from subchain.core.files import stored_kind
from subchain.errors import FileFormatError
from subchain.models import dmv, latent_files, pcfg_files
from subchain.models.dmv import DMV
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.pcfg import PCFG

_KINDS: dict[str, type[DMV] | type[PCFG] | type[LatentPCFG]] = {
    dmv.KIND: DMV,
    pcfg_files.KIND: PCFG,
    latent_files.KIND: LatentPCFG,
}


def load_grammar(path: str | os.PathLike[str]) -> DMV | PCFG | LatentPCFG:
    """Return the grammar of a file by `save`."""
    kind = stored_kind(path)
    if kind not in _KINDS:
        raise FileFormatError(f"{path} holds a {kind or 'file of another kind'}, not a grammar.")
    return _KINDS[kind].load(path)
