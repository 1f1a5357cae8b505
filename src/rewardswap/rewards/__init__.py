"""Where a turn's reward comes from: the outcome, a rule, or a learned process reward model."""
