"""The command `rewardswap`: which commands there are, and what ends them."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

# Threads that wait must sleep: where another program runs too, spinning ones cost a factor of ten.
# It is read when torch is imported, and whoever has set it keeps it.
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

from rich.console import Console

from rewardswap.checks import plain_text
from rewardswap.errors import RunStoppedError, UnwrittenError
from rewardswap.help.showing import usage
from rewardswap.names import unknown
from rewardswap.options import UsageError, checked, one_line
from rewardswap.version import VERSION

Command = Callable[[list[str], Console], None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; mistakes of the caller are one line and exit code 2.

    What the system refuses (a file, a full disk) is one line and exit code 1; Ctrl-C's is 130.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    try:
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        if not words or words[0] in ("-h", "--help"):
            console.print(usage(COMMANDS), highlight=False, markup=False)
            return
        if words == ["--version"]:
            console.print(f"rewardswap {VERSION}", highlight=False)
            return
        command = COMMANDS.get(words[0])
        if command is None:
            raise UsageError(unknown("command", words[0], COMMANDS))
        for word in words:
            checked(partial(plain_text, "the word", word))
        command(words[1:], console)
    except UsageError as error:
        sys.stderr.write(f"rewardswap: {one_line(error)}\n")
        raise SystemExit(2) from None
    except (RunStoppedError, UnwrittenError) as error:
        sys.stderr.write(f"rewardswap: {one_line(error)}\n")
        raise SystemExit(1) from None
    except OSError as error:  # a path, a file or a stream that the system refuses
        where = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"rewardswap: {one_line(f'{where}{error.strerror or error}')}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("rewardswap: stopped by hand\n")
        raise SystemExit(130) from None


def _of(place: str) -> Command:
    """The command at `module:function` of the package, which is imported when it is called."""
    module, _, function = place.partition(":")

    def call(words: list[str], console: Console) -> None:
        getattr(import_module(f"rewardswap.{module}"), function)(words, console)

    return call


COMMANDS: dict[str, Command] = {
    "doctor": _of("doctor.command:doctor"),
    "demo": _of("training_commands:demo"),
    "play": _of("play.command:play"),
    "recipes": _of("listing_commands:recipes"),
    "methods": _of("listing_commands:methods"),
    "plan": _of("training_commands:plan"),
    "train": _of("training_commands:train"),
    "eval": _of("evaluation_command:evaluate"),
    "experiment": _of("experiments.command:experiment"),
    "view": _of("view.command:view"),
    "diagnose": _of("diagnosis.command:diagnose_run"),
    "check": _of("inspection.command:check"),
    "report": _of("comparison.command:report"),
    "sft": _of("training_commands:make_base_agent"),
    "export": _of("export_command:export"),
    "prm": _of("prm.command:prm"),
    "model": _of("model_fetch.command:model"),
    "data": _of("data:data"),
    "completion": _of("completion.command:completion"),
}
"""Every command by its name."""
