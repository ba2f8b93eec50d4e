"""The approval screen in a real browser: by keyboard alone, on a phone, under a strict content policy, in the dark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponse
from django.test.testcases import LiveServerThread
from django.urls import reverse

from tests.factories import Ask, forget, row
from tests.support import browser, doubting
from tests.support.approving import PASSWORD, World
from tests.support.doubting import HoldThenPay, PayProbed, Unknown, in_doubt, probe_says

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(browser.find() is None, reason="no Chromium here (Debian: apt-get install chromium)"),
]

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'"
EVIL = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"> \u202e\u2066hidden"


class StrictPolicy:
    """A middleware as a careful site has one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response


@pytest.fixture
def address(world: World, settings: Any) -> Iterator[str]:
    """The project, served from this process."""
    settings.MIDDLEWARE = [f"{__name__}.{StrictPolicy.__name__}", *settings.MIDDLEWARE]
    server = LiveServerThread("localhost", StaticFilesHandler, connections_override={}, port=0)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    assert server.error is None, server.error
    yield f"http://localhost:{server.port}"
    server.terminate()


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[browser.Page]:
    with browser.page(tmp_path) as opened:
        yield opened


def log_in(tab: browser.Page, address: str, name: str = "rita") -> None:
    """As a person without a mouse does it."""
    tab.goto(address + reverse("admin:index"))
    tab.do("document.getElementById('id_username').focus()")
    tab.type(name)
    tab.press("Tab")
    tab.type(PASSWORD)
    tab.press("Enter", loads=True)
    assert "login" not in tab.do("location.pathname")


def shot(tab: browser.Page, name: str) -> None:
    """Keep a picture where somebody asked for it: OUTLAST_SHOTS=folder."""
    folder = os.environ.get("OUTLAST_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.shoot(Path(folder) / f"{name}.png")


@pytest.mark.req("F7")
def test_everything_works_by_keyboard_alone(world: World, address: str, tab: browser.Page) -> None:
    first = world.ask({"text": "Helo,\nworld"}, {"text": "Hello,\nworld"}, goal="First news")
    second = world.ask(goal="Second news")
    tab.screen(1280, 900)
    log_in(tab, address)
    tab.goto(address + reverse("admin:outlast_approvals_request_changelist"))
    shot(tab, "inbox")
    tab.tab_to(f'a[href$="/{first.pk}/decide/"]')
    tab.press("Enter", loads=True)
    shot(tab, "decide")
    tab.tab_to("#id_comment")
    assert tab.do("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus can be seen"
    tab.press("Tab")
    assert tab.do("document.activeElement.value") == "approve", "straight on to the buttons"
    tab.press("Tab")
    assert tab.do("document.activeElement.value") == "changes"
    tab.press("Enter", loads=True)
    assert "Say why" in tab.do("document.getElementById('oa-comment-errors').innerText")
    assert world.status(first) == "pending"
    tab.tab_to("#id_comment")
    tab.type("A letter is missing.")
    tab.tab_to('button[value="changes"]')
    tab.press("Space", loads=True)
    assert world.status(first) == "changes_requested"
    assert tab.do("location.pathname") == reverse("admin:outlast_approvals_request_decide", args=[second.pk])
    assert "handed to the workflow" in tab.do("document.querySelector('.messagelist').innerText")
    world.worker.run()
    revised = world.request_of(first.workflow)
    tab.goto(address + reverse("admin:outlast_approvals_request_decide", args=[revised.pk]))
    shot(tab, "decide-revised")
    tab.tab_to('button[value="approve"]')
    tab.press("Enter", loads=True)
    assert world.status(revised) == "approved"


@pytest.mark.req("F7")
def test_it_works_on_a_phone(world: World, address: str, tab: browser.Page) -> None:
    long = "a-word-without-any-space-" * 20
    request = world.ask({"text": long, "files": [long], "patch": f"--- {long}\n+++ b"}, key=long[:200], goal=long)
    tab.screen(390, 844, phone=True)
    log_in(tab, address)
    tab.goto(address + reverse("admin:outlast_approvals_request_changelist"))
    shot(tab, "phone-inbox")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth"), "the list does not make the page scroll sideways"
    tab.tap(f'a[href$="/{request.pk}/decide/"]')
    shot(tab, "phone-decide")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")
    sizes = tab.do("[...document.querySelectorAll('.oa-button')].map(b => b.getBoundingClientRect().height)")
    assert len(sizes) == 3
    assert min(sizes) >= 44, "a finger hits the buttons"
    assert tab.do("document.querySelector('#id_comment').getBoundingClientRect().width") > 250
    tab.tap('button[value="approve"]')
    assert world.status(request) == "approved"
    tab.goto(address + reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id]))
    shot(tab, "phone-workflow")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.req("B5", "J1")
