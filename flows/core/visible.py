"""Characters that a reader cannot see, made visible: text becomes segments, plain or marked. Escaping alone is not enough for a model's text.

A U+202E turns the rest of a line round on screen, zero-width and tag characters hide whole sentences, and all of them pass HTML escaping.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

#: Unicode categories that have no picture of their own: controls, formats, private, unassigned, surrogates, line separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})

#: Letters and marks that are drawn as nothing: joiners, fillers, variation selectors, the empty Braille cell.
_HIDDEN_OTHERS = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)

_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")
_TAGS = range(0xE0020, 0xE007F)

#: How many different characters of one run are named; the rest is counted.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text: plain as it was, or, if `hidden`, the names of the characters that stood there."""

    text: str
    hidden: bool = False
    title: str = ""


def is_hidden(character: str) -> bool:
    """Whether a reader would not see this character, or it moves others about; line feed and tab are not counted."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or ord(character) in _HIDDEN_OTHERS


def segments(text: str) -> list[Segment]:
    """The text in order; joining the plain segments gives it without its hidden characters."""
    found: list[Segment] = []
    plain_from = 0
    for match in _UNUSUAL.finditer(text):
        position = match.start()
        for hidden, characters in groupby(match.group(), is_hidden):
            run = "".join(characters)
            if hidden:
                if text[plain_from:position]:
                    found.append(Segment(text[plain_from:position]))
                found.append(_marked(run))
                plain_from = position + len(run)
            position += len(run)
    if text[plain_from:]:
        found.append(Segment(text[plain_from:]))
    return found


def plain(text: str) -> str:
    """The text on one line with hidden characters named in brackets, for titles and messages."""
    parts = (f"[{part.text}]" if part.hidden else part.text for part in segments(text))
    return " ".join("".join(parts).split())


@lru_cache(maxsize=1024)
def _marked(run: str) -> Segment:
    codes, names = [], []
    for character, repeated in groupby(run):
        count = len(list(repeated))
        codes.append(f"U+{ord(character):04X}" + (f"×{count}" if count > 1 else ""))
        names.append(unicodedata.name(character, "unnamed"))
    text, title = " ".join(codes[:_NAMED]), ", ".join(names[:_NAMED])
    if len(codes) > _NAMED:
        text, title = f"{text} +{len(codes) - _NAMED}", f"{title}, …"
    smuggled = "".join(chr(ord(character) - 0xE0000) for character in run if ord(character) in _TAGS)
    if smuggled:
        text = f"{text} “{smuggled[:200]}”"
    return Segment(text, hidden=True, title=title)
