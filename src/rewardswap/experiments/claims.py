"""The claims of the paper on the CPU testbed, arm by arm (docs/results/claims.md has the findings).

Comparisons with the base methods have five seeds, everything else three. One run takes two to eight
minutes of one core.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.experiments.experiment import Arm, Experiment
from rewardswap.loops.settings import Batch
from rewardswap.methods.base import Method
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.recipes import demo, webshop_demo
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.sources import RewardConfig

FIVE, THREE = (0, 1, 2, 3, 4), (0, 1, 2)
UPDATES = 30
"""Updates of the agent in a run, which every k of the ablation divides: GRPO is then close to
where it levels off."""
MATCHED = 61
"""Updates of a base method that play as many episodes: 30 x (2 x 3 + 1) x 7/8 / 3 = 61.25."""

METHODS: dict[str, Method] = {
    "grpo": GRPO(average="trajectory"),
    "gigpo": GiGPO(),
    "ppo": PPO(),
}
"""The base methods of the paper's table."""

WEAK = "agents/weak"
"""A start policy of about 10 % success: `rewardswap sft --stop-at 0.1 --output agents/weak`."""


def claims() -> Experiment:
    """Every claim of the paper, and the baselines that it must face."""
    return Experiment(
        "claims",
        "When does the dense phase add what replay or more rollouts alone do not?",
        (
            *_bases(),
            *_swap(),
            *_rewards(),
            *_alphas(),
            *_hard_tasks(),
            *_start_models(),
            *_shop(),
        ),
    )


def _start() -> Run:
    """RSPO around GRPO as in `demo`, shorter."""
    return replace(demo(), budget=UPDATES)


def _method(method: Method) -> Run:
    return replace(_start(), method=method)


def _with(**swap: Any) -> Run:
    start = _start()
    return replace(start, swap=replace(start.swap, **swap))


def _rewarded(loop: Any = "rspo", **reward: Any) -> Run:
    start = _start()
    return replace(start, loop=loop, reward=replace(start.reward, **reward))


def _alone(run: Run, updates: int = UPDATES) -> Run:
    """The base method of a run."""
    return replace(run, loop="on_policy", budget=updates)


def _bases() -> Iterator[Arm]:
    """RSPO against its base methods, and against GRPO with as many rollouts."""
    for name, method in METHODS.items():
        block = "first" if name == "grpo" else f"first-{name}"
        yield Arm(name, _alone(_method(method)), FIVE, block=block)
        yield Arm(f"rspo-{name}", _method(method), FIVE, baseline=name, block=block)
        if name == "grpo":
            replay = _with(explore_steps=0)
            matched = _alone(_method(method), MATCHED)
            yield Arm("grpo-matched", matched, FIVE, baseline="rspo-grpo", block=block)
            yield Arm("replay-only", replay, FIVE, baseline="rspo-grpo", block=block)


def _swap() -> Iterator[Arm]:
    """Settings of the swap, against RSPO around GRPO as it is."""
    settings: dict[str, dict[str, Any]] = {
        "k-1": {"explore_steps": 1, "learn_steps": 1},
        "k-5": {"explore_steps": 5, "learn_steps": 5},
        "k-10": {"explore_steps": 10, "learn_steps": 10},
        "replay-variance": {"replay_by": "variance"},
        "replay-uniform": {"replay_by": "uniform"},
        "harvest-during": {"harvest": "during"},
        "harvest-final-reuse": {"reuse_first_batch": True},
        "harvest-during-reuse": {"harvest": "during", "reuse_first_batch": True},
        "explorer-rate": {"explorer_learning_rate": 1e-3},
        "explorer-minibatches": {"explorer_minibatches": 8},
        "replay-advantage": {"replay_advantage": "history_median"},
        "ladder": {"explore_steps": 0, "harvest_temperatures": (0.7, 1.0, 1.3)},
    }
    for name, changed in settings.items():
        yield Arm(name, _with(**changed), THREE, baseline="rspo-grpo", block="swap")
    plain = GRPO(average="trajectory", clip_center="one")
    yield Arm("clip-plain", _method(plain), THREE, baseline="rspo-grpo", block="swap")