def test_what_is_owed_is_listed_by_name_and_nothing_is_cut_on_a_plain_screen(
    world: World, address: str, tab: browser.Page
) -> None:
    forget()
    doubting.forget()
    world.rita.is_superuser = True
    world.rita.save()
    probe_says.append(Unknown("The provider has been busy since this morning, and asks to be asked later"))
    kept = [
        in_doubt(world.worker, PayProbed, key="order-2026-11-30-customer-004711"),
        in_doubt(world.worker, key="a-key-without-any-space-" * 8),
    ]
    HoldThenPay.start({}, key="release-of-the-website-2026-11")
    world.worker.run()
    tab.screen(1400, 900)
    log_in(tab, address)
    for name, query in (("operation", "?queue=all"), ("operation", "?queue=doubt"), ("operation", ""), ("commitment", "")):
        tab.goto(address + reverse(f"admin:outlast_flows_{name}_changelist") + query)
        shot(tab, f"list-{name}{query.replace('?queue=', '-')}")
        assert tab.do("document.querySelectorAll('#result_list tbody tr').length") > 0
        assert tab.do("document.documentElement.scrollWidth <= innerWidth"), name
        wide = "[...document.querySelectorAll('#changelist .results')].every(t => t.scrollWidth <= t.clientWidth)"
        assert tab.do(wide), (name, tab.do("document.querySelector('#result_list').scrollWidth"))
    assert "t-doubt-holding release-of-the-website-2026-11" in tab.do("document.querySelector('#result_list').innerText")
    tab.goto(address + reverse("admin:outlast_flows_operation_changelist") + "?queue=doubt")
    text = tab.do("document.querySelector('#result_list').innerText")
    assert "t-doubt-probed order-2026-11-30-customer-004711" in text
    assert str(kept[0].workflow_id) not in text
    forget()
    doubting.forget()


@pytest.mark.req("F7")
def test_no_page_breaks_a_strict_content_policy_and_no_text_becomes_code(world: World, address: str, tab: browser.Page) -> None:
    evil = {"text": EVIL, "summary": EVIL, EVIL: EVIL}
    request = world.ask(evil, {**evil, "text": EVIL + "\n" + EVIL}, goal=EVIL, key=EVIL, input={"evidence": [EVIL]})
    world.decide(request, "changes", comment=EVIL)
    world.worker.run()
    revised = world.request_of(request.workflow)
    tab.screen(1280, 900)
    log_in(tab, address)
    pages = [
        reverse("admin:outlast_approvals_request_changelist"),
        reverse("admin:outlast_approvals_request_changelist") + "?queue=all",
        reverse("admin:outlast_approvals_request_decide", args=[request.pk]),
        reverse("admin:outlast_approvals_request_decide", args=[revised.pk]),
        reverse("admin:outlast_approvals_request_history", args=[revised.pk]),
        reverse("admin:outlast_flows_workflow_changelist"),
        reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id]),
        reverse("admin:outlast_flows_wait_changelist"),
    ]
    for target in pages:
        tab.goto(address + target)
        assert tab.do("document.title !== 'owned'")
        assert tab.complaints == [], target
    shot(tab, "waits")


