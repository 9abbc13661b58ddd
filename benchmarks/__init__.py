"""Programs that measure: training speed beside other packages, start-up, and one very long chain."""
