"""Sampling from a Hugging Face causal LM, with the cache of every live episode kept."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

import numpy as np
import torch
from torch import Tensor, nn

from rewardswap.rollout.engine import Completion, Request, SamplingParams, Weights
from rewardswap.rollout.sampling import draw_tokens
from rewardswap.rollout.sessions import Sessions
from rewardswap.rollout.slot_model import SlotModel
from rewardswap.rollout.slots import Slots
from rewardswap.rollout.weights import load_weights
from rewardswap.types import IntArray

REFILL = 0.25
"""Share of the actions in progress that end before their episodes go on (ours)."""

PASS = 256
"""Padding tokens that are worth a pass of the model of their own (ours)."""


class HuggingFaceEngine:
    """Samples from the very module that is trained: there is no copy that could grow stale.

    Only new tokens are fed at a turn. `wait` decodes until a share `refill` of what is in progress
    has ended: a small one, and no episode waits long for another's action; 1, and prompts are read
    in the largest batches. Tokens alone decide what runs when, so the bits repeat. Raises
    ValueError for a model that cannot be served so.
    """

    def __init__(
        self, model: nn.Module, end_token_ids: Sequence[int], *, refill: float = REFILL
    ) -> None:
        if not end_token_ids:
            raise ValueError("an engine needs at least one end token, got none")
        if not 0 < refill <= 1:
            raise ValueError(f"refill must be above 0 and at most 1, got {refill}")
        self.refill = refill
        self._module = model
        self._model = SlotModel(model)
        self._sessions = Sessions(self._model.context_limit)
        self._unread: dict[str, tuple[Request, SamplingParams]] = {}
        self._acting: list[str] = []
        """Sessions whose prompt is read and whose action has not been given back."""
        self._slot: dict[str, int] = {}
        self._slots = Slots(end_token_ids)
        self.fed_tokens = 0
        """Tokens that the model has read so far, padding not counted."""

    @property
    def module(self) -> nn.Module:
        """The module that it samples from."""
        return self._module

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: the model's positions."""
        return self._sessions.context_limit

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Ask for actions; nothing runs before `wait`."""
        self._sessions.ask(requests, sampling.max_tokens)
        self._unread |= {request.session: (request, sampling) for request in requests}

    def wait(self) -> list[Completion]:
        """Read new prompts, decode until enough actions have ended; these, in order of slots."""
        with self._model.serving():
            self._line_up()
            if self._unread:
                self._read()
            ended = self._decode(math.ceil(self.refill * len(self._acting)))
        self._acting = [session for session in self._acting if session not in ended]
        completions = [self._slots.completion(name, self._slot[name]) for name in ended]
        return [self._sessions.answer(completion) for completion in completions]

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions; without any left the cache itself goes."""
        gone = self._sessions.release(sessions)
        self._acting = [session for session in self._acting if session not in gone]
        for session in gone:
            self._unread.pop(session, None)
            if session in self._slot:
                self._slots.live[self._slot.pop(session)] = False
        if not len(self._sessions):
            self._model.forget()

    def update_weights(self, weights: Weights) -> None:
        """Load weights into the module; a trainer that moves this very module needs it not."""
        self._sessions.refuse_live()
        load_weights(self._module, weights)

    def close(self) -> None:
        """Give the cache back."""
        self._model.forget()

    def _line_up(self) -> None:
        """Every session gets one of the first slots; few are copied, only where one is free."""
        tokens = max((s.max_tokens for _, s in self._unread.values()), default=0)
        old = dict(self._slot)
        names = [*self._unread, *sorted(old.keys() - self._unread.keys())]
        new = _placed(names, old)
        width = self._widest() + tokens
        places = max([len(names), *(slot + 1 for slot in old.values())])
        self._model.reserve(places, width)
        self._slots.reserve(places, tokens)
        moved = [name for name, slot in old.items() if new[name] != slot]
        if moved:
            sources, targets = [old[name] for name in moved], [new[name] for name in moved]
            self._model.move(sources, targets)
            self._slots.move(sources, targets)
        self._slot = new
        self._slots.live[len(names) :] = False

    def _widest(self) -> int:
        """Positions that reading the new prompts may write, padding behind the longest included."""
        starts, reads = [0], [0]
        for name, (request, _) in self._unread.items():
            start = int(self._slots.stored[self._slot[name]]) if request.extends else 0
            starts.append(start)
            reads.append(self._sessions.length(name) - start)
        return max(starts) + max(reads)

    def _read(self) -> None:
        """Run the new tokens of every new prompt, and sample the first token behind each."""
        reads: dict[int, IntArray] = {}
        for name, (request, sampling) in self._unread.items():
            slot = self._slot[name]
            last = self._slots.last[slot : slot + 1] if request.extends else self._slots.last[:0]
            reads[slot] = np.concatenate([last, request.context_ids])
            self._slots.begin(slot, request, sampling)
        for part in _of_like_length({slot: len(tokens) for slot, tokens in reads.items()}):
            rows = np.array(part)
            block = len(rows) == len(self._slot)
            hidden = self._model.read(
                [reads[slot] for slot in part], self._slots.stored[rows], None if block else rows
            )
            self._slots.stored[rows] += [len(reads[slot]) for slot in part]
            self._sample(rows, hidden)
        self.fed_tokens += sum(len(tokens) for tokens in reads.values())
        self._acting += self._unread
        self._unread = {}

    def _decode(self, wanted: int) -> list[str]:
        """Token after token until `wanted` actions have ended; their sessions in order of slots.

        Rows that have ended stay in the batch until fewer than half are left, because a whole
        block of slots is read without copying it.
        """
        rows, block = np.arange(len(self._slot)), True
        acting = sorted(self._acting, key=self._slot.__getitem__)
        slots = np.array([self._slot[name] for name in acting], dtype=np.int64)
        while (ended := ~self._slots.live[slots]).sum() < wanted:
            live = self._slots.live[rows]
            if 2 * live.sum() < len(rows):
                rows, live, block = rows[live], live[live], False
            tokens, positions = self._slots.last[rows], self._slots.stored[rows]
            hidden = self._model.forward(
                tokens[:, None], positions[:, None], None if block else rows
            )[:, 0]
            self._slots.stored[rows[live]] += 1
            self.fed_tokens += int(live.sum())
            self._sample(rows, hidden)
        return list(compress(acting, ended))

    def _sample(self, rows: IntArray, hidden: Tensor) -> None:
        tokens, logprobs = draw_tokens(
            self._model.logits(hidden),
            torch.from_numpy(self._slots.drawn(rows)),
            [self._slots.sampling[row] for row in rows],
        )
        self._slots.say(rows, tokens.numpy(), logprobs.numpy())


def _of_like_length(lengths: Mapping[int, int]) -> list[list[int]]:
    """Slots in parts that are read together, in order within; few parts, and little padding.

    The shorter prompts are parted from the longer ones where that saves the padding of `PASS`
    tokens, and again within both.
    """
    longest_first = sorted(lengths, key=lambda slot: (-lengths[slot], slot))
    saved = [
        (lengths[longest_first[0]] - lengths[slot]) * (len(lengths) - count)
        for count, slot in enumerate(longest_first)
    ]
    if max(saved, default=0) < PASS:
        return [sorted(longest_first)] if longest_first else []
    cut = saved.index(max(saved))
    halves = longest_first[:cut], longest_first[cut:]
    return [part for half in halves for part in _of_like_length({n: lengths[n] for n in half})]


def _placed(sessions: Sequence[str], old: dict[str, int]) -> dict[str, int]:
    """One of the first slots for each session: its own where it has one of them."""
    staying = {name: old[name] for name in sessions if old.get(name, len(sessions)) < len(sessions)}
    free = iter(sorted(set(range(len(sessions))) - set(staying.values())))
    return {name: staying[name] if name in staying else next(free) for name in sessions}
