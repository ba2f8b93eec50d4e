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
from django.urls import reverse
from django.utils.translation import trans_real

from approvals.models import Delegation, Pool
from flows import registry
from tests.support import scene
from tests.support.approving import World
from tests.support.browsing import LIST, Forms, client_of, page, url_of
from tests.support.laddering import POOL, ask_long

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
    "Tidy up the archive",
    "Order parts for the press",
    "Ask in their words",
    "The riddle of the week",
    *("Title", "Count", "Price", "Urgent", "Size", "Small", "Large", "Wanted by", "Note", "Contract"),
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
            named = re.sub(r" \(\d+\)$", "", left)  # a count beside a name
            if re.search(r"[^\W\d_]{2,}", left) and named not in given_here and "document.title" not in left:
                found.setdefault(left, set()).add(where)

    with scene.set_up(world) as filled:
        given_here |= names()
        client = Client()
        client.force_login(world.rita)
        for screen in scene.pages():
            if screen.who != "rita" or not screen.of_approvals:
                continue
            look(screen.name, client.get(screen.where(filled), follow=True))
        for verdict, digest in (
            ("changes", filled.short.digest),
            ("", filled.short.digest),
            ("approve", ""),
            ("approve", "another"),
        ):
            given = {"verdict": verdict, "digest": digest}
            look(f"refused {given}", client.post(scene.PAGES_BY_NAME["decide"].where(filled), given, follow=True))
        for verb in ("deny", "approve", "assign"):
            chosen = {"action": f"{verb}_selected", "_selected_action": [filled.short.pk, filled.part.pk]}
            selected = client.post(reverse(LIST) + "?queue=pending", chosen, follow=True)
            look(f"selected to {verb}", selected)
            frozen = Forms(selected.content.decode()).values.get("selection", "")
            together = reverse("admin:outlast_approvals_request_together", args=[verb])
            look(f"refused to {verb}", client.post(together, {"selection": frozen}, follow=True))
            look(f"made up to {verb}", client.post(together, {"selection": "x"}, follow=True))
            look(f"assigned or not: {verb}", client.post(together, {"selection": frozen, "to": world.ron.pk}, follow=True))
        for where in ("assign", "decide-approved", "ask", "delegation-add-popup"):
            look(f"nothing sent to {where}", client.post(scene.PAGES_BY_NAME[where].where(filled), {}, follow=True))
        look("taken back without a reason", client.post(url_of(filled.approved, "revoke"), {}))
        look("no such filter", client.get(reverse(LIST) + "?nothing=1", follow=True))
        made_up = {"action": "deny_selected", "_selected_action": ["x"]}
        look("no such row", client.post(reverse(LIST), made_up, follow=True))
        for name in ("vera", "robin", "otto", "sue", "dora"):
            client.force_login(get_user_model().objects.get(username=name))
            for asked in ("decide", "decide-answered", "decide-ladder", "ask", "ask-answered"):
                look(f"{asked} for {name}", client.get(scene.PAGES_BY_NAME[asked].where(filled)))
        for verdict in ("approve", "approve", "deny"):
            client.force_login(world.rita)
            given = {"verdict": verdict, "digest": filled.short.digest, "comment": "x"}
            look(f"answered {verdict}", client.post(scene.PAGES_BY_NAME["decide"].where(filled), given, follow=True))
    assert not found, "\n".join(f"{text!r}: {sorted(places)}" for text, places in found.items())


@pytest.mark.req("F7")
def test_whom_a_question_is_put_to_is_said_in_the_readers_language(world: World, marking: None) -> None:
    request = ask_long(world)
    shown = page(client_of("rita"), url_of(request))
    assert f">{OPEN}pool {POOL}{CLOSE}<" in shown
    for editor in (world.rita, world.ron):
        world.decide(request, by=editor)
    world.clock.move(hours=9)
    world.worker.tick()
    shown = page(client_of("lena"), url_of(request))
    assert f"{OPEN}{OPEN}pool {POOL}{CLOSE} or managing editors{CLOSE}" in shown
    assert f"{OPEN}pool {POOL}{CLOSE}" in page(client_of("lena"), reverse(LIST))
