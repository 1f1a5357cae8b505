"""What is wrong with the tasks of a world."""

from collections.abc import Iterator, Sequence

from rewardswap.envs.base import World
from rewardswap.inspection.findings import Finding
from rewardswap.task import Task


def task_findings(world: World, splits: Sequence[str]) -> Iterator[Finding]:
    """Splits that are not there, are empty, list a task twice, share tasks, or change."""
    listed: dict[str, list[Task]] = {}
    for split in splits:
        try:
            listed[split] = list(world.tasks(split))
        except ValueError as error:
            yield _finding(f"split {split!r} cannot be listed: {error}", "Name the splits it has")
    for split, tasks in listed.items():
        ids = [task.id for task in tasks]
        if not ids:
            yield _finding(f"split {split!r} is empty", "Give it at least one task")
        if len(set(ids)) < len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            yield _finding(
                f"split {split!r} lists task {twice!r} twice",
                "Make ids from the content of a task's start, each task once",
            )
        if list(world.tasks(split)) != tasks:
            yield _finding(
                f"split {split!r} listed twice gives two lists",
                "Fix the order: draw it from a seed, or sort",
            )
    yield from _shared(listed)
    for remark in [remark for split in listed for remark in world.remarks(split)]:
        yield Finding("tasks", remark.rstrip("."), "Judge results on them by it", fault=False)


def _shared(listed: dict[str, list[Task]]) -> Iterator[Finding]:
    """The first split is trained on, so no other may hold its tasks."""
    if not listed:
        return
    first, *others = listed
    known = {task.id for task in listed[first]}
    for split in others:
        shared = sorted(task.id for task in listed[split] if task.id in known)
        if shared:
            yield _finding(
                f"splits {first!r} and {split!r} share {len(shared)} tasks, such as {shared[0]!r}",
                "Hold out tasks that are not trained on",
            )


def _finding(said: str, way_out: str) -> Finding:
    return Finding("tasks", said, way_out)
