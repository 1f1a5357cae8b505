"""What every engine knows of its sessions: how long they are, and which wait for an action."""

from collections.abc import Iterable, Sequence

from rewardswap.rollout.engine import Completion, Request


class Sessions:
    """The live sessions of one engine, by name."""

    def __init__(self, context_limit: int) -> None:
        self.context_limit = context_limit
        self._lengths: dict[str, int] = {}
        self._asked: set[str] = set()

    def __contains__(self, session: str) -> bool:
        return session in self._lengths

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def asked(self) -> int:
        """How many sessions wait for an action."""
        return len(self._asked)

    def length(self, session: str) -> int:
        """Tokens that a session has read and said."""
        return self._lengths[session]

    def ask(self, requests: Sequence[Request], max_tokens: int) -> None:
        """Take the requests' prompts in; raises ValueError as the contract says, and takes none."""
        names = [request.session for request in requests]
        if len(set(names)) != len(names):
            raise ValueError("two requests of one call name the same session")
        lengths = {r.session: self._read(r, max_tokens) for r in requests}
        self._lengths |= lengths
        self._asked |= lengths.keys()

    def answer(self, completion: Completion) -> Completion:
        """Take an action in."""
        self._asked.remove(completion.session)
        self._lengths[completion.session] += len(completion.ids)
        return completion

    def release(self, sessions: Iterable[str]) -> list[str]:
        """Forget sessions; those of them that were there."""
        gone = [name for name in sessions if self._lengths.pop(name, None) is not None]
        self._asked.difference_update(gone)
        return gone

    def refuse_live(self) -> None:
        """Raise ValueError while a session lives: it belongs to the weights that it began with."""
        if self._lengths:
            raise ValueError(
                f"{len(self._lengths)} sessions live, {next(iter(self._lengths))!r} among them; "
                "release them before the weights change"
            )

    def _read(self, request: Request, max_tokens: int) -> int:
        """The session's length with the new prompt."""
        session, context = request.session, request.context_ids
        if session in self._asked:
            raise ValueError(f"session {session!r} waits for an action already")
        if request.extends and session not in self._lengths:
            raise ValueError(f"session {session!r} extends a prompt that is not there")
        if not request.extends and len(context) == 0:
            raise ValueError(f"session {session!r} has no token to read")
        length = (self._lengths[session] if request.extends else 0) + len(context)
        if length + max_tokens > self.context_limit:
            raise ValueError(
                f"session {session!r} needs {length + max_tokens} tokens with its action, the "
                f"context holds {self.context_limit}; end the episode before"
            )
        return length
