"""The results of an experiment so far: what is done, and what may stand beside it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardswap.comparison.results import (
    append_result,
    read_results,
    result_of,
    settings_digest,
)
from rewardswap.experiments.experiment import Arm, Experiment, Job
from rewardswap.run_folder import commit
from rewardswap.version import VERSION

Json = Mapping[str, Any]

MIXABLE = {
    "commits": "code that differs or was changed after its commit",
    "panels": "panels that differ at the same settings of the environment",
    "settings": "settings of an arm that differ, and arms that are there no more",
}
"""What results may be told to differ in, and what that is."""


def present_code() -> str:
    """The commit of the source, or the version of the package where there is no checkout."""
    return commit() or f"version {VERSION}"


def code_of(result: Json) -> str:
    """The same of a stored result."""
    return str(result["commit"] or f"version {result['versions']['rewardswap']}")


def digest(experiment: Experiment, arm: Arm) -> str:
    """`settings_digest` of the arm's run as given, and of the arm whose checkpoint it starts from:
    16 hexadecimal digits."""
    own = settings_digest(arm.run)
    if arm.needs is None:
        return own
    start = experiment.arm(arm.needs)
    text = f"{own} from {digest(experiment, start)} seed {start.seeds[0]}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def repair(path: Path) -> int:
    """Move half a line at the end of a file of results aside, to a file with `.cut` behind its
    name; how many lines that was: 0 or 1.

    A last line that is whole but for its end is ended.
    """
    content = path.read_bytes() if path.is_file() else b""
    rest = content[content.rfind(b"\n") + 1 :]
    if not rest:
        return 0
    try:
        json.loads(rest)
    except ValueError:
        with path.with_name(f"{path.name}.cut").open("ab") as aside:
            aside.write(rest + b"\n")
        with path.open("rb+") as file:
            file.truncate(len(content) - len(rest))
        return 1
    with path.open("ab") as file:
        file.write(b"\n")
    return 0


class Results:
    """The lines of results.jsonl, none of which differs from the others in what must not."""

    def __init__(
        self, path: Path, experiment: Experiment, code: str, allowed: Sequence[str] = ()
    ) -> None:
        """Raises ValueError, naming both and the ways out, for results that cannot be mixed.

        `code` is what new results are made with, `allowed` names what may differ.
        """
        self.path = path
        self.code = code
        self._experiment = experiment
        self._allowed = set(allowed)
        self._digests = {arm.name: digest(experiment, arm) for arm in experiment.arms}
        self.lines: list[Json] = list(read_results(path)) if path.is_file() else []
        _refuse_strange(path, self.lines, experiment.name)
        self.mixed = self._mixed(self.lines)

    def done(self, job: Job) -> Json | None:
        """The result of a run, none if there is none."""
        return next((line for line in self.lines if _key(line) == job.key), None)

    def add(self, job: Job, folder: Path) -> Json:
        """Append the result of a finished run; raises ValueError where it cannot be mixed in."""
        result = result_of(
            folder,
            experiment=self._experiment.name,
            arm=job.arm.name,
            baseline=job.arm.baseline,
            settings=self._digests[job.arm.name],
        )
        self.mixed = self._mixed([*self.lines, result])
        result["mixed"] = list(self.mixed)
        words = f"{self._experiment.name} --arms {job.arm.name} --seeds {job.seed}"
        result["command"] = f"rewardswap experiment {words}"
        if self.done(job) is None:
            append_result(self.path, result)
            self.lines.append(result)
        return result

    def _mixed(self, lines: Sequence[Json]) -> tuple[str, ...]:
        """What differs among the results and was allowed to."""
        found = {
            "commits": self._other_code(lines),
            "settings": self._other_settings(lines),
            "panels": self._other_panel(lines),
        }
        for kind, said in found.items():
            if said and kind not in self._allowed:
                raise ValueError(
                    f"{said}; give a new folder with --results, or --mix {kind} to have both, "
                    "which every result then says"
                )
        return tuple(kind for kind, said in found.items() if said)

    def _other_code(self, lines: Sequence[Json]) -> str | None:
        if self.code.endswith("-dirty"):
            return (
                f"the source has changes that are in no commit ({self.code}), so that nobody could "
                "say what made a result: commit them"
            )
        for line in lines:
            if code_of(line) != self.code:
                return f"{_label(line)} was made with {code_of(line)}, the source is {self.code}"
        return None

    def _other_settings(self, lines: Sequence[Json]) -> str | None:
        for line in lines:
            own = self._digests.get(line["arm"])
            if own is None:
                return f"{_label(line)} is of an arm that {self._experiment.name} lacks"
            if line["settings"] != own:
                return (
                    f"{_label(line)} was made with settings {line['settings']}, the arm's are {own}"
                )
        return None

    def _other_panel(self, lines: Sequence[Json]) -> str | None:
        first: dict[Any, Json] = {}
        for line in lines:
            if line["arm"] not in self._digests:
                continue
            other = first.setdefault(self._experiment.arm(line["arm"]).run.env, line)
            if line["panel"]["hash"] != other["panel"]["hash"]:
                return (
                    f"{_label(line)} was evaluated on panel {line['panel']['hash']}, "
                    f"{_label(other)} on {other['panel']['hash']}"
                )
        return None


def _refuse_strange(path: Path, lines: Sequence[Json], experiment: str) -> None:
    """Raise ValueError for results of another experiment, and for two of one run."""
    seen: set[tuple[str, int]] = set()
    for line in lines:
        if line["experiment"] != experiment:
            raise ValueError(
                f"{path} holds results of experiment {line['experiment']!r}, not {experiment!r}; "
                "give another folder with --results"
            )
        if _key(line) in seen:
            raise ValueError(f"{path} holds {_label(line)} twice; take one of the lines out")
        seen.add(_key(line))


def _key(line: Json) -> tuple[str, int]:
    return str(line["arm"]), int(line["seed"])


def _label(line: Json) -> str:
    return f"{line['arm']} seed {line['seed']}"
