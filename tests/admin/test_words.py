"""Whatever a page says in words of ours can be said in another language: under a language that marks what it translates, nothing is unmarked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import trans_real

from tests.support import scene
from tests.support.approving import World

pytestmark = pytest.mark.req("F7")

OPEN, CLOSE = "⟦", "⟧"
#: Elements whose text is data: what people and models wrote, codes that the documentation lists, moments.
DATA = {"bdi", "code", "pre", "time", "script", "style", "textarea"}
#: Attributes that a person reads or hears.
SPOKEN = {"title", "aria-label", "alt", "placeholder"}


class Marking(trans_real.DjangoTranslation):
    """A language in which every translatable text stands in brackets."""

    def gettext(self, message: str) -> str:
        return f"{OPEN}{super().gettext(message)}{CLOSE}" if message else ""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"{OPEN}{super().ngettext(msgid1, msgid2, n)}{CLOSE}"


class Said(HTMLParser):
    """The texts of a page in order, without those of elements that hold data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.within: list[str] = []
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag not in {"img", "input", "br", "link", "meta", "hr", "col", "path", "rect", "use"}:
            self.within.append("data" if "oa-hidden" in (known.get("class") or "") else tag)
        self.found += [value for name, value in attrs if name in SPOKEN and value and "data" not in self.within]
        if tag == "input" and known.get("type") in {"submit", "button"}:
            self.found.append(known.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if self.within:
            self.within.pop()

    def handle_data(self, data: str) -> None:
        if not ({*DATA, "data"} & set(self.within)):
            self.found.append(data)


@pytest.fixture
def marking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(trans_real, "translation", lambda language: Marking("en"))
    monkeypatch.setattr(trans_real, "_default", Marking("en"))
    before = getattr(trans_real._active, "value", None)
    trans_real._active.value = Marking("en")
    yield
    trans_real._active.value = before


def unmarked(text: str) -> str:
    """What stands outside all brackets."""
    depth, left = 0, []
    for character in text:
        depth += (character == OPEN) - (character == CLOSE)
        if depth <= 0 and character not in (OPEN, CLOSE):
            left.append(character)
    return " ".join("".join(left).split())


def test_every_word_of_ours_is_translatable(world: World, marking: None) -> None:
    found: dict[str, list[str]] = {}
    with scene.set_up(world) as filled:
        client = Client()
        client.force_login(world.rita)
        for page in scene.pages():
            if page.who == "rita":
                content = client.get(page.where(filled), follow=True).content.decode()
                main = content[content.index('id="content-start"') :] if 'id="content-start"' in content else content
                for text in Said("<p " + main).found:
                    if re.search(r"[^\W\d_]{2,}", left := unmarked(text)):
                        found.setdefault(left, []).append(page.name)
    for left, pages in found.items():
        print(repr(left[:150]), sorted(set(pages))[:4])
    assert not found
