"""A causal language model as a policy: score tokens, take optimizer steps, branch and restore."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from rewardswap.models.adapter import adapter_off
from rewardswap.models.batching import Batch, TokenScores
from rewardswap.models.head import HEAD_LOGITS, chosen_scores, prove_head
from rewardswap.models.learner import Learner, Metrics
from rewardswap.models.loading import read_weights
from rewardswap.models.packing import Layout
from rewardswap.models.pretrained import save_model
from rewardswap.ranks import ALONE, Ranks

Loss = Callable[[TokenScores, Batch], tuple[Tensor, Metrics]]
"""Sum over the batch of weighted per-token losses, and sums of metrics over the same tokens."""


class Policy(Learner):
    """The language model that acts; raises ValueError where its logits are not its head's."""

    def __init__(
        self,
        model: nn.Module,
        *,
        make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
        temperature: float = 1.0,
        gradient_clip: float = 1.0,
        tokens_per_microbatch: int = 8192,
        head_logits: int = HEAD_LOGITS,
        gradient_checkpointing: bool = False,
        packing: bool = False,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(
            model,
            make_optimizer=make_optimizer,
            gradient_clip=gradient_clip,
            tokens_per_microbatch=tokens_per_microbatch,
            gradient_checkpointing=gradient_checkpointing,
            packing=packing,
            ranks=ranks,
        )
        prove_head(model)
        self.temperature = temperature
        self.head_logits = head_logits

    @property
    def trunk(self) -> nn.Module:
        """The model without its head."""
        trunk: nn.Module = self.model.get_decoder()  # type: ignore[operator]
        return trunk

    def _forward(
        self, batch: Batch, *, entropy_gradient: bool = False, temperature: float | None = None
    ) -> TokenScores:
        """The trunk over all tokens, the head only where an action token is predicted."""
        head: Any = self.model.get_output_embeddings()  # type: ignore[operator]
        mask = batch.action_mask
        layout = Layout(batch.lengths, batch.tokens.shape[1], self.packing)

        def scored() -> tuple[Tensor, Tensor]:
            hidden = layout.read(self.trunk, batch.tokens)
            # a row begins with context, so the place in front of an action is one of its own row
            predicted = layout.place(mask)[:, 1:]
            chosen, entropy = chosen_scores(
                head,
                hidden[:, :-1][predicted],
                batch.tokens[mask],
                self.temperature if temperature is None else temperature,
                entropy_gradient=entropy_gradient,
                most_logits=self.head_logits,
            )
            blank = torch.zeros(mask.shape, device=mask.device)
            return blank.masked_scatter(mask, chosen), blank.masked_scatter(mask, entropy)

        return TokenScores(*self.together(scored))

    @torch.no_grad()
    def score(self, batch: Batch, temperature: float | None = None) -> TokenScores:
        """log-probabilities and entropies of all action tokens, without gradient, on the CPU.

        They are taken at the policy's sampling temperature, or at the one that is given.
        """
        logprob = torch.zeros(batch.tokens.shape)
        entropy = torch.zeros(batch.tokens.shape)
        for rows, counted in self._microbatches(batch):
            part = batch.take(rows).to(self.device)
            scores = self._forward(part, temperature=temperature)
            if counted:
                width = part.tokens.shape[1]
                logprob[rows, :width] = scores.logprob.cpu()
                entropy[rows, :width] = scores.entropy.cpu()
        self.ranks.add(logprob)
        self.ranks.add(entropy)
        return TokenScores(logprob, entropy)

    def step(
        self,
        batch: Batch,
        loss: Loss,
        *,
        whole_trajectories: bool = False,
        entropy_gradient: bool = False,
    ) -> Metrics:
        """One optimizer step over `batch`; see `Learner`.

        With `whole_trajectories` the rows of one trajectory stay in one micro-batch. Entropies
        carry a gradient only with `entropy_gradient`: it costs memory.
        """
        return self._step(
            batch,
            lambda part: loss(self._forward(part, entropy_gradient=entropy_gradient), part),
            whole_trajectories=whole_trajectories,
        )

    def save_pretrained(
        self, folder: Path | str, tokenizer: PreTrainedTokenizerBase | None = None
    ) -> None:
        """Write a folder that plain transformers loads: weights, an adapter merged, and config.

        With the tokenizer, where it is given, it is a model folder. The optimizer is not in it.
        """
        save_model(self.model, folder, tokenizer)

    @classmethod
    def from_pretrained(cls, folder: Path | str, **settings: Any) -> "Policy":
        """The policy of a model folder, float32; `settings` are those of a new policy.

        Raises ValueError where the folder lacks weights, or has them as pickle only.
        """
        return cls(read_weights(Path(folder)), **settings)


class Reference(Policy):
    """What a policy with an adapter was before it learned: the same model, its adapter off."""

    def score(self, batch: Batch, temperature: float | None = None) -> TokenScores:
        """As `Policy.score`, of the start policy."""
        with adapter_off(self.model):
            return super().score(batch, temperature)
