"""The far side of a worker process: hosts environments of one world, asked in lines of JSON.

Standard input and output carry the lines and nothing listens anywhere; what an environment prints
goes to standard error. The process ends when its input does, and within a second of the trainer's
death in the middle of a step too.
"""

import base64
import json
import os
import pickle
import signal
import sys
import threading
import time
from typing import Any

from rewardswap.envs.base import Observation, Step, World
from rewardswap.rollout.host import Broken, Host, cause_of
from rewardswap.task import Task


def serve() -> None:
    """Make the world of the first line, then answer every line by one until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the trainer's to handle
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        world: World = pickle.loads(base64.b64decode(json.loads(requests.readline())))()
    except BaseException as error:  # the trainer says it
        answers.write(line_of(Broken(cause_of(error))))
        return
    host = Host(world, passed=())
    listed: set[str] = set()
    answers.write(line_of([]))
    process = os.getpid()
    for number, line in enumerate(requests, start=1):
        answer = line_of(_answer(host, world, listed, json.loads(line)), number)
        if os.getpid() != process:  # a copy that an environment made: it has nobody to answer
            os._exit(0)
        try:
            answers.write(answer)
        except BrokenPipeError:  # the trainer is gone
            break
    host.close()
    sys.stderr.flush()
    os._exit(0)  # whatever threads an environment left


def _answer(host: Host, world: World, listed: set[str], message: list[Any]) -> Any:
    kind, *rest = message
    if kind == "step":
        return host.step(*rest)
    if kind == "close":
        return host.close()
    number, task, splits = rest
    try:
        for split in splits:
            if split not in listed:
                world.tasks(split)
                listed.add(split)
    except BaseException as error:  # a split that cannot be listed here costs the episode
        return Broken(cause_of(error))
    return host.reset(number, Task(*task))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # what an environment started, and this process


def line_of(answer: Observation | Step | Broken | list[str], number: int = 0) -> bytes:
    """An answer as a line, behind the number of what was asked: 0 for the first line, then 1."""
    return b"%d %s\n" % (number, json.dumps(_plain(answer)).encode())


def answer_of(line: bytes, number: int) -> bytes:
    """The answer in a line; raises ValueError where it is not one line behind that number."""
    said, _, answer = line.partition(b" ")
    if said != b"%d" % number or answer.count(b"\n") != 1:
        raise ValueError(f"no answer to request {number}: {line[:100]!r}")
    return answer


def broken_of(line: bytes) -> Broken | None:
    """What the line says of a broken environment, if it does; ValueError where it is no JSON."""
    found = json.loads(line)
    return Broken(found["broken"]) if isinstance(found, dict) else None


def observation_of(line: bytes) -> Observation:
    """The observation of a line."""
    return _unpacked(json.loads(line))


def step_of(line: bytes) -> Step:
    """The step of a line."""
    observation, *rest = json.loads(line)
    return Step(_unpacked(observation), *rest)


def _plain(answer: Observation | Step | Broken | list[str]) -> Any:
    if isinstance(answer, Broken):
        return {"broken": answer.cause}
    if isinstance(answer, Observation):
        return _packed(answer)
    if isinstance(answer, Step):
        rest = (answer.valid, answer.terminated, answer.success, answer.outcome, answer.task_score)
        return [_packed(answer.observation), *rest]
    return answer


def _packed(observation: Observation) -> list[Any]:
    return [
        observation.text,
        observation.admissible,
        observation.state_key,
        observation.progress,
    ]


def _unpacked(found: list[Any]) -> Observation:
    text, admissible, state_key, progress = found
    return Observation(text, tuple(admissible), state_key, progress)
