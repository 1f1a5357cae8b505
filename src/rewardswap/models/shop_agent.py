"""The small agent of the generated shop: its tokenizer; the architecture is `small_agent`'s.

A word-level tokenizer in which an attribute, a kind of product and a button are one token each, an
asin is three, and a price is its tens and its last dollar.
"""

import re

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from rewardswap.envs.webshop.vocabulary import BRANDS, DEPARTMENTS, OPTIONS, USES
from rewardswap.models.small_agent import ACT, END, PAD, UNKNOWN, as_transformers

JOINT = ("find me", "price lower than", "back to search", "buy now", "next >", "< prev")
"""What instructions and pages always say together."""

BRACKETS = ("search[", "click[", "]")

WORDS = (
    ". , : ; a and of for page again product bought chosen features description reviews i am "
    "looking want to buy need with material 1 2 3 4 5"
)

MOST_DOLLARS = 369
"""No price or limit of the generated shop is above."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer; its decoder writes actions as the shop reads them."""
    kinds = [kind for department in DEPARTMENTS for kind in department.kinds]
    joint = [
        *JOINT,
        *(kind.query for kind in kinds),
        *(kind.noun for kind in kinds),
        *(name for department in DEPARTMENTS for name in department.attributes),
    ]
    several = sorted({name for name in joint if " " in name}, key=lambda name: (-len(name), name))
    words = [
        *(word for d in DEPARTMENTS for word in (*d.styles, *d.materials)),
        *(word for name, values in OPTIONS.items() for word in (name, *values)),
        *(word for use in USES for word in use.split()),
    ]
    asins = [*(f"b0sw{n:02}" for n in range(100)), *(f"{n:02}" for n in range(100))]
    dollars = ["$", *(f"${n}" for n in range(1, MOST_DOLLARS // 10 + 1)), *map(str, range(10))]
    entries = dict.fromkeys(
        [
            PAD,
            END,
            UNKNOWN,
            ACT,
            *BRACKETS,
            *WORDS.split(),
            *joint,
            *words,
            *BRANDS,
            *asins,
            *dollars,
        ]
    )
    core = Tokenizer(
        models.WordLevel({entry: n for n, entry in enumerate(entries)}, unk_token=UNKNOWN)
    )
    together = "|".join(re.escape(name) for name in several)
    core.pre_tokenizer = pre_tokenizers.Split(
        Regex(
            rf"(?:{together})(?![^\s\],;])|search\[|click\[|b0sw\d\d|(?<=b0sw\d\d)\d\d|"
            rf"(?<=b0sw\d{{4}})\d\d|\$\d*(?=\d)|(?<=\$)\d(?!\d)|(?<=\$\d)\d(?!\d)|"
            rf"(?<=\$\d\d)\d(?!\d)|[,:;\]]|\.(?!\S)|(?:(?!\.(?!\S))[^\s,:;\]])+"
        ),
        behavior="removed",
        invert=True,
    )
    core.decoder = _decoder()
    return as_transformers(core)


def _decoder() -> decoders.Decoder:
    """Tokens with spaces between them, but none inside brackets, asins and prices."""
    glued = (
        r"(?<=\[) | (?=\])",
        r"(?<=b0sw\d\d) (?=\d\d)",
        r"(?<=b0sw\d{4}) (?=\d\d)",
        r"(?<=\$) (?=\d)",
        r"(?<=\$\d) (?=\d)",
        r"(?<=\$\d\d) (?=\d)",
    )
    return decoders.Sequence(
        [
            decoders.Replace(Regex("^"), " "),
            decoders.Fuse(),
            *(decoders.Replace(Regex(pattern), "") for pattern in glued),
            decoders.Strip(" ", 1, 0),
        ]
    )
