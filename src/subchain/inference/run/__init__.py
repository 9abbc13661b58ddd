"""What every run goes through: the loop, restarts, checkpoints, traces, progress, validation."""
