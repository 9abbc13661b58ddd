"""Algorithms whose updates see a minibatch of subchains or sequences."""
