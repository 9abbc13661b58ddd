"""Checks of a fitted model against data: dwell times, and statistics of data that the model simulates."""

from subchain.checks.dwelling import DwellTimes, dwell_times
from subchain.checks.predictive import Distribution, PredictiveCheck, Statistic, predictive_check

__all__ = ["Distribution", "DwellTimes", "PredictiveCheck", "Statistic", "dwell_times", "predictive_check"]
