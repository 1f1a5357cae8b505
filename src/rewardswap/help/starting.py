"""Help of the commands to start with."""

from rewardswap.help.shape import Help

START = (
    Help(
        "doctor",
        "Check installation, machine and one turn of play; say what to do.",
        ("[--model FOLDER] [--env NAME --env.KEY VALUE ...] [--json]",),
        (
            ("doctor", "everything that the demo needs"),
            ("doctor --env webshop --env.data FOLDER", "the files of the real shop too"),
            ("doctor --model FOLDER", "whether this model can be trained here"),
        ),
        (
            "A line is `ok`, `missing` (optional, and not there) or `wrong`.",
            "Exit code 1 where something that is needed is wrong.",
        ),
    ),
    Help(
        "demo",
        "Train the small agent that ships by RSPO: seven minutes, 2 cores.",
        ("[--KEY VALUE ...]",),
        (
            ("demo", "before and after on 400 held-out games, and a page of curves"),
            ("demo --seed 1", "the same with other random draws"),
            ("demo --budget 6 --env.generated-games 80 --env.evaluation-tasks 6", "a minute"),
        ),
        ("It is `rewardswap train demo`, and takes the same keys.",),
    ),
    Help(
        "play",
        "Play in the terminal: yourself, the oracle or a model.",
        ("[--by person | oracle | MODEL] [--task NUMBER | ID] [--env NAME] [--KEY VALUE ...]",),
        (
            ("play", "the first held-out game, typed by you"),
            ("play --env webshop --by oracle --task 3", "how the third goal is reached"),
            ("play --by runs/RUN", "what a run has learned, with each action's log-prob"),
        ),
        (
            "While you play: ? lists what is admissible, ?? tells what happened so far, a number "
            "takes that action of the list, quit (or Ctrl-D) leaves.",
            "MODEL is a model's folder, a run's folder, or a name: base-agent, shop-agent, or one "
            "of `rewardswap model list`. A run's folder brings its environment along.",
        ),
    ),
    Help(
        "recipes",
        "List the named runs that training starts from, or show one.",
        ("[NAME]",),
        (
            ("recipes", "all of them, a line each"),
            ("recipes demo", "its settings that differ from the defaults, and how it is started"),
            ("train demo --dry-run", "try one, with random weights"),
        ),
    ),
    Help(
        "methods",
        "List the methods that a run can be built around, or show one.",
        ("[NAME | MODULE:CLASS]", "--markdown"),
        (
            ("methods", "all of them, with their papers"),
            ("methods gigpo", "formula, deviations, and every setting of one"),
            ("train demo --method gigpo", "train with it"),
        ),
        ("--markdown prints the page docs/methods.md.",),
    ),
)
