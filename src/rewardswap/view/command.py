"""The command `rewardswap view`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.help.showing import HELP, show_help
from rewardswap.options import UsageError, checked, leading, parse


@dataclass(frozen=True)
class ViewSettings:
    """Where a run is shown."""

    port: int = 0
    """Port on 127.0.0.1; 0: any free one."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 2**16:
            raise ValueError(f"port must be from 0 to 65535, got {self.port}")


def view(words: list[str], console: Console) -> None:
    """Show a run in the browser while it goes on."""
    if not words or words[0] in HELP:
        show_help("rewardswap view", ViewSettings(), words=words)
        return
    first, rest = leading(words)
    settings = parse(ViewSettings, ViewSettings(), rest, "rewardswap view")
    if len(first) != 1:
        raise UsageError(
            f"view needs one run folder, got {' '.join(first) or 'none'}; "
            "give the folder that a training run writes"
        )
    serve(Path(first[0]), settings, console)


def serve(run: Path, settings: ViewSettings, console: Console) -> None:
    """Serve the page of a run until Ctrl-C."""
    from rewardswap.view.pages import Pages
    from rewardswap.view.server import Server

    pages = checked(lambda: Pages(run))
    try:
        server = Server(pages, settings.port)
    except OSError as error:
        raise UsageError(
            f"port {settings.port} cannot be had ({error.strerror}); give another with --port, or "
            "leave it out"
        ) from error
    with server:
        for line in (server.url, f"{pages.words()} Ctrl-C ends the showing, not the run."):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("The page is served no more.", highlight=False)
