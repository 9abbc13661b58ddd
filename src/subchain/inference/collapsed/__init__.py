"""Collapsed variational inference: clusters are visited one after the other with the parameters summed out."""
