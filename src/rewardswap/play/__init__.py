"""Playing an environment in the terminal: a person, the oracle, or a model."""
