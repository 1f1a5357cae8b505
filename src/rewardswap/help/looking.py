"""Help of the commands that look at runs and compare them."""

from rewardswap.help.shape import Help

LOOK = (
    Help(
        "view",
        "Show a run in the browser while it goes on.",
        ("RUN [--port N]",),
        (
            ("view runs/RUN", "prints an address of this machine to open"),
            ("view runs/RUN --port 8123", "at a port of your choice"),
            ("report runs/RUN", "the same page as a file, once"),
        ),
        ("Only this machine can open it, and it changes nothing in the run's folder.",),
    ),
    Help(
        "diagnose",
        "Say why a run does not learn, with evidence, and what to try.",
        ("RUN [--json]",),
        (
            ("diagnose runs/RUN", "a finished or an unfinished run"),
            ("diagnose runs/RUN --json", "for programs"),
            ("view runs/RUN", "its curves and episodes"),
        ),
    ),
    Help(
        "check",
        "Say what is wrong with an environment of your own.",
        ("MODULE:NAME [--model FOLDER] [--KEY VALUE ...]",),
        (
            ("check my_game:Game", "play it at random; exit code 1 where it has a fault"),
            ("check my_game:Game --model FOLDER", "make a small model of its words, too"),
            ("train demo --env own --env.make my_game:Game --policy.model FOLDER", "train it"),
        ),
        ("MODULE:NAME is a class or function that makes it (docs/environments.md).",),
    ),
)
COMPARE = (
    Help(
        "experiment",
        "Run arms over seeds as processes; goes on where it was stopped.",
        (
            "NAME [--arms A B ...] [--seeds 0 1 ...] [--jobs N] [--hours X]",
            "FILE.toml ...",
            "NAME --list",
        ),
        (
            ("experiment smoke", "a minute or two"),
            ("experiment claims --list", "its arms, what is done, what is expected"),
            ("experiment mine.toml --jobs 2", "one of your own: docs/experiments.md"),
        ),
        (
            "experiments: smoke (does everything work here?), claims (when does the dense phase "
            "add what replay or more rollouts alone do not?)",
            "Stop it when you like; the same command goes on.",
            "Exit code 1 where arms were skipped because their runs failed.",
        ),
    ),
    Help(
        "report",
        "Compare runs by tables and plots, or write a run's page anew.",
        ("RUN", "RESULTS.jsonl | RUN ... --output FOLDER [--baseline ARM] [--mix KIND ...]"),
        (
            ("report runs/RUN", "the run's own report.html, written anew"),
            ("report runs/smoke/results.jsonl --output FOLDER", "an experiment's arms"),
            ("report runs/ONE runs/OTHER --output FOLDER", "single runs side by side"),
        ),
    ),
)
