"""A dense signal by rule: how far along the ordered sub-goals of its task a game is (ours)."""

from rewardswap.envs.alfworld.state import NOTHING, WorldState


def stage(state: WorldState) -> tuple[int, int]:
    """The sub-goals reached in a row, and how many there are.

    - one object to place: held, (cleaned, heated or cooled in the hand,) placed;
    - two objects: first held, first placed, second held, second placed;
    - an object under a lamp: held, lamp on beside it.
    The last one is reached exactly when the game is won. An object that is put down anywhere else
    counts no more.
    """
    layout = state.layout
    top = 2 * layout.goal_count + (layout.goal_bit != 0)
    if state.won():
        return top, top
    holds = state.held in layout.goal_objects and state.held != NOTHING
    if layout.goal_count == 2:
        placed = any(
            thing in layout.goal_objects and thing != state.held
            for receptacle in layout.goal_receptacles
            for thing in state.contents[receptacle]
        )
        return 2 * placed + holds, top
    return holds + bool(holds and state.marks[state.held] & layout.goal_bit), top


def progress(state: WorldState, first: int) -> float:
    """The reached share of the sub-goals that the start state leaves to do, in [0, 1].

    Φ = max(0, (s - s₀) / (S - s₀)) with stage s, S stages in all and s₀ = `first`, the stage at the
    start: 0 at the start, 1 exactly when won. Meant as a potential (γΦ' - Φ), so that undoing costs
    what doing gave.
    """
    now, top = stage(state)
    if now == top:
        return 1.0
    return max(0.0, (now - first) / (top - first))
