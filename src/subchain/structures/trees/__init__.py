"""Sentences whose dependency trees are hidden."""
