"""Several machines: Ray places ranks, environment workers and rollout engines.

Only this room imports ray, and nothing of it is imported unless `--cluster ray` is given.
"""
