"""What is wrong with an environment, found by playing it at random and said in sentences (ours)."""
