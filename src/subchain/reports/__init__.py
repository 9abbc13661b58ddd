"""A fitted model and its data as one page that opens anywhere: no network, no server, nothing to install."""

from subchain.reports.writing import report

__all__ = ["report"]
