"""Sizing of a run before anything is loaded, and a dry run of all its parts."""
