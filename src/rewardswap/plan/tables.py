"""A plan as tables."""

from collections.abc import Iterable, Mapping

from rich.table import Table

from rewardswap.plan.compute import informative_share
from rewardswap.plan.knobs import Knob
from rewardswap.plan.sizing import Memory, Parts, Sizing
from rewardswap.plan.work import Work, per_agent_update, steps_of_loop

GIB = 1024**3
SUCCESSES = (0.02, 0.05, 0.1, 0.18, 0.3, 0.5, 0.7, 0.9)
"""Chances of success of which the share of informative groups is shown."""


def size_of(size: int | float) -> str:
    """Bytes in GiB, MiB or KiB, the largest of which there is a tenth."""
    sign, size = ("-", -size) if size < 0 else ("", size)
    for unit, bytes_of_it in (("GiB", GIB), ("MiB", 1024**2)):
        if size >= bytes_of_it / 10:
            return f"{sign}{size / bytes_of_it:.1f} {unit}"
    return f"{sign}{size / 1024:.1f} KiB"


def memory_table(memory: Memory, title: str, limit: float | None) -> Table:
    """Bytes by phase; what does not fit is said in the last row. `limit` is in bytes."""
    table = Table(title=title, title_justify="left")
    table.add_column("for")
    for phase in memory.phases:
        table.add_column(phase, justify="right")
    names = dict.fromkeys(name for parts in memory.phases.values() for name in parts)
    for name in names:
        sizes = [parts.get(name, 0) for parts in memory.phases.values()]
        if any(sizes):
            table.add_row(name, *(size_of(size) if size else "-" for size in sizes))
    totals = [sum(parts.values()) for parts in memory.phases.values()]
    table.add_section()
    table.add_row("all", *(size_of(total) for total in totals), style="bold")
    if limit is not None:
        table.add_row(f"of {size_of(limit)}", *(verdict(total, limit) for total in totals))
    return table


def host_table(host: Parts, limit: float | None) -> Table:
    """Bytes on the host beside a device."""
    total = sum(host.values())
    table = Table(title="memory of the host", title_justify="left")
    table.add_column("for")
    table.add_column("at most", justify="right")
    for name, size in host.items():
        table.add_row(name, size_of(size))
    table.add_section()
    table.add_row("all", size_of(total), style="bold")
    if limit is not None:
        table.add_row(f"of {size_of(limit)}", verdict(total, limit))
    return table


def verdict(size: int | float, limit: float) -> str:
    """Whether it fits."""
    return "fits" if size <= limit else f"{size_of(size - limit)} over"


def knob_table(found: Iterable[Knob], memory: Memory, limit: float | None) -> Table:
    """What each setting alone would save in each phase, and what the largest phase has then."""
    table = Table(title="what each setting alone would save", title_justify="left")
    table.add_column("setting", min_width=len("--policy.gradient-checkpointing"))
    for name in (*memory.phases, "peak then"):
        table.add_column(name, justify="right", no_wrap=True)
    for knob in found:
        if knob.memory is None:
            table.add_row(f"{knob.change} is refused: {knob.refusal}")
            continue
        cells = [
            size_of(sum(parts.values()) - sum(knob.memory.phases[phase].values()))
            for phase, parts in memory.phases.items()
        ]
        helps = limit is not None and knob.memory.peak <= limit < memory.peak
        table.add_row(knob.change, *cells, size_of(knob.memory.peak) + ("\nfits" if helps else ""))
    return table


def work_table(sizing: Sizing) -> Table:
    """Tokens, steps and FLOPs of each step of a loop, and per update of the agent."""
    columns: dict[str, Work] = {}
    for name, (count, work) in steps_of_loop(sizing).items():
        columns[name if count == 1 else f"{name} (x {count})"] = work
    columns["per agent update"] = per_agent_update(sizing)
    table = Table(title="work of one step, all devices together", title_justify="left")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    rows = {
        "episodes": "episodes",
        "environment steps": "environment_steps",
        "prompt tokens": "prompt_tokens",
        "action tokens": "action_tokens",
        "trained rows": "rows",
        "trained tokens": "trained_tokens",
        "  actions among them": "trained_actions",
    }
    for label, field in rows.items():
        table.add_row(label, *(f"{getattr(work, field):,.0f}" for work in columns.values()))
    table.add_row("TFLOPs", *(f"{work.flops / 1e12:,.4g}" for work in columns.values()))
    return table


def groups_table(tasks: int, group_size: int, success: float | None) -> Table:
    """Expected share of groups with both outcomes, by the chance of success."""
    title = f"groups of {group_size} with success and failure, 1 - p^G - (1 - p)^G"
    table = Table(title=title, title_justify="left")
    table.add_column("success p")
    table.add_column("share", justify="right")
    table.add_column(f"of {tasks} groups", justify="right")
    given = () if success is None else (success,)
    for chance in sorted({*SUCCESSES, *given}):
        share = informative_share(chance, group_size)
        style = "bold" if chance in given else ""
        table.add_row(f"{chance:g}", f"{share:.1%}", f"{tasks * share:.1f}", style=style)
    return table


def facts_table(facts: Mapping[str, str]) -> Table:
    """What the plan rests on."""
    table = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        table.add_row(name, fact)
    return table
