"""Weights to a vLLM server by NCCL, through vLLM's own weight transfer."""

import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor

from rewardswap.errors import EngineError
from rewardswap.rollout.connection import Connection, NoAnswerError, ServerRefusalError

NEEDED = "start it with VLLM_SERVER_DEV_MODE=1 and --weight-transfer-config.backend nccl"


class Broadcast:
    """The way of weights from this process, rank 0, to all workers of one server, the others.

    Both ends are vLLM's (`vllm.distributed.weight_transfer`, vLLM 0.32): this one its trainer's
    engine, which asks the server over HTTP and broadcasts beside it. The group is made with the
    first weights, and made anew with those behind a failure. Raises ValueError as
    `refuse_without` does.
    """

    def __init__(self, connection: Connection) -> None:
        self._device, self._vllm = _device(), _vllm()
        self._connection = connection
        self._sender: Any = None
        self._routes: _Routes | None = None
        self._given: Mapping[str, Tensor] = {}
        self._refused: ValueError | None = None

    def send(self, weights: Mapping[str, Tensor]) -> None:
        """Let the server have these weights.

        Raises NoAnswerError where it is gone or the broadcast broke, and ValueError for a server
        that was not started for this.
        """
        self._given, self._refused = weights, None
        try:
            if self._sender is None:
                self._sender = self._joined()
            self._sender.send_weights()
        except ValueError:
            self.leave()
            raise
        except RuntimeError as error:  # NCCL's; what the server says of it says more
            self.leave()
            url = self._connection.url
            raise self._refused or NoAnswerError(
                f"weights did not get to the server at {url}: {error}", None
            ) from error
        finally:
            self._given = {}

    def leave(self) -> None:
        """Give up the group; again, it does nothing."""
        sender, self._sender, self._routes = self._sender, None, None
        if sender is not None:
            sender.model_update_group.destroy()

    def metadata(self) -> list[Any]:
        """What vLLM asks of a source: name, type and shape of each weight."""
        meta = self._vllm.ParamMeta
        return [meta(name, value.dtype, tuple(value.shape)) for name, value in self._given.items()]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        """What vLLM asks of a source: the weights, each where NCCL can send it."""
        return ((name, value.detach().to(self._device)) for name, value in self._given.items())

    def _joined(self) -> Any:
        """A new group. Nobody waits in vain for a server that takes no part: it is asked before."""
        url = self._connection.url
        try:
            told = self._connection.ask("GET", "/server_info?config_format=json")
            workers = int(self._connection.ask("GET", "/get_world_size")["world_size"])
        except ServerRefusalError as error:
            raise EngineError(f"the server at {url} takes no weights by NCCL; {NEEDED}") from error
        config = told["vllm_config"]["weight_transfer_config"]
        if config is None or config["backend"] != "nccl":
            raise EngineError(f"the server at {url} takes no weights by NCCL ({config=}); {NEEDED}")
        try:
            host = _address_towards(url)
        except OSError as error:
            raise EngineError(
                f"the server at {url} has no IPv4 address ({error}), which its workers and NCCL "
                "here meet by; name it by one"
            ) from error
        with socket.create_server((host, 0)) as found:
            port = int(found.getsockname()[1])
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        self._routes = _Routes(self._connection, self._let_go)
        return self._vllm.WeightTransferTrainerFactory.trainer_init(
            NCCLTrainerInitInfo(host, port, workers + 1, rank=0),
            client=self._routes,
            source=self,
        )

    def _let_go(self, routes: "_Routes", error: ValueError) -> None:
        """End a broadcast that the server takes no part in any more: it would wait for ever.

        What comes late, of a group that was given up, is not of this one.
        """
        if routes is self._routes:
            self._refused = error
            self.leave()


def refuse_without() -> None:
    """Raise ValueError without vLLM here, and where there is no GPU."""
    _device()
    _vllm()


class _Routes:
    """What vLLM asks of a client: its routes, each asked once."""

    def __init__(
        self, connection: Connection, failed: Callable[["_Routes", ValueError], None]
    ) -> None:
        self._connection, self._failed = connection, failed

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Called in a thread of its own, while this process waits for the server's workers."""
        self._told("/init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._post("/start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Called in a thread of its own, beside the broadcast."""
        self._told("/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        body = None if weight_version is None else {"weight_version": weight_version}
        self._post("/finish_weight_update", body)

    def shutdown_weight_transfer_engine(self) -> None:
        self._post("/shutdown_weight_transfer_engine")

    def _told(self, path: str, body: object) -> None:
        try:
            self._post(path, body)
        except ValueError as error:
            self._failed(self, error)
            raise

    def _post(self, path: str, body: object = None) -> None:
        self._connection.ask_once("POST", path, body)


def _address_towards(url: str) -> str:
    """The address that a server's machine knows this one by; nothing is sent to find it."""
    parts = urlsplit(url)
    family, kind, _, _, at = socket.getaddrinfo(
        parts.hostname, parts.port or 80, socket.AF_INET, socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind) as asking:
        asking.connect(at)
        return str(asking.getsockname()[0])


def _device() -> torch.device:
    if not torch.cuda.is_available():
        raise ValueError(
            "rollout.transfer nccl goes from GPU to GPU, and there is none here; leave it out, "
            "weights go through a folder then"
        )
    return torch.device("cuda", torch.cuda.current_device())


def _vllm() -> Any:
    try:
        import vllm.distributed.weight_transfer as transfer
    except ImportError as error:
        raise ValueError(
            f"rollout.transfer nccl needs vLLM here too ({error}); pip install 'rewardswap[vllm]'"
        ) from error
    return transfer
