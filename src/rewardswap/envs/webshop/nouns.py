"""The nouns of products' names, found with spaCy as the original finds them while it runs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rewardswap.envs.webshop.atomic import replacing
from rewardswap.envs.webshop.files import NOUNS, NOUNS_SOURCE
from rewardswap.envs.webshop.progress import watched

MODEL = "en_core_web_sm"
"""The spaCy model of the original."""

TAGS = ("NOUN", "PROPN")
"""What counts as a noun in the original: nouns and names."""

LEFT_OUT = ("lemmatizer", "ner")
"""Parts of a model that come after the tags and change none."""


class Token(Protocol):
    """What is read of spaCy's tokens."""

    @property
    def text(self) -> str:
        """The word as it stands in the name."""
        ...

    @property
    def pos_(self) -> str:
        """The universal tag of its part of speech."""
        ...


@dataclass(frozen=True)
class Tagger:
    """A spaCy model and the versions that decide what it finds."""

    pipe: Callable[[Iterable[str]], Iterator[Iterable[Token]]]
    """Tagged texts, one for one in their order."""
    model: str
    version: str
    """Of the model."""
    spacy: str
    """Version of spaCy."""

    @property
    def source(self) -> str:
        """The whole in words, as a table of nouns records it."""
        return f"spaCy {self.spacy}, {self.model} {self.version}"

    @property
    def file_name(self) -> str:
        """Of the table of nouns that this tagger makes."""
        return NOUNS.replace("*", f"_{self.model}-{self.version}")


def load_tagger(model: str = MODEL) -> Tagger:
    """A spaCy model by its name or folder; raises ValueError if it or spaCy is not installed."""
    try:
        import spacy
    except ImportError as fault:
        raise ValueError(
            f"finding nouns needs spaCy ({fault}); get it with `pip install 'rewardswap[webshop]'`"
        ) from fault
    try:
        nlp = spacy.load(model, exclude=LEFT_OUT)
    except OSError as fault:
        raise ValueError(
            f"spaCy {spacy.__version__} cannot load model {model!r} ({fault}); get it with "
            f"`python -m spacy download {model}`"
        ) from fault
    name = f"{nlp.meta['lang']}_{nlp.meta['name']}"
    return Tagger(nlp.pipe, name, nlp.meta["version"], spacy.__version__)


def tag_nouns(names: Mapping[str, str], tagger: Tagger) -> dict[str, list[str]]:
    """Lower-case nouns of each name by asin, in their order and with duplicates.

    Raises ValueError if there is none in any name: the model then has no tagger.
    """
    docs = watched(tagger.pipe(names.values()), "finding nouns", len(names))
    nouns = {
        asin: [token.text.lower() for token in doc if token.pos_ in TAGS]
        for asin, doc in zip(names, docs, strict=True)
    }
    if not any(nouns.values()):
        raise ValueError(
            f"{tagger.model} finds no noun in {len(names)} names; take a model with a tagger, "
            f"such as {MODEL}"
        )
    return nouns


def write_nouns(folder: Path, nouns: Mapping[str, list[str]], tagger: Tagger) -> Path:
    """Writes the folder's table of nouns in one step; returns its path.

    Raises OSError if it cannot be written.
    """
    path = folder / tagger.file_name
    with replacing(path) as file:
        file.write(json.dumps({NOUNS_SOURCE: tagger.source, **nouns}).encode())
    return path
