"""Strange texts, numbers, JSON values, and damage done to bytes and to JSON."""

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\r\noverwritten",
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "{{ 7 * 7 }}{% include '/etc/passwd' %}",
    "[bold red]markup[/]",
    "[/]",
    "[link=file:///etc/passwd]x[/link]",
    "../../x",
    "/tmp/outside-of-the-folder",
    "..",
    ".",
    "CON",
    "nul.txt",
    "C:\\x",
    "a/b",
    "~",
    "$HOME",
    "%s%n%d{0}",
    "none",
    "None",
    "true",
    "nan",
    "inf",
    "-1",
    "0x10",
    "1_000",
    "1e999",
    "--",
    "-",
    "--help",
    "=",
    "\u202eabc\u202c",
    "שלום עולם",
    "手机壳",
    "😀👍🏽",
    "e\u0301\u200b\ufeff",
    "ﬁß İı",
    "\ud800",
    "os:system",
    "module:attribute",
    "x" * 300,
    "y" * 5000,
    "(" * 500,
)
NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    3,
    7,
    0.5,
    -0.5,
    1e-300,
    1e300,
    10**6,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
    True,
    False,
)
SMALL_NUMBERS: tuple[Any, ...] = (0, 1, -1, 2, 0.5, True, 10**30, float("nan"), float("inf"))


def text(random: Random) -> str:
    """A strange text, or letters of all planes."""
    if random.random() < 0.8:
        return random.choice(TEXTS)
    codes = (random.choice((0x7F, 0x250, 0x3000, 0x10FFFF)) for _ in range(random.randint(1, 12)))
    return "".join(chr(random.randint(0, most)) for most in codes)


def value(random: Random, depth: int = 2) -> Any:
    """A JSON value of any kind."""
    draw = random.random()
    if draw < 0.3:
        return text(random)
    if draw < 0.7:
        return random.choice(NUMBERS)
    if draw < 0.8 or not depth:
        return None
    inner = [value(random, depth - 1) for _ in range(random.randint(0, 3))]
    return inner if draw < 0.9 else {text(random): part for part in inner}


def deep(random: Random) -> str:
    """JSON that is nested too deeply to be read by recursion."""
    depth = random.choice((200, 5000, 100_000))
    opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
    return opening * depth + "1" + closing * random.choice((0, depth))


def damaged(content: bytes, random: Random) -> bytes:
    """Bytes that were cut, flipped, doubled, replaced, or are something else altogether."""
    kind = random.randrange(8)
    place = random.randrange(len(content) + 1)
    if kind == 0:
        return content[:place]
    if kind == 1:
        flipped = bytearray(content or b"\0")
        for _ in range(random.choice((1, 2, 30))):
            flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        return bytes(flipped)
    if kind == 2:
        return content[:place] + random.randbytes(random.choice((1, 8, 200))) + content[place:]
    if kind == 3:
        return content[:place] + content[place + random.choice((1, 10, 100)) :]
    if kind == 4:
        return content + content[place:]
    if kind == 5:
        return random.choice((b"", b"\0" * 100, b"\xff\xfe" + content, b"\xef\xbb\xbf" + content))
    if kind == 6:
        return deep(random).encode()
    return text(random).encode("utf-8", "surrogatepass")


def changed(content: Any, random: Random, times: int = 0) -> Any:
    """JSON in which keys were taken out or added, or values replaced, at random places."""
    whole = [copy.deepcopy(content)]
    for _ in range(times or random.choice((1, 1, 1, 2, 5))):
        parent, key = random.choice(list(_places(whole)))
        kind = random.randrange(4)
        if kind == 0 and parent is not whole:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[text(random)] = value(random)
        elif kind == 2 and isinstance(parent, list) and parent is not whole:
            parent.insert(key, value(random))
        else:
            parent[key] = value(random)
    return whole[0]


def _places(parent: Any) -> Sequence[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [parent]
    while waiting and len(found) < 4000:
        inner = waiting.pop(0)
        for key in list(inner) if isinstance(inner, dict) else range(len(inner)):
            found.append((inner, key))
            if isinstance(inner[key], dict | list):
                waiting.append(inner[key])
    return found


def as_json(content: Any) -> bytes:
    """JSON as Python writes it: NaN, infinities and single surrogates included."""
    return json.dumps(content).encode()


def spoiled(content: Any, random: Random) -> bytes:
    """A JSON file: changed inside most times, else damaged as bytes."""
    if random.random() < 0.6:
        return as_json(changed(content, random))
    return damaged(as_json(content), random)
