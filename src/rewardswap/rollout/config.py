"""The engine of a run as a value."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewardswap.checks import at_least, positive
from rewardswap.rollout.limits import CutActions, Limits

LOCAL = "http://127.0.0.1:8000"
"""Where `vllm serve` listens unless told otherwise; nothing else than `url` leads elsewhere."""

EngineName = Literal["hugging_face", "vllm", "server"]

Transfer = Literal["folder", "nccl"]

OWNERS: dict[str, EngineName] = {
    "refill": "hugging_face",
    "context_limit": "vllm",
    "memory_share": "vllm",
    "sleeps": "vllm",
    "url": "server",
    "more_urls": "server",
    "server_model": "server",
    "transfer": "server",
    "exchange": "server",
}
"""Settings that one engine alone has."""


@dataclass(frozen=True)
class RolloutConfig:
    """What samples actions, how many episodes it plays at once, and where they are cut off."""

    engine: EngineName = "hugging_face"
    """hugging_face: the very module that is trained; vllm: vLLM in this process; server: `vllm
    serve` elsewhere, over HTTP. The last two get the weights before they play (docs/engines.md)."""
    slots: int | None = None
    """Most episodes that live at once, in episodes; none: all of a collection. Fewer need less
    memory for keys and values; they change no number beyond rounding."""
    cut_actions: CutActions = "sent"
    """Whether an action that the token cap cut is sent as it is (verl-agent), or ends the episode
    unsent (ours)."""
    episode_seconds: float | None = None
    """Most seconds of an episode, looked at behind every turn; none: any. With a limit the same
    seed may not give the same episodes."""
    failure_limit: float = 0.5
    """Share of a collection's episodes that may break; above it the run stops with the cause."""
    workers: int = 0
    """Processes in which environments live and step side by side; 0: all in this one, one after
    another. They change no number (docs/rollouts.md)."""
    step_seconds: float | None = None
    """Most seconds of one reset or step of an environment, with workers: then its process is
    killed, its episode fails, and the process's other episodes are played again; none: any."""
    restart_seconds: float = 0.5
    """Pause before a worker process is started again, in seconds; doubled with each time in a row
    that it has answered nothing, up to a minute."""
    restarts: int = 32
    """Most times in a row that a worker process is started again without an answer between; then
    the run stops with the cause."""
    refill: float | None = None
    """hugging_face: share of the actions in progress that end before their episodes go on (ours): a
    small one, and no episode waits long for another's action; 1: prompts are read in the largest
    batches; none: 1/4, and 1 for a model of fewer than 20 million weights, which gains nothing."""
    context_limit: int | None = None
    """vllm: most tokens of an episode, prompts and actions; none: the model's positions."""
    memory_share: float = 0.9
    """vllm: part of the device's memory that its weights and its cache take."""
    one_step_off: bool = False
    """Whether each batch but the first of a phase is played while the policy learns from the one
    before (an extension): it is one update old, and corrected by what it was sampled with. The
    engine has its own weights then, hugging_face a copy (docs/scale.md)."""
    sleeps: bool = False
    """vllm: whether it gives the GPU's memory back while the policy learns."""
    url: str = LOCAL
    """server: its address; another machine's only if it is named here."""
    more_urls: tuple[str, ...] = ()
    """server: addresses of further ones that serve the same; each plays a part of the episodes,
    and one that is lost leaves its part to the others until it takes new weights. Several
    processes (torchrun) have one or more each."""
    server_model: str | None = None
    """server: the name of the model there; none: the only one that it has."""
    transfer: Transfer = "folder"
    """server: how it gets weights. folder: through one that it sees too; nccl: from GPU to GPU by
    vLLM's own weight transfer, which needs vLLM here as well (docs/engines.md)."""
    exchange: Path | None = None
    """server: folder for weights that it sees too; none: this machine's temporary folder."""

    def __post_init__(self) -> None:
        at_least(
            1,
            slots=1 if self.slots is None else self.slots,
            context_limit=1 if self.context_limit is None else self.context_limit,
        )
        for name in ("refill", "memory_share"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, got {share}")
        if self.one_step_off and self.sleeps:
            raise ValueError(
                "sleeps does nothing with one_step_off: the engine plays while the policy learns"
            )
        Limits(1, self.cut_actions, self.episode_seconds)
        at_least(0, workers=self.workers, restarts=self.restarts)
        at_least(0, restart_seconds=self.restart_seconds)
        if not 0 <= self.failure_limit <= 1:
            raise ValueError(f"failure_limit must be in [0, 1], got {self.failure_limit}")
        if self.step_seconds is not None:
            positive(step_seconds=self.step_seconds)
        for name in ("step_seconds", "restart_seconds", "restarts"):
            if not self.workers and getattr(self, name) != getattr(type(self), name):
                raise ValueError(
                    f"{name} does nothing without worker processes: nothing else can stop a step "
                    "that does not end; set rollout.workers to 1 or more"
                )
        if self.transfer != "folder" and self.exchange is not None:
            raise ValueError(f"exchange does nothing at transfer {self.transfer}")
        for name, owner in OWNERS.items():
            if self.engine != owner and getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name} does nothing at engine {self.engine}")
