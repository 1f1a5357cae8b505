"""Our methods in verl: on its batches, by its calls, against our own numbers and its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rewardswap.core.reductions import token_mean_weights
from rewardswap.methods import METHODS
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.rloo import RLOO
from rewardswap.models.batching import TokenScores

verl = pytest.importorskip("verl", reason="verl is not installed; run `make test-verl`")

from hydra import compose, initialize_config_module  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage  # noqa: E402
from verl.workers.config import ActorConfig  # noqa: E402

from rewardswap.bridge.rows import batch_of  # noqa: E402
from rewardswap.bridge.verl import AVERAGES, register, swapped  # noqa: E402

SENT = [n for n in METHODS if METHODS[n].rewards_suffice and n not in ("ppo", "decoupled_ppo")]
ROWS, WIDTH = 12, 20


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """verl's registries as they are without us, after every test."""
    for name in ("ADV_ESTIMATOR_REGISTRY", "POLICY_LOSS_REGISTRY"):
        monkeypatch.setattr(core_algos, name, dict(getattr(core_algos, name)))
    yield


def actor(**settings: Any) -> Any:
    return ActorConfig(strategy="fsdp", rollout_n=4, use_dynamic_bsz=True, **settings)


def data(seed: int = 0) -> DataProto:
    """Three tasks of four rows, runs of actions and observations, outcomes at the last token."""
    stream = torch.Generator().manual_seed(seed)
    mask = torch.zeros(ROWS, WIDTH, dtype=torch.int64)
    rewards = torch.zeros(ROWS, WIDTH)
    for row in range(ROWS):
        place = 0
        while place < WIDTH - 6:
            length = int(torch.randint(1, 4, (), generator=stream))
            mask[row, place : place + length] = 1
            place += length + int(torch.randint(1, 4, (), generator=stream))
        rewards[row, mask[row].nonzero()[-1]] = float(torch.rand((), generator=stream) < 0.5)
    tensors = {
        "response_mask": mask,
        "token_level_rewards": rewards,
        "old_log_probs": -torch.rand(ROWS, WIDTH, generator=stream),
        "rollout_log_probs": -torch.rand(ROWS, WIDTH, generator=stream),
    }
    uid = np.array([f"task {row % 3}" for row in range(ROWS)], dtype=object)
    return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid})


def logprobs(of: DataProto) -> Tensor:
    moved = 0.3 * torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(9))
    return (of.batch["old_log_probs"] + moved).requires_grad_()


def weights(of: DataProto) -> Tensor:
    """pi_old / pi_rollout of action tokens, as verl makes them without a threshold that acts."""
    gap = of.batch["old_log_probs"] - of.batch["rollout_log_probs"]
    return gap.exp() * of.batch["response_mask"]


def test_verl_finds_estimator_and_loss_by_name() -> None:
    register("ours", GRPO())
    found = compute_advantage(data(), adv_estimator="ours")
    own = compute_advantage(data(), adv_estimator="grpo")
    mask = found.batch["response_mask"].bool()
    torch.testing.assert_close(
        found.batch["advantages"][mask], own.batch["advantages"][mask], rtol=1e-4, atol=1e-4
    )
    assert (found.batch["advantages"][~mask] == 0).all()
    assert core_algos.get_policy_loss_fn("ours")


def test_leave_one_out_is_verls() -> None:
    register("ours", RLOO())
    found = compute_advantage(data(), adv_estimator="ours").batch
    own = compute_advantage(data(), adv_estimator="rloo").batch
    torch.testing.assert_close(found["advantages"], own["advantages"], rtol=1e-5, atol=1e-6)


def called(name: str, of: DataProto, scores: Tensor, *, mode: str, **more: Any) -> Tensor:
    value, metrics = core_algos.get_policy_loss_fn(name)(
        old_log_prob=of.batch["old_log_probs"],
        log_prob=scores,
        advantages=of.batch["advantages"],
        response_mask=of.batch["response_mask"],
        loss_agg_mode=mode,
        **more,
    )
    assert all(isinstance(number, float) for number in metrics.values())
    return value


