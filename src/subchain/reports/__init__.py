"""Report on a fitted model and data as one self-contained HTML page: no network, no server, nothing to install."""

from subchain.reports.writing import report

__all__ = ["report"]
