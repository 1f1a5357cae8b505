"""Checkpoints: everything that a run needs to go on to the same bits."""
