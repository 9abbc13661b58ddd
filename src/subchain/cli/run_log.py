"""The course of a fit as lines of text: in a file (`--log`), and on standard error (`-v`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subchain.cli.exit_codes import UnwritableError

FORMAT = "%(asctime)s.%(msecs)03d %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


@contextmanager
def logging_to(path: Path | None, verbose: bool) -> Iterator[None]:
    """Write what the package logs to the end of a file, and to standard error if `verbose`."""
    handlers: list[logging.Handler] = [logging.StreamHandler()] if verbose else []
    if path is not None:
        try:
            handlers.append(logging.FileHandler(path, encoding="utf8"))
        except OSError as error:
            raise UnwritableError(f"the log {str(path)!r} cannot be written: {error.strerror}.") from None
    logger = logging.getLogger("subchain")
    before = logger.level, logger.propagate
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT, TIME))
        logger.addHandler(handler)
    if handlers:
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