def _rewards() -> Iterator[Arm]:
    """Dense rewards, learned and by rule, per trajectory and per turn, swapped and direct."""
    rewards: dict[str, dict[str, Any]] = {
        "learned": {},
        "learned-to-go": {"dense_credit": "reward_to_go"},
        "paper": {"model": PRESETS["action"]},
        "progress": {"dense": "progress"},
        "progress-to-go": {"dense": "progress", "dense_credit": "reward_to_go"},
        "gains": {"dense": "progress_gains"},
        "planted": {"planted_phrase": "close", "planted_bonus": 0.5},
        "noise-0.1": {"noise": 0.1},
        "noise-0.3": {"noise": 0.3},
        "constant": {"dense": "constant"},
        "turn-counter": {"dense": "turn_counter"},
        "only-noise": {"dense": "noise", "noise": 1.0},
        "novelty": {"dense": "novelty"},
    }
    direct = ("learned", "learned-to-go", "paper", "progress", "progress-to-go", "gains", "planted")
    for name, changed in rewards.items():
        own = {"model": RewardConfig().model, **changed} if "dense" in changed else changed
        if name in direct:
            run = _rewarded("dense", **own)
            yield Arm(f"direct-{name}", run, THREE, baseline="grpo", block="rewards")
        if name != "learned":  # that one is rspo-grpo
            run = _rewarded(**own)
            yield Arm(f"swap-{name}", run, THREE, baseline="rspo-grpo", block="rewards")
    far = _with(explore_steps=10, learn_steps=10, explorer_learning_rate=1e-3)
    tempted = replace(far, reward=_rewarded(**rewards["planted"]).reward)
    yield Arm("swap-planted-far", tempted, THREE, baseline="rspo-grpo", block="rewards")


def _alphas() -> Iterator[Arm]:
    """Shares of replay: 16 tasks of 4, which every alpha divides."""
    batch = Batch(tasks=16, group_size=4)
    for name, alpha in (("8th", 1 / 8), ("16th", 1 / 16), ("4th", 1 / 4), ("half", 1 / 2)):
        run = replace(_start(), batch=batch, swap=replace(_start().swap, alpha=alpha))
        baseline = None if name == "8th" else "alpha-8th"
        yield Arm(f"alpha-{name}", run, THREE, baseline=baseline, block="alpha")


BY_RULE = RewardConfig(dense="progress", dense_credit="reward_to_go")
"""The dense reward that cannot be hacked, credited turn by turn."""


def _arms(block: str, swapped: Run, needs: str | None = None) -> Iterator[Arm]:
    """The arms that tell what the dense phase adds, from one start policy in one world."""
    replay = replace(swapped, swap=_with(explore_steps=0).swap)
    arms = {
        "grpo": _alone(swapped),
        "rspo": swapped,
        "grpo-matched": _alone(swapped, MATCHED),
        "replay-only": replay,
        "rspo-progress": replace(swapped, reward=BY_RULE),
        "direct-progress": replace(swapped, loop="dense", reward=BY_RULE),
    }
    for name, run in arms.items():
        baseline = None if name == "grpo" else f"{block}-grpo"
        yield Arm(f"{block}-{name}", run, THREE, baseline=baseline, needs=needs, block=block)


def _hard_tasks() -> Iterator[Arm]:
    """Games of the hardest type alone, of which the shipped agent wins about one in ten."""
    env = Alfworld(generated_type="pick_two_obj_and_place")
    yield from _arms("hard", replace(_start(), env=env))


def _start_models() -> Iterator[Arm]:
    """Start policies of about 10 and 60 % success, beside the shipped one's 30."""
    weak = replace(_start(), policy=replace(_start().policy, model=WEAK))
    yield from _arms("weak", weak)
    yield Arm("strong", _alone(_start(), 12), (7,), block="strong")
    yield from _arms("strong", _start(), needs="strong")


def _shop() -> Iterator[Arm]:
    """The synthetic shop."""
    for name, method in METHODS.items():
        swapped = replace(webshop_demo(), budget=24, method=method)
        alone, seeds = f"shop-{name}", FIVE if name == "grpo" else THREE
        swap = "shop-rspo" if name == "grpo" else f"shop-rspo-{name}"
        yield Arm(alone, _alone(swapped, 24), seeds, block="shop")
        yield Arm(swap, swapped, seeds, baseline=alone, block="shop")
        if name == "grpo":
            matched = _alone(swapped, 49)
            yield Arm("shop-grpo-matched", matched, THREE, baseline=alone, block="shop")
