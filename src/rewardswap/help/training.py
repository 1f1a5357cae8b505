"""Help of the commands that train and evaluate."""

from rewardswap.help.shape import Help

TRAIN = (
    Help(
        "plan",
        "Say what a run needs in memory and work, before it is loaded.",
        ("RECIPE | CONFIG.toml [--KEY VALUE ...]",),
        (
            ("plan demo", "this machine's memory against what the demo needs"),
            ("plan alfworld-rspo-grpo-1.5b --device-memory 80", "what fits in 80 GiB"),
            ("plan demo --check", "exit code 1 where something does not fit"),
        ),
        ("Below are its own keys, and behind them those of `rewardswap train`.",),
    ),
    Help(
        "train",
        "Train from a recipe or a config.toml, with any setting changed.",
        (
            "RECIPE [--KEY VALUE ...]",
            "CONFIG.toml [--KEY VALUE ...]",
            "--resume RUN [--cluster ray]",
        ),
        (
            ("train demo --seed 3 --swap.alpha 0.25", "a recipe, with settings changed"),
            ("train demo --method gigpo --loop on_policy", "another method, without the swap"),
            ("train --resume runs/RUN", "on with a run that was stopped or killed"),
        ),
        (
            "recipes: demo, demo-grpo, webshop-demo, ... (rewardswap recipes)",
            "--method NAME takes another method (rewardswap methods), --env NAME another "
            "environment: alfworld, webshop, own. Each has keys of its own: `rewardswap train demo "
            "--method ppo --help` shows those and the recipe's defaults.",
            "--dry-run tries everything once, one turn an episode; --cluster ray runs on several "
            "machines.",
        ),
    ),
    Help(
        "eval",
        "Evaluate a model on a fixed panel of tasks.",
        ("[--model FOLDER] [--env NAME] [--KEY VALUE ...]",),
        (
            ("eval", "the small agent that ships, on 400 held-out games"),
            ("eval --model runs/RUN/checkpoint --temperature 0", "what a run learned, greedily"),
            (
                "eval --env.games $ALFWORLD_DATA/json_2.1.1 --env.split valid_unseen",
                "on official games",
            ),
        ),
        ("--env NAME takes another environment: alfworld, webshop, own; `--env webshop --help`.",),
    ),
)
