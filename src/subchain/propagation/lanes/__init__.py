"""Forward-backward over many chains side by side."""
