"""Memory of a run by phase, from its settings, its model's shape and its episodes' lengths."""

from dataclasses import dataclass

from rewardswap.configuration import Run
from rewardswap.plan.learned import Models, learns_reward
from rewardswap.plan.lengths import Lengths
from rewardswap.plan.memory import (
    activation_bytes,
    cache_bytes,
    cache_bytes_per_token,
    growing_bytes,
    head_gradient_bytes,
    logit_bytes,
    reading_bytes,
    replay_bytes,
    sampling_bytes,
    step_bytes,
    together_bytes,
    weight_bytes,
)
from rewardswap.plan.shapes import ModelShape

Parts = dict[str, int]
"""Bytes by what they are for."""


@dataclass(frozen=True)
class Memory:
    """Bytes on each device by phase, and on the host, which is the device of a run on the CPU."""

    phases: dict[str, Parts]
    """rollout, update, and branch: the larger of both while the agent waits for the explorer."""
    host: Parts

    @property
    def peak(self) -> int:
        """Bytes of the largest phase."""
        return max(sum(parts.values()) for parts in self.phases.values())

    @property
    def host_total(self) -> int:
        """Bytes on the host beside a device."""
        return sum(self.host.values())


@dataclass(frozen=True)
class Sizing:
    """A run and all that its sizes follow from."""

    run: Run
    shape: ModelShape
    models: Models
    lengths: Lengths
    evaluated: int
    """Tasks of the panel."""
    action_cap: int
    """Most tokens of one action."""
    devices: int = 1
    device_memory: float | None = None
    """Bytes of each device, of which vLLM takes a share; none: not known, and none is counted."""

    @property
    def width(self) -> int:
        """Bytes of one number of the model."""
        return 2 if self.run.policy.precision == "bfloat16" else 4

    @property
    def fresh_tasks(self) -> int:
        """Tasks of one collection."""
        run = self.run
        return run.swap.split(run.batch)[0] if run.loop == "rspo" else run.batch.tasks

    @property
    def replayed(self) -> int:
        """Replayed trajectories of one update of the agent."""
        run = self.run
        return run.swap.split(run.batch)[1] if run.loop == "rspo" else 0

    @property
    def episodes(self) -> int:
        """Episodes of one collection."""
        return self.fresh_tasks * self.run.batch.group_size

    @property
    def harvests(self) -> int:
        """Collections that go into the replay buffer of one loop."""
        swap = self.run.swap
        if not self.replayed:
            return 0
        if not swap.explore_steps:
            return 1
        during = swap.explore_steps - swap.reuse_first_batch
        return {"final": 1, "during": during, "both": during + 1}[swap.harvest]

    @property
    def live(self) -> dict[str, int]:
        """Episodes that are live at once on one device, by what they are played for."""
        played = {"training": self.episodes, "evaluation": self.evaluated}
        if learns_reward(self.run) and self.run.reward.fitted:
            reward = self.run.reward
            each = reward.group_size * len(reward.temperatures)
            played["process reward"] = max(1, reward.trajectories // each) * reward.group_size
        slots = self.run.rollout.slots
        shares = {what: -(-count // self.devices) for what, count in played.items()}
        return {what: min(count, slots or count) for what, count in shares.items()}

    @property
    def context(self) -> int:
        """Tokens of the longest context: the longest row, or the model's positions."""
        return min(self.lengths.longest_row, self.shape.positions)

    @property
    def room(self) -> int:
        """Tokens for which each live episode has room in the cache."""
        return self.lengths.room(self.action_cap)

    @property
    def cache_per_token(self) -> int:
        """Bytes of keys and values of one token."""
        return cache_bytes_per_token(self.shape, self.width)

    @property
    def microbatch(self) -> int:
        """Tokens of the largest micro-batch, padding included: a longer row stands alone."""
        return max(self.run.policy.tokens_per_microbatch, self.context)

    def memory(self) -> Memory:
        """Bytes by phase and part."""
        state = self._state()
        rollout = {**state, **self._rollout()}
        update = {**state, **self._update()}
        settings = self.run.rollout
        if settings.one_step_off or (settings.engine == "vllm" and not settings.sleeps):
            update |= self._rollout()
        phases = {"rollout": rollout, "update": update}
        host: Parts = {}
        on_host = self.run.policy.device != "cpu"
        snapshot = self._snapshot()
        if snapshot:
            larger = max(rollout, update, key=lambda parts: sum(parts.values()))
            phases["branch"] = larger if on_host else {**larger, "agent's copy": snapshot}
            if on_host:
                host["agent's copy"] = self.devices * snapshot
        if self.harvests:
            buffer = self._buffer()
            if on_host:
                host["replay buffer"] = buffer
            else:
                phases = {n: {**parts, "replay buffer": buffer} for n, parts in phases.items()}
        if on_host:
            host["weights while loading, float32"] = self.devices * 4 * self.shape.parameters
        return Memory(phases, host)

    @property
    def sharded(self) -> bool:
        """Whether devices divide the weights."""
        return self.run.policy.sharded and self.devices > 1

    def _part(self, bytes_of_all: int) -> int:
        """What one device holds of what is sharded where anything is."""
        return -(-bytes_of_all // self.devices) if self.sharded else bytes_of_all

    def _state(self) -> Parts:
        """What is there in every phase."""
        models, optimizer = self.models, self.run.policy.optimizer
        parts = {what: self._part(size) for what, size in models.policy.state(optimizer).items()}
        if models.critic is not None:
            critic = sum(models.critic.state(optimizer).values())
            parts["critic, all of it"] = self._part(critic)
        reference = self.run.method.algorithm().needs_reference
        parts["start policy's copy"] = self._part(models.copied) if reference else models.copied
        parts["process reward's trunk"] = self._part(models.backbone)
        rollout = self.run.rollout
        if rollout.engine == "hugging_face" and (self.sharded or rollout.one_step_off):
            parts["sampler's copy"] = weight_bytes(self.shape.parameters, self.width)
        return parts

    def _rollout(self) -> Parts:
        """What playing takes: of our own engine, or vLLM's share; a server has its own device."""
        rollout = self.run.rollout
        if rollout.engine == "server":
            return {}
        if rollout.engine == "vllm":
            share = rollout.memory_share * (self.device_memory or 0)
            return {"vLLM, rollout.memory_share": round(share)}
        shape, width, live = self.shape, self.width, max(self.live.values())
        reading = reading_bytes(
            shape, width, new=self.lengths.longest_read, context=self.context, live=live
        )
        sampling = sampling_bytes(shape, width, live)
        cache = cache_bytes(shape, width, self.room, live)
        return {
            "KV cache": cache,
            "reading or sampling": max(reading, sampling, growing_bytes(cache)),
        }

    def _update(self) -> Parts:
        shape, width, policy = self.shape, self.width, self.run.policy
        trained = self.models.policy
        lengths = self.lengths
        actions = round(self.microbatch * lengths.action_tokens / lengths.tokens)
        whole = policy.lora_rank is None
        together = together_bytes(shape, width, trained=whole) if self.sharded else 0
        return {
            **({"weights that are together": together} if together else {}),
            "activations": activation_bytes(
                shape,
                width,
                tokens=self.microbatch,
                longest=self.microbatch if policy.packing else self.context,
                rank=policy.lora_rank,
                checkpointing=policy.gradient_checkpointing,
            ),
            "logits": logit_bytes(shape, width, actions, policy.head_logits),
            "gradients passing": self._part(trained.passing())
            + max(
                head_gradient_bytes(shape, width, trained=whole),
                step_bytes(self._part(trained.trained), on_cuda=policy.device != "cpu"),
            ),
        }

    def _snapshot(self) -> int:
        """Bytes of the agent, policy and critic, while the explorer is there."""
        if not self.replayed:
            return 0
        optimizer = self.run.policy.optimizer
        critic = self.models.critic
        branches = [
            learner.branch(optimizer) for learner in (self.models.policy, critic) if learner
        ]
        return self._part(sum(branches))

    def _buffer(self) -> int:
        lengths = self.lengths
        count = self.harvests * self.episodes
        return replay_bytes(count, lengths.tokens, lengths.action_tokens)
