"""Environments that were written for another contract, as worlds of this one."""
