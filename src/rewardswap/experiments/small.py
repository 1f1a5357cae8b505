"""The smallest experiment: whether everything works here, in two minutes of one core."""

from dataclasses import replace

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.experiments.experiment import Arm, Experiment
from rewardswap.recipes import demo


def smoke() -> Experiment:
    """GRPO and RSPO on a few generated games for a few updates: tries the machinery, shows nothing.

    The dense reward is the rule-based one, which needs no fitting.
    """
    start = demo()
    swapped = replace(
        start,
        budget=4,
        env=Alfworld(generated_games=40, evaluation_tasks=20, turn_limit=8),
        policy=replace(start.policy, minibatches=1),
        batch=replace(start.batch, tasks=4, group_size=4),
        swap=replace(start.swap, explore_steps=1, learn_steps=2, alpha=0.25),
        reward=type(start.reward)(dense="progress"),
    )
    return Experiment(
        "smoke",
        "Does everything work here? GRPO and RSPO for four updates on a few generated games.",
        (
            Arm("grpo", replace(swapped, loop="on_policy"), (0, 1)),
            Arm("rspo", swapped, (0, 1), baseline="grpo"),
        ),
    )
