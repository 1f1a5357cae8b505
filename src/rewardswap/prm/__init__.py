"""Process reward models on their own: rollouts to fit them on, fitting them, judging them."""
