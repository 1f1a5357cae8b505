"""The lengths of a run: its world, its prompts, and its tokenizer where that is there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from rewardswap.configuration import Run
from rewardswap.envs.base import World
from rewardswap.models.loading import TRUSTED, end_token_ids, model_folder, read_template, reason_of
from rewardswap.plan.lengths import Lengths, assumed, counted, wander
from rewardswap.plan.shapes import Blueprint
from rewardswap.plan.speech import spoken, thinks_in
from rewardswap.rollout.prompting import CHAT, Context, make_context
from rewardswap.types import IntArray

EPISODES = 8
"""How many episodes are played to measure lengths."""
THINKING_TOKENS = 100
"""Tokens of thinking in one action where its form asks for some (assumed, ours)."""


@dataclass(frozen=True)
class RunLengths:
    """What a run's turns come to, and what is known of its tasks."""

    lengths: Lengths
    """Of episodes as long as the turn cap."""
    tasks: int
    """Tasks of the training split."""
    evaluated: int
    """Tasks of the panel, all of which are played at once."""
    source: str
    """Where the lengths come from, in words."""
    action_cap: int
    """Most tokens of one action."""
    thinking: int
    """Tokens of each action that are assumed to be thinking."""


def measure_lengths(run: Run, blueprint: Blueprint) -> RunLengths:
    """Play some tasks of the run at random and count; raises ValueError as its world does."""
    env = run.env
    world = env.world(blueprint.wording)
    tasks = world.tasks(env.train_split)
    played = wander(world, tasks[:EPISODES], world.turn_limit, run.seed)
    tokenizer = _tokenizer(blueprint, run.policy.chat_template)
    thinking = THINKING_TOKENS if thinks_in(env) else 0
    say = partial(spoken, env=env)
    if tokenizer is None:
        style = None if env.prompt == CHAT else world.prompt_styles[env.prompt]
        found = [assumed(world.instructions, style, env.window, say, e) for e in played]
        source = "assumed: 4 characters a token, 8 tokens of template a message"
    else:
        ends = end_token_ids(blueprint.generation, tokenizer)
        context = _context(run, world, tokenizer, ends)

        def said(action: str) -> IntArray:
            ids = tokenizer.encode(say(action), add_special_tokens=False)
            return np.array([*ids, ends[0]], dtype=np.int64)

        found = [counted(context, said, episode) for episode in played]
        source = "measured with the model's tokenizer"
    cap = blueprint.action_tokens if run.policy.action_tokens is None else run.policy.action_tokens
    lengths = Lengths(tuple(found)).thinking(thinking, cap)
    evaluated = world.tasks(env.panel_split)[: env.evaluation_tasks]
    return RunLengths(lengths, len(tasks), len(evaluated), source, cap, thinking)


def _tokenizer(blueprint: Blueprint, chat_template: Path | None) -> PreTrainedTokenizerBase | None:
    """The folder's tokenizer with the run's template, or none for a published shape.

    Raises ValueError where one of them cannot be read.
    """
    template = None if chat_template is None else read_template(chat_template)
    if blueprint.source != "folder":
        return None
    folder = model_folder(blueprint.name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **TRUSTED)
    except Exception as error:  # files that are broken raise whatever their readers do
        reason = reason_of(error)
        raise ValueError(f"the tokenizer in {folder} cannot be read: {reason}") from error
    if template is not None:
        tokenizer.chat_template = template
    return tokenizer


def _context(
    run: Run, world: World, tokenizer: PreTrainedTokenizerBase, ends: Sequence[int]
) -> Context:
    env = run.env
    return make_context(
        tokenizer,
        world,
        env.prompt,
        ends,
        window=env.window,
        thinking=env.thinking,
        action_format=env.action_format,
    )