def test_on_policy_it_is_verls_own_clip() -> None:
    register("ours", GRPO(dual_clip=3.0))
    given = compute_advantage(data(), adv_estimator="ours")
    results = []
    for name in ("ours", "vanilla"):
        scores = logprobs(given)
        value = called(name, given, scores, mode="token-mean", config=actor(clip_ratio=0.2))
        value.backward()
        assert scores.grad is not None
        results.append((value.detach(), scores.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_a_relative_window_off_policy_is_verls_weighted_clip() -> None:
    """min(w r A, clip(w r, w (1 -+ .2)) A) = w min(r A, clip(r, 1 -+ .2) A)."""
    register("ours", GRPO(dual_clip=3.0, clip_window="multiplicative"))
    given = compute_advantage(data(), adv_estimator="ours")
    scores, more = logprobs(given), {"rollout_is_weights": weights(given), "config": actor()}
    ours = called("ours", given, scores, mode="token-mean", **more)
    theirs = called("vanilla", given, scores, mode="token-mean", **more)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_the_papers_window_by_hand() -> None:
    """c = .5 / .25 = 2, pi = .8: q = 3.2, clipped to c + .2; A = 1 gives -2.2 and no gradient.

    c = .1 / .2 = .5, pi = .09: q = .45, inside .5 -+ .2; A = -1 gives .45.
    """
    register("ours", GRPO())
    mask = torch.ones(1, 2)
    scores = torch.tensor([[0.8, 0.09]]).log().requires_grad_()
    value, metrics = core_algos.get_policy_loss_fn("ours")(
        old_log_prob=torch.tensor([[0.5, 0.1]]).log(),
        log_prob=scores,
        advantages=torch.tensor([[1.0, -1.0]]),
        response_mask=mask,
        rollout_is_weights=torch.tensor([[2.0, 0.5]]),
    )
    assert value.item() == pytest.approx((-2.2 + 0.45) / 2)
    value.backward()
    assert scores.grad is not None
    assert scores.grad.tolist()[0] == pytest.approx([0.0, 0.45 / 2])
    assert metrics["actor/clip_high_share"] == 0.5
    assert metrics["actor/behavior_ratio"] == pytest.approx(1.25)


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("off_policy", [False, True])
def test_every_method_has_our_own_numbers(name: str, off_policy: bool) -> None:
    """Loss and gradient as our trainer has them of the same rows; weights are those of tokens."""
    method = replace(METHODS[name](), average="token")
    algorithm = method.algorithm()
    register("ours", method)
    given = compute_advantage(data(), adv_estimator="ours")
    mask = given.batch["response_mask"].bool()
    old = given.batch["old_log_probs"]
    behavior = given.batch["rollout_log_probs"] if off_policy else old
    batch = batch_of(
        mask,
        advantage=given.batch["advantages"],
        old_logprob=old,
        behavior_logprob=behavior,
    ).with_weights({"policy": token_mean_weights(mask)})
    theirs, ours = logprobs(given), logprobs(given)
    value = called(
        "ours",
        given,
        theirs,
        mode="token-mean",
        rollout_is_weights=weights(given) if off_policy else None,
    )
    scores = TokenScores(logprob=ours, entropy=torch.zeros(ROWS, WIDTH))
    wanted, _ = algorithm.loss(scores, batch)
    value.backward()
    wanted.backward()
    torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(theirs.grad, ours.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("average", AVERAGES)
def test_another_average_than_the_methods_is_refused(average: Any) -> None:
    register("ours", GRPO(average=average))
    given = compute_advantage(data(), adv_estimator="ours")
    called("ours", given, logprobs(given), mode=AVERAGES[average])
    with pytest.raises(ValueError, match=f"needs loss_agg_mode {AVERAGES[average]}, got token-sum"):
        called("ours", given, logprobs(given), mode="token-sum")


def test_weights_that_reject_tokens_are_refused() -> None:
    register("ours", GRPO())
    given = compute_advantage(data(), adv_estimator="ours")
    with pytest.raises(ValueError, match="rollout_is_weights are 0 at an action token"):
        called(
            "ours",
            given,
            logprobs(given),
            mode="token-mean",
            rollout_is_weights=torch.zeros(ROWS, WIDTH),
        )


REFUSED = [
    ("ppo", {}, "has a critic, which verl trains itself"),
    ("gigpo", {}, "reads more of a trajectory than its rewards"),
    ("verl_agent_compat", {}, "reads more of a trajectory than its rewards"),
    ("grpo", {"kl_coefficient": 0.1}, "kl_coefficient is verl's own there"),
    ("grpo", {"entropy_coefficient": 0.1}, "entropy_coefficient is verl's own there"),
    ("grpo", {"replay_clip_low": 0.1}, "replay_clip_low does nothing in verl"),
    ("grpo", {"clip_center": "one"}, "clip_center does nothing in verl"),
    ("grpo", {"average": "turn"}, "average turn is none of verl's"),
]


@pytest.mark.parametrize(("name", "settings", "said"), REFUSED)
def test_what_verl_cannot_carry_is_refused(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        register("ours", METHODS[name](**settings))
    assert "ours" not in core_algos.ADV_ESTIMATOR_REGISTRY


def test_a_name_of_verls_is_not_taken() -> None:
    for name in ("grpo", "vanilla"):
        with pytest.raises(ValueError, match=f"verl knows '{name}' already"):
            register(name, GRPO())
    register("ours", GRPO())
    with pytest.raises(ValueError, match="verl knows 'ours' already"):
        register("ours", GRPO())


def test_the_swap_judges_the_same_rows_by_another_reward() -> None:
    register("ours", GRPO())
    explored = compute_advantage(data(), adv_estimator="ours")
    outcome = data(seed=1).batch["token_level_rewards"].roll(1, dims=0)
    outcome = torch.zeros(ROWS, WIDTH).index_put(
        (torch.arange(ROWS), torch.zeros(ROWS, dtype=torch.int64)), outcome.sum(dim=1)
    )
    before = explored.batch["advantages"].clone()
    judged = swapped(explored, outcome, "ours")
    direct = data()
    direct.batch["token_level_rewards"] = outcome
    wanted = compute_advantage(direct, adv_estimator="ours").batch["advantages"]
    assert torch.equal(judged.batch["advantages"], wanted)
    assert not torch.equal(wanted, before)
    assert torch.equal(explored.batch["advantages"], before)
    assert torch.equal(judged.batch["rollout_log_probs"], explored.batch["rollout_log_probs"])


PAGE = (Path(__file__).parents[2] / "docs" / "verl.md").read_text(encoding="utf-8")


def test_verl_takes_the_settings_of_the_page() -> None:
    """Its own composition refuses a key that it does not have."""
    words = re.findall(r"^    ([a-z_.]+=\S+)", PAGE, flags=re.MULTILINE)
    assert len(words) == 6
    with initialize_config_module("verl.trainer.config", version_base=None):
        made = compose("ppo_trainer", overrides=words)
    correction = made.algorithm.rollout_correction
    assert (correction.rollout_is, correction.rollout_is_threshold) == ("token", 1e9)
    assert not correction.bypass_mode  # old log-probs are the trainer's own
    assert made.actor_rollout_ref.rollout.calculate_log_probs
    assert made.actor_rollout_ref.actor.policy_loss.loss_mode == made.algorithm.adv_estimator


def test_verl_imports_a_module_of_ones_own(tmp_path: Path) -> None:
    module = PAGE.partition("# our_methods.py\n")[2].partition("```")[0]
    (tmp_path / "our_methods.py").write_text(module, encoding="utf-8")
    script = (
        "import verl; from verl.trainer.ppo import core_algos; "
        "print('our_gspo' in core_algos.ADV_ESTIMATOR_REGISTRY, "
        "'our_grpo' in core_algos.POLICY_LOSS_REGISTRY)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "VERL_USE_EXTERNAL_MODULES": "our_methods", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split()[-2:] == ["True", "True"]
