from dataclasses import replace

import pytest
import torch

from rewardswap.rewards import online
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.online import Collected, no_worse
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.quality import judge
from rewardswap.rewards.training import split_by_task

QUICK = replace(PRESETS["after_observation"], epochs=4)


def renamed(trajectories, name: str):
    """The same episodes of other tasks."""
    return [replace(t, task=replace(t.task, id=f"{name} {t.task.id}")) for t in trajectories]


def turned_over(head):
    """The head that ranks the other way round."""
    head.layers[2].weight.data.neg_()
    return head


@pytest.fixture
def fitted(backbone, revealing) -> ProcessRewardModel:
    """A model fitted on 80 of 320 episodes."""
    model = ProcessRewardModel(backbone, QUICK)
    model.fit(revealing[:80])
    return model


def test_a_better_head_is_kept_and_counted(fitted, revealing) -> None:
    old = turned_over(fitted.head)
    accepted, before, after = fitted.refit(revealing[80:])
    assert accepted
    assert after.brier <= before.brier and after.auc_total >= before.auc_total
    assert before.held_out_trajectories == after.held_out_trajectories > 0
    assert fitted.version == 1 and fitted.head is not old
    assert len(fitted.collected.trajectories) == 320


def test_a_worse_head_is_not_kept(fitted, revealing, monkeypatch) -> None:
    old, history = fitted.head, fitted.history
    fit_head = online.fit_head

    def spoiled(*given):
        head, found = fit_head(*given)
        return turned_over(head), found

    monkeypatch.setattr(online, "fit_head", spoiled)
    result = fitted.refit(revealing[80:])
    assert not result.accepted
    assert fitted.version == 0 and fitted.head is old and fitted.history is history
    assert result.after.brier > result.before.brier
    # what was seen counts next time
    fitted.refit(renamed(revealing[:16], "new"))
    assert len(fitted.collected.trajectories) == 336


def test_both_heads_are_judged_on_the_same_tasks(fitted, revealing, monkeypatch) -> None:
    seen = []
    judged = fitted.judged

    def watched(head, trajectories, features, split):
        seen.append((head, [trajectories[n] for n in split.held_out]))
        return judged(head, trajectories, features, split)

    monkeypatch.setattr(fitted, "judged", watched)
    old = fitted.head
    fitted.refit(renamed(revealing[:40], "new"))
    assert seen[0][0] is old and seen[1][0] is not old
    assert seen[0][1] == seen[1][1]


def test_a_task_never_leaves_its_part(revealing) -> None:
    split = split_by_task(revealing[:80], QUICK)
    first = Collected.first(revealing[:80], split)
    again = first.joined_by(revealing[40:], QUICK).joined_by(renamed(revealing, "new"), QUICK)
    assert len(again.portions) == 3 and len(again.trajectories) == 80 + 280 + 320
    for task, part in first.parts.items():
        assert again.parts[task] == part
    alone = first.joined_by(renamed(revealing, "new"), QUICK)
    assert {t: p for t, p in again.parts.items() if t in alone.parts} == dict(alone.parts)
    every, split = again.trajectories, again.split
    parts = [split.training, split.validation, split.held_out]
    tasks = [{every[n].task.id for n in part} for part in parts]
    assert not (tasks[0] & tasks[1] or tasks[0] & tasks[2] or tasks[1] & tasks[2])
    assert sorted(n for part in parts for n in part) == list(range(len(every)))
    # 80 tasks at .65, .15 and .2 of them: 52, 12 and 16 in the mean, deviating by 4 at most
    assert [len(part) for part in tasks] == [pytest.approx(n, abs=12) for n in (52, 12, 16)]


def test_a_head_that_was_read_from_disk_starts_from_what_comes(
    fitted, backbone, revealing, tmp_path
) -> None:
    turned_over(fitted.head)
    fitted.save_pretrained(tmp_path)
    loaded = ProcessRewardModel.from_pretrained(tmp_path, backbone)
    assert loaded.refit(revealing).accepted
    assert loaded.version == 1
    loaded.save_pretrained(tmp_path)
    assert ProcessRewardModel.from_pretrained(tmp_path, backbone).version == 1


def test_a_refit_is_the_same_to_the_bit_and_reads_earlier_portions_from_the_cache(
    backbone, revealing, tmp_path
) -> None:
    cache = FeatureCache(tmp_path)
    scores = []
    for kept in (None, cache):
        model = ProcessRewardModel(backbone, QUICK, kept)
        model.fit(revealing[:80])
        first = cache.misses
        model.refit(renamed(revealing[:40], "new"))
        scores.append(model.rewards(revealing[:4])[0])
    assert torch.equal(scores[0], scores[1])
    assert cache.hits == first > 0


def test_no_worse_by_hand(make) -> None:
    episodes = [make([5, 5], index=n, success=n < 2) for n in range(4)]

    def of(*rewards: float):
        return judge(episodes, [[reward] for reward in rewards])

    plain = of(0.75, 0.25, 0.5, 0.0)
    assert no_worse(plain, plain)
    # the same ranks, nearer to the outcome; and farther
    assert no_worse(plain, of(1.0, 0.25, 0.5, 0.0))
    assert not no_worse(plain, of(0.75, 0.25, 0.625, 0.0))
    # nearer to the outcome in the mean, but .4 of a success falls behind both failures
    worse = of(1.0, 0.4, 0.45, 0.45)
    assert worse.brier < plain.brier and worse.auc_total < plain.auc_total
    assert not no_worse(plain, worse)
    one_kind = judge(episodes[:2], [[1.0], [1.0]])
    assert not no_worse(one_kind, one_kind)


def test_a_refit_needs_a_head_and_trajectories(fitted, backbone, revealing) -> None:
    with pytest.raises(ValueError, match="without a head"):
        ProcessRewardModel(backbone, QUICK).refit(revealing)
    with pytest.raises(ValueError, match="no trajectories to refit"):
        fitted.refit([])
