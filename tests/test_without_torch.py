"""Without PyTorch everything but neural models works, and these say in one sentence what is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

HIDE = "import sys; sys.modules['torch'] = None; import importlib.util as u; find = u.find_spec; "
HIDE += "u.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest); "


def run(code: str) -> Any:
    return subprocess.run([sys.executable, "-c", HIDE + code], capture_output=True, text=True, timeout=120, check=False)


def test_the_package_does_not_need_it() -> None:
    done = run("import subchain; from subchain import HMM, BlockSparse; import subchain.cli.app; print('fine')")
    assert done.stdout == "fine\n", done.stderr


def test_neural_models_say_what_is_missing() -> None:
    done = run("import subchain; subchain.neural")
    assert done.stderr.splitlines()[-1] == (
        'ImportError: subchain.neural needs PyTorch, which is not installed: pip install "subchain[neural]".'
    )


def test_and_so_does_the_command() -> None:
    done = run("from subchain.cli import main; sys.argv = ['subchain', 'lm', 'score', sys.executable, 'b']; main()")
    assert done.returncode == 5
    assert "needs PyTorch" in done.stderr
    assert "Traceback" not in done.stderr
