"""What needs neither NCCL nor vLLM of the way of weights (the rest: tests/with_vllm)."""

import socket
from typing import Any

import pytest
import torch

from rewardswap.rollout import transfer
from rewardswap.rollout.connection import Connection


class Sender:
    """A group that knows whether it was given up."""

    def __init__(self) -> None:
        self.destroyed = 0
        self.model_update_group = self

    def destroy(self) -> None:
        self.destroyed += 1


def test_a_late_answer_of_a_group_that_was_given_up_is_not_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(transfer, "_vllm", lambda: None)
    connection = Connection("http://127.0.0.1:1", timeout=1.0, retries=0, at_once=1)
    broadcast: Any = transfer.Broadcast(connection)
    sender, late, now = Sender(), object(), object()
    broadcast._sender, broadcast._routes = sender, now
    broadcast._let_go(late, ValueError("old"))
    assert sender.destroyed == 0 and broadcast._refused is None
    broadcast._let_go(now, ValueError("new"))
    assert sender.destroyed == 1 and str(broadcast._refused) == "new"
    broadcast.leave()
    assert sender.destroyed == 1
    connection.close()


def test_the_address_that_a_server_knows_this_machine_by() -> None:
    assert transfer._address_towards("http://127.0.0.1:8000") == "127.0.0.1"
    with pytest.raises(socket.gaierror):
        transfer._address_towards("http://[::1]:8000")
