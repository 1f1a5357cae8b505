"""How arms of run folders are called."""

from pathlib import Path

from made_runs import make_run

from rewardswap.comparison.sources import arm_of, gather


def runs_of(folder: Path, **changed: str) -> list[Path]:
    """A run folder for each name, its seed and learning rate as told."""
    found = []
    for name, rate in changed.items():
        run = make_run(folder / name)
        text = (run / "config.toml").read_text()
        assert "learning_rate = 0.0003" in text
        text = text.replace("learning_rate = 0.0003", f"learning_rate = {rate}")
        (run / "config.toml").write_text(text)
        found.append(run)
    return found


def test_an_arm_is_called_by_what_differs_between_the_folders(tmp_path: Path) -> None:
    """All have 2 updates where the recipe has 90: that is no name of any."""
    paths = runs_of(tmp_path, a="0.0003", b="0.01", c="0.01")
    arms = [result["arm"] for result in gather(paths)]
    assert arms == ["demo-grpo", *["demo-grpo policy.learning_rate=0.01"] * 2]
    assert [result["arm"] for result in gather(paths[1:])] == ["demo-grpo"] * 2
    (alone,) = gather(paths[1:2])
    assert alone["arm"] == "demo-grpo budget=2 policy.learning_rate=0.01"


def test_a_folder_means_its_arm(tmp_path: Path) -> None:
    paths = runs_of(tmp_path, a="0.0003", b="0.01")
    results = gather(paths)
    assert arm_of(str(paths[1]), paths, results) == "demo-grpo policy.learning_rate=0.01"
    assert arm_of(str(paths[0]), paths, results) == "demo-grpo"
    assert arm_of("demo-grpo", paths, results) == "demo-grpo"
    assert arm_of(str(tmp_path / "none"), paths, results) == str(tmp_path / "none")
