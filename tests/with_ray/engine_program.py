"""A server of completions that an engine's actor starts: `MODEL HOST PORT LOGS`.

It writes a line for each request into LOGS/PID, what it was asked and the prompt's tokens, and a
line `done` before each answer.
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
    writing = threading.Lock()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.note(f"{path} {len(body.get('prompt', ()))}")
        answer = super().answer(path, body)
        self.note("done")
        return answer

    def note(self, line: str) -> None:
        with self.writing, (self.logs / str(os.getpid())).open("a") as file:
            file.write(f"{line}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    model, host, port, logs = sys.argv[1:]
    Logging.logs = Path(logs)
    with Logging(AutoModelForCausalLM.from_pretrained(model), at=(host, int(port))) as server:
        server.models = [{"id": "small", "max_model_len": 512}]
        threading.Event().wait()
