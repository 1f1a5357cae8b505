"""RSPO from random weights in an environment of your own: about a minute on one CPU core."""

import sys

from own_environment import Field

import rewardswap as rs

seed, budget = map(int, sys.argv[1:] or (0, 45))
print(rs.check_environment(Field))
env = rs.Own.of(Field)
words = rs.heard(env.world("full"))
model = f"field-agent-{seed}"
rs.small_model(words.texts, words.commands, seed).save_pretrained(model)
run = rs.Run(
    recipe="field",
    seed=seed,
    budget=budget,
    env=env,
    policy=rs.PolicyConfig(model=model, learning_rate=5e-4, minibatches=4),
    batch=rs.Batch(tasks=8, group_size=8),
    reward=rs.RewardConfig(dense="progress"),
)
rs.train(run)
