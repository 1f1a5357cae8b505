import json
from dataclasses import replace

import pytest
import torch

from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.saving import FORMAT, SETTINGS, WEIGHTS
from rewardswap.types import Group

QUICK = replace(PRESETS["after_observation"], epochs=2)
VARIANTS = {
    "values": {"head": "sigmoid", "aggregation": "telescoping", "loss": "bce"},
    "mean": {"head": "sigmoid", "aggregation": "mean"},
    "pairs": {"head": "linear", "loss": "pairwise", "layers": "last"},
    "weighted": {"positive_weight": 2.0, "hidden_size": 16},
}


@pytest.fixture
def saved(backbone, revealing, tmp_path):
    """A folder with a saved model, and its backbone."""
    model = ProcessRewardModel(backbone, QUICK)
    model.fit(revealing)
    model.save_pretrained(tmp_path / "prm")
    return tmp_path / "prm", backbone


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_comes_back_to_the_bit(backbone, revealing, tmp_path, name) -> None:
    model = ProcessRewardModel(backbone, replace(QUICK, **VARIANTS[name]))
    model.fit(revealing)
    model.version = 3
    model.save_pretrained(tmp_path)
    stream = torch.get_rng_state()
    loaded = ProcessRewardModel.from_pretrained(tmp_path, backbone)
    assert torch.equal(torch.get_rng_state(), stream)
    group = Group(task=revealing[0].task, trajectories=tuple(revealing[:8]))
    assert torch.equal(loaded.score(group), model.score(group))
    assert (loaded.config, loaded.version) == (model.config, 3)


def changed(folder, **changes) -> None:
    settings = json.loads((folder / SETTINGS).read_text())
    (folder / SETTINGS).write_text(json.dumps({**settings, **changes}))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (SETTINGS, None, "cannot be read: No such file"),
        (WEIGHTS, None, "cannot be read: No such file"),
        (SETTINGS, b"{", "is not JSON"),
        (SETTINGS, b"\xff\xfe\xff", "is not JSON"),
        (SETTINGS, b"[1]", f"is of format None, this version reads {FORMAT}"),
        (SETTINGS, b'{"config": {}}', f"is of format None, this version reads {FORMAT}"),
        (WEIGHTS, b"weights", "is damaged"),
    ],
)
def test_files_that_cannot_be_used_are_named(saved, name, content, reason) -> None:
    folder, backbone = saved
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} {reason}"):
        ProcessRewardModel.from_pretrained(folder, backbone)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": FORMAT + 1}, "is of format 2"),
        ({"config": {"noise": 0.1}}, "is damaged: .*noise"),
        ({"config": {"head": "sigmoid"}}, "pays for length"),
        ({"config": {"hidden_size": 7}}, "does not fit its settings"),
        ({"weights_sha256": "0"}, "is damaged"),
        ({"backbone_sha256": "0"}, "fitted on a backbone"),
    ],
)
def test_settings_that_do_not_fit_are_refused(saved, changes, reason) -> None:
    folder, backbone = saved
    changed(folder, **changes)
    with pytest.raises(ValueError, match=reason):
        ProcessRewardModel.from_pretrained(folder, backbone)


def test_weights_of_another_model_are_refused(saved, revealing, tmp_path) -> None:
    folder, backbone = saved
    other = ProcessRewardModel(backbone, replace(QUICK, hidden_size=8))
    other.fit(revealing)
    other.save_pretrained(tmp_path / "other")
    (folder / WEIGHTS).write_bytes((tmp_path / "other" / WEIGHTS).read_bytes())
    with pytest.raises(ValueError, match=rf"damaged, or not of the {SETTINGS} beside it"):
        ProcessRewardModel.from_pretrained(folder, backbone)
