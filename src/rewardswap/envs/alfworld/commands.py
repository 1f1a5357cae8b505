"""Which commands ALFWorld's PDDL domain admits in a state."""

from collections.abc import Iterator

from rewardswap.envs.alfworld.state import NOTHING, WorldState

ALWAYS = ("help", "inventory", "look")


def list_admissible(state: WorldState) -> list[str]:
    """The admissible commands in ALFWorld's order: sorted as text.

    The verbs are visited in the order of their first letters, so only the commands of one verb need
    sorting.
    """
    layout = state.layout
    names = layout.receptacle_names
    here = state.here()
    closed = [names[r] for r in here if not state.accessible(r)]
    openable = [names[r] for r in here if r in state.opened]
    commands: list[str] = []
    commands += _processes(state, "clean")
    commands += sorted(f"close {name}" for name in openable)
    commands += _processes(state, "cool")
    commands += sorted(_examine(state))
    commands += layout.go_commands[state.location]
    commands += _processes(state, "heat")
    commands += ALWAYS
    if state.held != NOTHING:
        commands += sorted(_moves(state))
    commands += sorted(f"open {name}" for name in closed)
    if state.held == NOTHING:
        commands += sorted(_takes(state))
    elif layout.knife[state.held] and layout.can_slice:
        commands += sorted(_slices(state))
    commands += sorted(_uses(state))
    return commands


def _processes(state: WorldState, verb: str) -> list[str]:
    layout, held = state.layout, state.held
    if held == NOTHING or verb not in layout.processes[held]:
        return []
    does = layout.processors[verb]
    name = layout.object_names[held]
    return sorted(
        f"{verb} {name} with {layout.receptacle_names[r]}" for r in state.here() if does[r]
    )


def _examine(state: WorldState) -> Iterator[str]:
    """Objects in a receptacle are not among them: the domain file names a type that nothing has."""
    for receptacle in state.here():
        yield f"examine {state.layout.receptacle_names[receptacle]}"
    if state.held != NOTHING:
        yield f"examine {state.layout.object_names[state.held]}"


def _moves(state: WorldState) -> Iterator[str]:
    layout, held = state.layout, state.held
    for receptacle in state.here():
        if layout.fits[held][receptacle] and state.accessible(receptacle):
            yield f"move {layout.object_names[held]} to {layout.receptacle_names[receptacle]}"


def _takes(state: WorldState) -> Iterator[str]:
    layout = state.layout
    for receptacle in state.here():
        if state.accessible(receptacle):
            for thing in state.contents[receptacle]:
                if layout.pickupable[thing]:
                    name = layout.object_names[thing]
                    yield f"take {name} from {layout.receptacle_names[receptacle]}"


def _slices(state: WorldState) -> Iterator[str]:
    layout = state.layout
    for thing, places in enumerate(state.locations):
        if layout.sliceable[thing] and state.location in places:
            yield f"slice {layout.object_names[thing]} with {layout.object_names[state.held]}"


def _uses(state: WorldState) -> set[str]:
    layout = state.layout
    return {
        f"use {layout.object_names[thing]}"
        for receptacle in state.here()
        for thing in state.contents[receptacle]
        if layout.toggleable[thing]
    }
