"""Python, the packages that are needed, and the optional ones."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from rewardswap.doctor.check import Check

DISTRIBUTION = "rewardswap"
DEVELOPMENT = "dev"
"""The extra that users do not need."""
EXTRAS = {
    "alfworld": "downloads the official games",
    "webshop": "spaCy: nouns of the real shop's products",
    "lora": "adapters: --policy.lora-rank",
    "gguf": "`rewardswap model fetch`",
    "adamw-8bit": "--policy.optimizer adamw_8bit",
    "vllm": "--rollout.engine vllm",
    "server": "--rollout.engine server",
    "track": "--track.to: TensorBoard, Weights & Biases, ...",
    "gymnasium": "environments of Gymnasium with text spaces",
    "textworld": "games of TextWorld",
    "ray": "--cluster ray: several machines, docs/scale.md",
    "verl": "methods inside verl: docs/verl.md",
}
"""What each extra gives."""


def check_python() -> Check:
    """The Python that runs this, against `requires-python`."""
    found, needed = platform.python_version(), metadata(DISTRIBUTION)["Requires-Python"]
    if SpecifierSet(needed).contains(found, prereleases=True):
        return Check("python", "ok", f"{found} ({needed} is needed)")
    advice = f"make an environment of Python {needed}"
    return Check("python", "wrong", f"{found}, but {needed} is needed", advice)


def check_packages() -> Iterator[Check]:
    """All that is needed in one line, or a line for each package that is wrong."""
    needed = _requirements()
    wrong = [said for one in needed if (said := _reason(one))]
    for reason in wrong:
        yield Check("packages", "wrong", reason, f"pip install --upgrade {DISTRIBUTION}")
    if not wrong:
        torch, transformers = version("torch"), version("transformers")
        found = f"all {len(needed)} in range; torch {torch}, transformers {transformers}"
        yield Check("packages", "ok", found)


def check_extras() -> Iterator[Check]:
    """One line for each extra: whether it is installed, and what it gives."""
    for extra in metadata(DISTRIBUTION).get_all("Provides-Extra") or []:
        if extra == DEVELOPMENT:
            continue
        name, gives = f"[{extra}]", EXTRAS.get(extra, "")
        needed = _requirements(extra)
        absent = [one.name for one in needed if _installed(one.name) is None]
        wrong = [said for one in needed if (said := _reason(one)) and one.name not in absent]
        advice = f"pip install '{DISTRIBUTION}[{extra}]'"
        if wrong:
            yield Check(name, "wrong", "; ".join(wrong), advice, needed=False)
        elif absent:
            yield Check(name, "optional", gives, advice, needed=False)
        else:
            yield Check(name, "ok", gives, needed=False)


def _requirements(extra: str = "") -> list[Requirement]:
    """What the package needs, or what one of its extras adds."""
    found = [Requirement(text) for text in requires(DISTRIBUTION) or []]
    without = [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]
    if not extra:
        return without
    return [
        one
        for one in found
        if one not in without and one.marker and one.marker.evaluate({"extra": extra})
    ]


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _reason(needed: Requirement) -> str:
    """What is wrong with an installed package; empty where nothing is."""
    found = _installed(needed.name)
    if found is None:
        return f"{needed.name} is not installed"
    if needed.specifier.contains(found, prereleases=True):
        return ""
    return f"{needed.name} is {found}, but {needed.specifier} is needed"
