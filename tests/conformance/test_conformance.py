"""The library equals the recorded outputs of verl-agent and verl, gradients included."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter import FUNCTIONS, run
from adapter_inputs import plain

RECORDED = Path(__file__).parents[3] / "shared" / "conformance"
ABSENT = f"needs the recorded outputs in {RECORDED}, beside the repository"


def recorded_cases() -> list[Any]:
    """One parameter per recorded case, or one skipped parameter if there are no recordings."""
    if not RECORDED.is_dir():
        return [pytest.param("", {}, marks=pytest.mark.skip(reason=ABSENT))]
    cases = []
    for file in sorted(RECORDED.glob("*.json")):
        content = json.loads(file.read_text())["cases"]
        by_name = content if isinstance(content, dict) else {"rspo.generalized_clip": content}
        for name, recordings in by_name.items():
            cases += [pytest.param(name, r, id=f"{name}-{i}") for i, r in enumerate(recordings)]
    return cases


@pytest.mark.parametrize(("name", "recording"), recorded_cases())
def test_equals_the_recorded_outputs(name: str, recording: dict[str, Any]) -> None:
    found = run(name, recording["inputs"])
    check(found, recording["outputs"], name)


def check(found: dict[str, Any], expected: dict[str, Any], where: str) -> None:
    for key, value in expected.items():
        ours, theirs = found[key], value
        if isinstance(theirs, dict):
            check(ours, theirs, f"{where}.{key}")
        elif isinstance(theirs, (str, bool)) and theirs != "NaN":
            assert ours == theirs, f"{where}.{key}"
        elif theirs == "NaN":
            assert np.isfinite(ours), "an empty row has weight 0, it does not poison the loss"
        else:
            np.testing.assert_allclose(
                ours, plain(theirs), atol=1e-6, rtol=1e-5, err_msg=f"{where}.{key}"
            )


@pytest.mark.skipif(not RECORDED.is_dir(), reason=ABSENT)
def test_every_recorded_function_has_an_adapter_entry() -> None:
    recorded = {parameter.values[0] for parameter in recorded_cases()}
    assert recorded == set(FUNCTIONS)
