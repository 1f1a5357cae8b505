"""Experiments: arms of whole runs, repeated over seeds, as processes that may be stopped."""
