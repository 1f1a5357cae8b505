"""The command `rewardswap check`."""

from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from commands import refused
from inspection import faulty_environments as faulty
from rewardswap.cli import main
from rewardswap.models.loading import load_language_model

HERE = faulty.__name__


def test_what_is_found_is_printed_and_a_fault_is_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["check", f"{HERE}:Sound", "--tasks", "6"])
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"{HERE}:Sound: 6 episodes at random, ")
    assert " 0 faults, 1 remark" in said
    with pytest.raises(SystemExit) as stop:
        main(["check", f"{HERE}:Seedless"])
    assert stop.value.code == 1
    assert "- FAULT, ignores the seed: 8 tasks begin" in capsys.readouterr().out


def test_a_small_model_is_made_that_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    main(["check", f"{HERE}:Sound", "--model", str(folder)])
    assert " and 2 commands. Train it: rewardswap train demo --env own" in " ".join(
        capsys.readouterr().out.split()
    )
    loaded = load_language_model(str(folder))
    known = loaded.tokenizer.get_vocab()
    assert {"up", "down", "goal", "6", ","} <= known.keys()
    assert AutoModelForCausalLM.from_pretrained(folder).config.vocab_size == len(known)
    assert "is there already; give a new folder" in refused(
        capsys, "check", f"{HERE}:Sound", "--model", str(folder)
    )


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "check needs one environment, got a b" in refused(capsys, "check", "a", "b")
    assert "'nothing:Here' cannot be imported" in refused(capsys, "check", "nothing:Here")
    assert "tasks must be at least 1, got 0" in refused(
        capsys, "check", f"{HERE}:Sound", "--tasks", "0"
    )
    main(["check", "--help"])
    assert "rewardswap check MODULE:NAME" in capsys.readouterr().out
