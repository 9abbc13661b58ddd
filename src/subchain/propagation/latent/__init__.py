"""Trees whose symbols have latent annotations: expectations on given trees, and parsing from coarse to fine."""
