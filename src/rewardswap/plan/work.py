"""What one update costs in episodes, tokens, environment steps and FLOPs."""

from dataclasses import dataclass

from rewardswap.plan.compute import forward_flops, training_passes
from rewardswap.plan.sizing import Sizing


@dataclass(frozen=True)
class Work:
    """Of one step of a loop, or of several together."""

    episodes: float
    environment_steps: float
    prompt_tokens: float
    """Tokens that are read and not sampled."""
    action_tokens: float
    """Tokens that are sampled."""
    trained_tokens: float
    """Tokens of all rows of the update, replayed ones too."""
    trained_actions: float
    """Action tokens among them."""
    rows: float
    """Rows of the update."""
    flops: float

    def __add__(self, other: "Work") -> "Work":
        mine, theirs = vars(self), vars(other)
        return Work(**{name: mine[name] + theirs[name] for name in mine})

    def times(self, factor: float) -> "Work":
        """So many of it."""
        return Work(**{name: factor * value for name, value in vars(self).items()})


def collection(sizing: Sizing) -> Work:
    """One collection: every token is read once (ours: the cache lives between turns)."""
    lengths, episodes = sizing.lengths, float(sizing.episodes)
    tokens, actions = episodes * lengths.tokens, episodes * lengths.action_tokens
    flops = forward_flops(sizing.shape, tokens=tokens, action_tokens=actions, context=lengths.seen)
    steps = episodes * lengths.turns
    return Work(episodes, steps, tokens - actions, actions, 0.0, 0.0, 0.0, flops)


def fitting(sizing: Sizing, *, replayed: int = 0) -> Work:
    """One update on a collection: log-probs before it, those of the reference, and the training.

    Of rows of advantage 0 nothing is saved here, so it is the most there is. The critic scores and
    trains as many tokens as the policy, without the head.
    """
    lengths, run = sizing.lengths, sizing.run
    algorithm = run.method.algorithm()
    count = sizing.episodes + replayed
    tokens, actions = count * lengths.tokens, count * lengths.action_tokens
    passes = training_passes(
        adapter=run.policy.lora_rank is not None,
        checkpointing=run.policy.gradient_checkpointing,
    )
    scored = 1 + int(algorithm.needs_reference)
    flops = (passes + scored) * forward_flops(
        sizing.shape, tokens=tokens, action_tokens=actions, context=lengths.seen
    )
    if algorithm.critic is not None:
        flops += (passes + 1) * forward_flops(
            sizing.shape, tokens=tokens, action_tokens=0.0, context=lengths.seen
        )
    return Work(0.0, 0.0, 0.0, 0.0, tokens, actions, count * lengths.rows, flops)


def steps_of_loop(sizing: Sizing) -> dict[str, tuple[int, Work]]:
    """How often a loop does what, and one of each: explore, harvest, learn."""
    run = sizing.run
    fitted = fitting(sizing, replayed=sizing.replayed)
    if run.loop != "rspo":
        return {"learn": (1, collection(sizing) + fitted)}
    swap = run.swap
    steps: dict[str, tuple[int, Work]] = {}
    if sizing.replayed:
        scored = forward_flops(
            sizing.shape,
            tokens=sizing.episodes * sizing.lengths.tokens,
            action_tokens=sizing.episodes * sizing.lengths.action_tokens,
            context=sizing.lengths.seen,
        )
        harvest = Work(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2 * scored).times(float(sizing.harvests))
        if swap.explore_steps:
            steps["explore"] = (swap.explore_steps, collection(sizing) + fitting(sizing))
        if swap.harvest != "during" or not swap.explore_steps:
            harvest = collection(sizing) + harvest
        steps["harvest"] = (1, harvest)
    played = (swap.learn_steps - swap.reuse_first_batch) / swap.learn_steps
    steps["learn"] = (swap.learn_steps, collection(sizing).times(played) + fitted)
    return steps


def per_agent_update(sizing: Sizing) -> Work:
    """All of a loop, shared among the agent's updates in it."""
    steps = steps_of_loop(sizing)
    learns = steps["learn"][0]
    parts = [work.times(count / learns) for count, work in steps.values()]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
