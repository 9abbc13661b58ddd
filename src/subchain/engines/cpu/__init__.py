"""The engine that runs on the cores of this machine."""
