"""Generated inputs of every kind: each is accepted or refused in one clear line."""

import pytest
from fuzzed import try_kind
from fuzzed_kinds import KINDS

QUIET = ("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::DeprecationWarning")
"""Of libraries that read what is spoiled; a person sees them as warnings, no more."""


def tried(name: str, count: int, folder, first: int = 0) -> None:
    tally = try_kind(KINDS[name].tries, name, count, folder / "work", first=first)
    assert not tally.wrong, "\n".join(tally.wrong[:5])
    assert tally.tried == tally.counts["accepted"] + tally.counts["refused"] == count
    assert [path.name for path in folder.iterdir()] == ["work"]


@pytest.mark.filterwarnings(*QUIET)
@pytest.mark.parametrize("name", KINDS)
def test_some_of_every_kind(name: str, tmp_path) -> None:
    tried(name, KINDS[name].quick, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings(*QUIET)
@pytest.mark.parametrize("name", KINDS)
def test_more_of_every_kind(name: str, tmp_path) -> None:
    tried(name, 10 * KINDS[name].quick, tmp_path, first=10**6)


@pytest.mark.filterwarnings(*QUIET)
@pytest.mark.parametrize("name", ("run files, spoiled", "game files", "model folders"))
def test_the_generators_make_both_good_and_bad_inputs(name: str, tmp_path) -> None:
    counts = set()
    for first in range(0, 200, 5):
        tally = try_kind(KINDS[name].tries, name, 5, tmp_path, first=first)
        counts |= set(tally.counts)
        if counts == {"accepted", "refused"}:
            return
    pytest.fail(f"{name}: all of 200 inputs were {counts}")
