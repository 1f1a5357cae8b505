"""The frozen language model of a process reward model, where it is not the policy's own trunk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from rewardswap.models.batching import rows_of
from rewardswap.models.loading import TRUSTED, load_language_model, model_folder
from rewardswap.rewards.features import freeze
from rewardswap.rewards.rereading import reread
from rewardswap.types import Trajectory

POLICY = "policy"
"""The name of the backbone that is the start policy's own trunk."""


@dataclass(frozen=True)
class Backbone:
    """A frozen trunk, and how it comes to read what a policy has said."""

    model: nn.Module
    tokenizer: PreTrainedTokenizerBase | None = None
    """Tokenizer by which the text is read anew; none: the sampled tokens are the model's own."""

    def readable(self, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        """The trajectories in this model's tokens.

        Raises ValueError naming the task of one that, read anew, is longer than the model's
        context, and as `reread` does.
        """
        if self.tokenizer is None:
            return trajectories
        told = [reread(trajectory, self.tokenizer) for trajectory in trajectories]
        for trajectory in told:
            self._refuse_too_long(trajectory)
        return told

    def _refuse_too_long(self, trajectory: Trajectory) -> None:
        known: Any = getattr(self.model, "config", None)
        most = getattr(known, "max_position_embeddings", None)
        lengths = [len(row.tokens) for row in rows_of(trajectory, 0)]
        longest = max(*lengths, lengths[-1] + len(trajectory.final_context_ids))
        if most is not None and longest > most:
            raise ValueError(
                f"task {trajectory.task.id!r}, episode {trajectory.index} has {longest} tokens for "
                f"the backbone, whose context holds {most}; take a backbone with a longer one"
            )


def make_backbone(name: str, policy: nn.Module) -> Backbone:
    """The backbone of a name: POLICY for `policy` itself, else a model's folder or short name.

    Another model is put on the policy's device. Raises ValueError, naming the folder and the way
    out, for one that cannot be loaded or has no chat template.
    """
    if name == POLICY:
        return Backbone(freeze(policy))
    _refuse_without_template(name)
    device = next(policy.parameters()).device
    try:
        loaded = load_language_model(name, str(device))
    except ValueError as error:
        raise ValueError(f"`backbone` is {name!r}: {error}") from error
    return Backbone(freeze(_module(loaded.model)), loaded.tokenizer)


def _module(model: Any) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise TypeError(f"a language model is a torch module, got {type(model).__name__}")
    return model


def _refuse_without_template(name: str) -> None:
    """Raise ValueError where there is a tokenizer without a chat template."""
    folder = model_folder(name)
    if not (folder / "tokenizer_config.json").is_file():
        return
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **TRUSTED)
    except Exception:  # files that are broken raise whatever their readers do
        return  # loading the model says what is wrong
    if not tokenizer.chat_template:
        raise ValueError(
            f"`backbone` is {name!r}, whose tokenizer in {folder} has no chat template, by which "
            "trajectories are told to it; save one as chat_template.jinja in that folder, or take "
            "its instruct version, or backbone policy"
        )
