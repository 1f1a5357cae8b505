"""The command `rewardswap data`: makes what an environment needs of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.envs.webshop.files import NOUNS, Size, find_set, read_records
from rewardswap.envs.webshop.nouns import MODEL, load_tagger, tag_nouns, write_nouns
from rewardswap.envs.webshop.reading import read_products
from rewardswap.envs.webshop.synthetic import write_catalogue
from rewardswap.help.showing import HELP, show_help
from rewardswap.names import unknown
from rewardswap.options import UsageError, parse


@dataclass(frozen=True)
class PrepareWebShop:
    """Nouns of WebShop's product names, which its reward compares; a table of them is written."""

    data: Path
    """Folder `data` of WebShop's own set-up; the table is written into it."""
    size: Size = "auto"
    """Set of products: `small` or `full`; `auto`: the one that the folder has."""
    model: str = MODEL
    """spaCy model that finds the nouns; the default is the original's."""


@dataclass(frozen=True)
class GenerateWebShop:
    """A generated shop as files of WebShop's format."""

    output: Path
    """Folder for the files, which must have none."""
    products: int = 1000
    """Size of the shop, in products."""
    seed: int = 0
    """Seed of everything in the shop."""


def data(words: list[str], console: Console) -> None:
    """Prepare an environment's data, or generate some."""
    if not words or words[0] in HELP:
        show_help("rewardswap data")
        return
    what, rest = words[0], words[1:]
    if what not in COMMANDS:
        raise UsageError(unknown("data command", what, COMMANDS))
    if not rest:
        raise UsageError(f"rewardswap data {what} needs the name of an environment: webshop")
    if rest[0] != "webshop":
        raise UsageError(unknown("environment", rest[0], ["webshop"]))
    COMMANDS[what](rest[1:], console)


def prepare_webshop(words: list[str], console: Console) -> None:
    """Write the table of nouns that `load_catalogue` reads."""
    settings = parse(PrepareWebShop, None, words, "rewardswap data prepare webshop")
    folder = settings.data
    with _refusing(folder):
        items, attributes = find_set(folder, settings.size)
        tagger = load_tagger(settings.model)
        others = sorted({path.name for path in folder.glob(NOUNS)} - {tagger.file_name})
        if others:
            raise ValueError(f"{folder}: has nouns in {others[0]} already; remove that file first")
        products = read_products(read_records(items), {}, items, attributes)
        nouns = tag_nouns({asin: product.name for asin, product in products.items()}, tagger)
        path = write_nouns(folder, nouns, tagger)
    _say(console, f"{path}: nouns of {len(nouns)} names, found by {tagger.source}")


def generate_webshop(words: list[str], console: Console) -> None:
    """Write a generated shop."""
    settings = parse(GenerateWebShop, None, words, "rewardswap data generate webshop")
    with _refusing(settings.output):
        write_catalogue(settings.output, settings.seed, settings.products)
    _say(console, f"{settings.output}: {settings.products} products, seed {settings.seed}")


COMMANDS = {"prepare": prepare_webshop, "generate": generate_webshop}


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Wrong data and folders that cannot be written to are mistakes of the caller."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to ({error.strerror})") from error


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
