"""A small server of completions on loopback that answers as `vllm serve` does, from a module."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from rewardswap.rollout.engine import Request, SamplingParams, complete
from rewardswap.rollout.hf import HuggingFaceEngine

Answer = dict[str, Any]


class Patient(ThreadingHTTPServer):
    request_queue_size = 256
    """As many as knock at once."""


class CompletionServer:
    """Serves `model` at `url`; `changed` has the last word on each answer to a completion.

    `troubles` are taken one per request before anything else: a status, or 0 to hang up.
    """

    def __init__(
        self,
        model: Any,
        *,
        changed: Callable[[Answer, Answer], Answer] | None = None,
        at: tuple[str, int] = ("127.0.0.1", 0),
    ):
        self.model, self.changed = model, changed
        self.troubles: list[int] = []
        self.requests: list[tuple[str, Answer, str | None]] = []
        """(path, body, header Authorization) of every request."""
        self.models: list[Answer] = [{"id": "small", "max_model_len": 256}]
        self.development = True
        self.cache_resets = 0
        self.version = "default"
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        self._server = Patient(at, _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "CompletionServer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: Answer) -> tuple[int, Answer]:
        if path == "/v1/models":
            return 200, {"data": self.models}
        if path == "/v1/completions":
            self.gate.wait()
            with self.lock:
                answer = self._complete(body)
            return 200, self.changed(body, answer) if self.changed else answer
        if path == "/collective_rpc" and self.development:
            return self._reload(Path(body["kwargs"]["weights_path"]))
        if path == "/reset_prefix_cache" and self.development:
            self.cache_resets += 1
            return 200, {"success": True}
        if path == "/update_weight_version" and self.development:
            self.version = body["new_version"]
            return 200, {"success": True}
        if path == "/weight_info" and self.development:
            return 200, {"weight_version": self.version}
        return 404, {"detail": "Not Found"}

    def _complete(self, body: Answer) -> Answer:
        prompt = np.array(body["prompt"], dtype=np.int64)
        sampling = SamplingParams(
            **{key: body[key] for key in ("temperature", "max_tokens", "top_p", "top_k", "min_p")}
        )
        engine = HuggingFaceEngine(self.model, body["stop_token_ids"])
        (said,) = complete(engine, [Request("it", prompt, False, (body["seed"], 0))], sampling)
        logits = self.model(torch.tensor(prompt)[None]).logits[0, -1].detach()
        scaled = torch.log_softmax(logits / (sampling.temperature or 1.0), dim=-1)
        choice = {
            "token_ids": said.ids.tolist(),
            "prompt_token_ids": body["prompt"],
            "finish_reason": "length" if said.truncated else "stop",
            "logprobs": {
                "token_logprobs": said.logprobs.tolist(),
                "top_logprobs": [{"likeliest": float(scaled.max())}],
            },
        }
        return {"choices": [choice]}

    def _reload(self, folder: Path) -> tuple[int, Answer]:
        if not (folder / "model.safetensors").is_file():
            return 500, {"error": f"{folder} is not here"}
        HuggingFaceEngine(self.model, [1]).update_weights(folder)
        return 200, {"results": [None]}


def _handler(server: CompletionServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self._answer(json.loads(self.rfile.read(length) or "{}"))

        def _answer(self, body: Answer) -> None:
            server.requests.append((self.path, body, self.headers.get("Authorization")))
            trouble = server.troubles.pop(0) if server.troubles else None
            if trouble == 0:
                self.close_connection = True
                return
            status, answer = trouble or 0, {"echo": self.headers.get("Authorization")}
            if trouble is None:
                status, answer = server.answer(self.path, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            try:
                self.wfile.write(text)
            except OSError:
                self.close_connection = True  # who asked has gone

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    return Handler
