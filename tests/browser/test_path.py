"""The whole way of a reviewer: in, through the inbox, a request for changes, what became of it, an approval, the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from tests.support.approving import PASSWORD, World
from tests.support.browser import Page
from tests.support.hands import Hand, Keyboard, Pointer
from tests.support.scene import THEMES, WIDTHS

pytestmark = pytest.mark.req("F7")

INBOX = "admin:outlast_approvals_request_changelist"


@pytest.fixture(params=["pointer", "keyboard"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, tab: Page) -> int:
    tab.screen(request.param, WIDTHS[request.param], phone=request.param < 600)
    return int(request.param)


@pytest.fixture(params=THEMES)
def theme(request: pytest.FixtureRequest, tab: Page) -> str:
    tab.dark(on=request.param == "dark")
    return str(request.param)


@pytest.fixture
def hand(tab: Page, how: str, width: int) -> Hand:
    return Keyboard(tab) if how == "keyboard" else Pointer(tab, finger=width < 600)


@pytest.fixture
def shot(tab: Page, how: str, width: int, theme: str) -> Callable[[str], None]:
    """Keep a picture of a station, and look that it can be read as it stands."""

    def take(name: str) -> None:
        tab.shoot(f"path-{name}-{width}-{theme}-{how}")
        assert tab.do("document.documentElement.scrollWidth <= innerWidth"), f"{name} does not scroll sideways"
        assert tab.complaints == [], name

    return take


def test_a_reviewer_goes_the_whole_way(world: World, address: str, tab: Page, hand: Hand, shot: Any) -> None:
    first = world.ask({"text": "Helo,\nworld"}, {"text": "Hello,\nworld"}, goal="First news")
    second = world.ask(goal="Second news")

    tab.goto(address + reverse(INBOX))
    shot("login")
    hand.write("#id_username", "rita")
    hand.write("#id_password", PASSWORD)
    hand.use('#login-form input[type="submit"]')
    assert tab.do("location.pathname") == reverse(INBOX), "on to where she wanted to go"
    shot("inbox")

    hand.use(f'a[href$="/{first.pk}/decide/"]')
    shot("packet")
    assert "Helo,\nworld" in read(tab, "#oa-what")
    assert first.digest in read(tab, "#oa-what")
    hand.use('button[value="changes"]')
    assert world.status(first) == "pending"
    assert tab.do("document.title").startswith("Error:")
    assert "Say why" in tab.do("document.getElementById('oa-comment-errors').innerText")
    assert tab.do("document.activeElement.id") == "id_comment", "the focus is where something is to be done"
    assert on_screen(tab, "#id_comment")
    shot("refused")
    hand.write("#id_comment", "A letter is missing.")
    hand.use('button[value="changes"]')
    assert world.status(first) == "changes_requested"
    assert tab.do("location.pathname") == decide(second), "straight on to the next one"
    assert "handed to the workflow" in tab.do("document.querySelector('.messagelist').innerText")
    shot("next")

    world.worker.run()
    revised = world.request_of(first.workflow)
    hand.use(f'#content a[href="{reverse(INBOX)}"]')
    hand.use(f'a[href$="/{revised.pk}/decide/"]')
    since = read(tab, "#oa-since")
    assert "A letter is missing." in since
    assert [line in since for line in ("Helo,", "Hello,")] == [True, True], "the line as it was and as it is"
    shot("revised")
    hand.use('button[value="approve"]')
    assert world.status(revised) == "approved"
    assert tab.do("location.pathname") == decide(second)

    hand.write("#id_comment", "Not this one.")
    hand.use('button[value="deny"]')
    assert world.status(second) == "denied"
    assert tab.do("location.pathname") == reverse(INBOX), "nothing is left to answer"
    assert tab.do("document.querySelectorAll('#result_list tbody tr').length") == 0
    shot("done")
    world.worker.run()
    assert world.status(revised) == "consumed"


def decide(request: Any) -> str:
    return reverse("admin:outlast_approvals_request_decide", args=[request.pk])


def read(tab: Page, heading: str) -> str:
    """What of a section is drawn, as text."""
    return str(tab.do(f"document.querySelector('{heading}').closest('section').innerText"))


def on_screen(tab: Page, selector: str) -> bool:
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    return bool(tab.do(f"(() => {{ const b = {box}; return b.top >= 0 && b.bottom <= innerHeight; }})()"))