@pytest.mark.req("F7")
def test_it_can_be_read_in_the_dark(world: World, address: str, tab: browser.Page) -> None:
    request = world.ask({"text": EVIL, "summary": "Trust me."}, {"text": "Hello.\n" + EVIL, "summary": "Trust me."})
    world.decide(request, "changes", comment="More.")
    world.worker.run()
    revised = world.request_of(request.workflow)
    tab.screen(1280, 900)
    tab.dark(on=True)
    log_in(tab, address)
    for name, target in (
        ("dark-decide", reverse("admin:outlast_approvals_request_decide", args=[revised.pk])),
        ("dark-workflow", reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id])),
    ):
        tab.goto(address + target)
        shot(tab, name)
        contrasts = tab.do(CONTRAST)
        assert contrasts, "there are chips and marks to look at"
        assert min(contrasts) >= 4.5, contrasts


@pytest.mark.req("Q3")
def test_a_run_is_led_on_by_keyboard_alone_and_by_a_finger(world: World, address: str, tab: browser.Page) -> None:
    forget()
    world.rita.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    runs = [Ask.start({"key": EVIL}, key=f"{EVIL} {number}", goal=EVIL) for number in range(2)]
    world.worker.run()
    tab.screen(1280, 900)
    log_in(tab, address)
    target = address + reverse("admin:outlast_flows_workflow_change", args=[runs[0].id])
    tab.goto(target)
    tab.tab_to("#oa-pause > summary")
    assert tab.do("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus can be seen"
    tab.press("Enter")
    assert tab.do("document.querySelector('#oa-pause').open")
    tab.press("Tab")
    assert tab.do("document.activeElement.id") == "id_pause_reason"
    tab.press("Tab")
    tab.press("Enter", loads=True)
    assert "Say why" in tab.do("document.getElementById('id_pause_reason_error').innerText")
    assert tab.do("document.title").startswith("Error:")
    assert row(runs[0]).status == "waiting"
    shot(tab, "pause-refused")
    tab.tab_to("#id_pause_reason")
    tab.type(EVIL)
    tab.press("Tab")
    tab.press("Space", loads=True)
    assert row(runs[0]).status == "paused"
    assert "its status is paused" in tab.do("document.querySelector('.messagelist').innerText")
    assert tab.do("document.title !== 'owned'")
    tab.do("document.querySelector('.oa-ways a[href=\"#oa-resume\"]').focus()")
    tab.press("Enter")
    assert tab.do("location.hash") == "#oa-resume"
    assert tab.complaints == []
    tab.dark(on=True)
    tab.goto(target)
    shot(tab, "dark-paused")
    assert min(tab.do(CONTRAST)) >= 4.5
    tab.dark(on=False)
    tab.screen(390, 844, phone=True)
    tab.goto(address + reverse("admin:outlast_flows_workflow_change", args=[runs[1].id]))
    tab.do("document.querySelector('#oa-cancel').open = true")
    shot(tab, "phone-cancel")
    assert tab.do("document.documentElement.scrollWidth <= innerWidth")
    assert (
        min(tab.do("[...document.querySelectorAll('.oa-button')].map(b => b.getBoundingClientRect().height).filter(h => h)"))
        >= 44
    )
    tab.do("document.querySelector('#id_cancel_reason').focus()")
    tab.type("Not wanted any more.")
    tab.tap("#oa-cancel button[type=submit]")
    assert row(runs[1]).status == "cancelled"
    forget()


#: The contrast (WCAG) of each chip, mark, button and refusal against the first background behind it.
CONTRAST = """(() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  return [...document.querySelectorAll('.oa-chip, .oa-hidden, .oa-button, .oa-refusal, .oa-line, .oa-quiet')].map(e => {
    const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05); });
})()"""
