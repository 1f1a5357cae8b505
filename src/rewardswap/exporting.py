"""The policy of a run that has not ended, as an ordinary Hugging Face folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardswap.checkpoints.files import Checkpoints
from rewardswap.models.adapter import add_adapter
from rewardswap.models.learner import Snapshot
from rewardswap.models.loading import load_language_model
from rewardswap.models.precision import round_weights
from rewardswap.rewards.features import fingerprint
from rewardswap.run_state import PARTS, fitting
from rewardswap.settings import read_run
from rewardswap.whole import refuse_taken


@dataclass(frozen=True)
class Exported:
    """Which checkpoint a policy was taken from."""

    number: int
    updates: int
    """Of the agent."""
    passed_over: tuple[str, ...]
    """Why newer checkpoints were not taken."""


def export_policy(folder: Path, output: Path) -> Exported:
    """Write the agent of a run's newest whole checkpoint into `output`, an adapter merged.

    In phase 1 that is what the explorer was branched from. The run may be at work meanwhile, or
    have been one of any number of ranks. Raises ValueError where there is no checkpoint, or the
    start policy is not what it was, UnfitCheckpointError, and UnwrittenError.
    """
    config = folder / "config.toml"
    if not config.is_file():
        raise ValueError(f"{folder} is no run folder: there is no {config.name} in it")
    policy = read_run(config).policy
    refuse_taken(output)
    found = Checkpoints(folder / "checkpoints", keep=1, parts=PARTS).newest()
    if found is None:
        kept = folder / "checkpoint"
        there = (kept / "config.json").is_file()
        raise ValueError(
            f"{folder} holds no checkpoint; "
            + (f"the run's policy is in {kept}" if there else "the run has not come to one")
        )
    if policy.model is None:
        raise ValueError(f"{config} names no policy.model; a run writes there what it began with")
    language_model = load_language_model(policy.model, chat_template=policy.chat_template)
    model = language_model.model
    if fingerprint(model) != found.state["identity"]["start_policy"]:
        raise ValueError(
            f"the model {policy.model} is not what the run in {folder} began with; bring it back"
        )
    if policy.precision == "bfloat16":
        round_weights(model)
    if policy.lora_rank is not None:
        add_adapter(model, policy.lora_rank, policy.lora_alpha, policy.lora_targets)
    with fitting(found.number):
        weights = _agent(found.state).model
        trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
        strange = model.load_state_dict(weights, strict=False).unexpected_keys
        if strange or trained - weights.keys():
            raise ValueError(f"{[*strange, *sorted(trained - weights.keys())][0]!r}")
        updates = int(found.state["trainer"]["agent_updates"])
    language_model.save_pretrained(output)
    return Exported(found.number, updates, found.passed_over)


def _agent(state: Mapping[str, Any]) -> Snapshot:
    branched = state["loop"].get("position", {}).get("agent")
    found: Snapshot = state["learners"]["policy"] if branched is None else branched.policy
    return found
