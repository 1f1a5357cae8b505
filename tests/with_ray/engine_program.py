"""A server of completions that an engine's actor starts: `MODEL HOST PORT LOGS`.

It writes a line for each request into LOGS/PID: what it was asked, and the prompt's tokens.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from serving import CompletionServer


class Logging(CompletionServer):
    logs: Path

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock, (self.logs / str(os.getpid())).open("a") as file:
            file.write(f"{path} {len(body.get('prompt', ()))}\n")
        return super().answer(path, body)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model, host, port, logs = sys.argv[1:]
    Logging.logs = Path(logs)
    with Logging(AutoModelForCausalLM.from_pretrained(model), at=(host, int(port))) as server:
        server.models = [{"id": "small", "max_model_len": 512}]
        threading.Event().wait()
