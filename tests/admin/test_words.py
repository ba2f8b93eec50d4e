"""Whatever a page says in words of ours can be said in another language: under a language that marks what it translates, nothing is unmarked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.utils.translation import trans_real

from approvals.models import Delegation, Pool
from flows import registry
from tests.support import scene
from tests.support.approving import World

OPEN, CLOSE = "⟦", "⟧"
#: Elements whose text is data: what people and models wrote, codes that the documentation lists, moments.
DATA = {"data", "bdi", "code", "pre", "time", "script", "style", "textarea"}
VOID = {"img", "input", "br", "link", "meta", "hr", "col"}
#: Data of the scene and of the project that the admin shows without an element of its own; and an alt text of Django's own.
GIVEN = {
    "hidden",
    "ron",
    "The greeting of the day",
    "A long piece about the harbour",
    "The weather of tomorrow",
    "The greeting of the day:",
    "Search",
}
#: Attributes that a person reads or hears.
SPOKEN = {"title", "aria-label", "alt", "placeholder"}


class Marking(trans_real.DjangoTranslation):
    """A language in which every translatable text stands in brackets."""

    def gettext(self, message: str) -> str:
        return f"{OPEN}{message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}{CLOSE}" if message else ""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"{OPEN}{msgid1 if n == 1 else msgid2}{CLOSE}"


class Said(HTMLParser):
    """What of a page's text stands outside all brackets and is not data, piece by piece; brackets may span elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.within: list[str] = []
        self.depth = 0
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.within.append("data" if "oa-hidden" in known.get("class", "") else tag)
        if not DATA & set(self.within):
            self.found += [_outside(known[name])[0] for name in SPOKEN & set(known)]
        if tag == "input" and known.get("type") in {"submit", "button"}:
            self.found.append(_outside(known.get("value", ""))[0])

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self.within:
            self.within.pop()

    def handle_data(self, data: str) -> None:
        if not DATA & set(self.within):
            left, self.depth = _outside(data, self.depth)
            self.found.append(left)


def _outside(text: str, depth: int = 0) -> tuple[str, int]:
    """What stands outside all brackets, and how many are open at the end."""
    left = []
    for character in text:
        depth += (character == OPEN) - (character == CLOSE)
        if depth == 0 and character != CLOSE:
            left.append(character)
    return " ".join("".join(left).split()), depth


def names() -> set[str]:
    """What the project's people have named themselves: flows, roles, pools, users."""
    users = get_user_model().objects.values_list("username", flat=True)
    roles, pools = (model.objects.values_list("name", flat=True) for model in (Group, Pool))
    stand_ins = (str(one) for one in Delegation.objects.all())
    return {*(name for name, _ in registry.known()), *users, *roles, *pools, *stand_ins}


@pytest.fixture
def marking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(trans_real, "translation", lambda language: Marking("en"))
    monkeypatch.setattr(trans_real, "_default", Marking("en"))
    before = getattr(trans_real._active, "value", None)
    trans_real._active.value = Marking("en")
    yield
    trans_real._active.value = before


@pytest.mark.req("F7")
def test_every_word_of_the_reviewers_pages_can_be_translated(world: World, marking: None) -> None:
    found: dict[str, set[str]] = {}
    given_here = set(GIVEN)

    def look(where: str, response: Any) -> None:
        text = "<main " + (response.content.decode().partition('id="content-start"')[2])
        messages = re.search(r'<ul class="messagelist">.*?</ul>', response.content.decode(), re.DOTALL)
        for left in [*Said(text).found, *(Said(messages.group()).found if messages else [])]:
            if re.search(r"[^\W\d_]{2,}", left) and left not in given_here and "document.title" not in left:
                found.setdefault(left, set()).add(where)

    with scene.set_up(world) as filled:
        given_here |= names()
        client = Client()
        client.force_login(world.rita)
        for page in scene.pages():
            if page.who != "rita" or not page.of_approvals:
                continue
            look(page.name, client.get(page.where(filled), follow=True))
        for verdict, digest in (
            ("changes", filled.short.digest),
            ("", filled.short.digest),
            ("approve", ""),
            ("approve", "another"),
        ):
            given = {"verdict": verdict, "digest": digest}
            look(f"refused {given}", client.post(scene.PAGES_BY_NAME["decide"].where(filled), given, follow=True))
        for name in ("vera", "robin", "otto", "sue"):
            client.force_login(getattr(world, name))
            for asked in ("decide", "decide-answered", "decide-ladder"):
                look(f"{asked} for {name}", client.get(scene.PAGES_BY_NAME[asked].where(filled)))
        for verdict in ("approve", "approve", "deny"):
            client.force_login(world.rita)
            given = {"verdict": verdict, "digest": filled.short.digest, "comment": "x"}
            look(f"answered {verdict}", client.post(scene.PAGES_BY_NAME["decide"].where(filled), given, follow=True))
    assert not found, "\n".join(f"{text!r}: {sorted(places)}" for text, places in found.items())
