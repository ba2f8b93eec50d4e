"""A project in which every page has something to show, much of it hostile; and the list of its pages.

A page of its own is one line in `PAGES`. The list and the first row's page of everything in the admin come by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse

import flows
from approvals.api import answer as fill_in
from approvals.api import delegate
from approvals.models import Pool, Request
from flows import (
    COMPLETE,
    AgentTurn,
    Budget,
    Candidate,
    Decision,
    End,
    Kept,
    Paid,
    Visits,
    bulk,
    calendars,
    dependencies,
    policies,
    releases,
    schedules,
)
from flows.core.ids import new_id
from flows.core.turn_errors import ToolFailed
from flows.models import JournalEntry, Occurrence, WebhookDelivery, WebhookRefusal, WebhookSource
from flows.services.capacity import health
from flows.services.clock import now
from flows.services.liveness import scanning
from flows.services.webhooks.bodies import packed
from flows.store import gate
from tests import factories
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.support import doubting
from tests.support.approving import PASSWORD, AskYesOrNo, World
from tests.support.browser import Page as Tab
from tests.support.budgeting import think
from tests.support.filling import AskInTheirWords, OrderParts
from tests.support.laddering import ask_long, somebody

EVIL = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"> \u202e\u2066hidden"
OURS = ("outlast_flows", "outlast_approvals")
#: Desktop and phone, in CSS pixels.
WIDTHS = {1280: 900, 390: 844}
THEMES = ("light", "dark")


@dataclass
class Scene:
    """What stands in the record. Rita, who looks, may do everything and is a reviewer."""

    world: World
    refused: Request
    revised: Request
    answered: Request
    ladder: Request
    short: Request
    part: Request
    form: Request
    filled_in: Request
    approved: Request
    doubtful: Any
    stopped: Any
    turned: Any
    tokens: dict[str, str] = field(default_factory=dict)

    def enter(self, tab: Tab, address: str, name: str = "rita") -> None:
        """Have the tab logged in as that person, without the form."""
        if name not in self.tokens:
            client = Client()
            assert client.login(username=name, password=PASSWORD)
            self.tokens[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
        tab.visit_as(address, settings.SESSION_COOKIE_NAME, self.tokens[name])


@dataclass(frozen=True)
class Screen:
    """A page: its name (of the pictures, too), where it is, who looks, and what is done there before it is looked at."""

    name: str
    where: Callable[[Scene], str]
    who: str = "rita"
    first: Callable[[Tab], None] = lambda tab: None
    #: It shows the human plane, whose every word can be translated; the record's own words (`waiting`) stand for themselves.
    of_approvals: bool = True

    def show(self, tab: Tab, address: str, scene: Scene) -> None:
        """Have it in the tab."""
        if self.who:
            scene.enter(tab, address, self.who)
        else:
            tab.call("Network.clearBrowserCookies")
        tab.goto(address + self.where(scene))
        self.first(tab)


def decide(request: Callable[[Scene], Request]) -> Callable[[Scene], str]:
    return lambda scene: reverse("admin:outlast_approvals_request_decide", args=[request(scene).pk])


def at(name: str, query: str = "") -> Callable[[Scene], str]:
    return lambda scene: reverse(f"admin:{name}") + query


def send_without_reason(tab: Tab) -> None:
    tab.click('button[value="changes"]')


def pause_without_reason(tab: Tab) -> None:
    tab.do("document.querySelector('#oa-pause').open = true")
    tab.click("#oa-pause button[type=submit]")


def settle_without_verdict(tab: Tab) -> None:
    tab.click(".oa-answer button[type=submit]")


def send_nothing(tab: Tab) -> None:
    tab.click(".oa-send")


def take_back_without_reason(tab: Tab) -> None:
    tab.click("section[aria-labelledby=oa-revoke] button[type=submit]")


def send_form(tab: Tab) -> None:
    tab.click(".oa-page form button[type=submit]")


def choose_requests(verb: str) -> Callable[[Tab], None]:
    """Select two requests of the list, and go on to the page of that verb."""

    def choose(tab: Tab) -> None:
        tab.do("[...document.querySelectorAll('.action-select')].slice(0, 2).forEach(one => one.click())")
        tab.do(f"document.querySelector('select[name=action]').value = '{verb}_selected'")
        tab.click("button[name=index]")

    return choose


def choose_requests_and_send(verb: str) -> Callable[[Tab], None]:
    def send(tab: Tab) -> None:
        choose_requests(verb)(tab)
        if verb == "assign":
            tab.do("document.querySelector('#id_to').selectedIndex = 1")
        send_form(tab)

    return send


def choose_two(tab: Tab) -> None:
    tab.do("[...document.querySelectorAll('.action-select')].slice(0, 2).forEach(one => one.click())")
    tab.do("document.querySelector('select[name=action]').selectedIndex = 1")
    tab.click("button[name=index]")


def choose_two_without_verdict(tab: Tab) -> None:
    choose_two(tab)
    settle_without_verdict(tab)


def open_all(tab: Tab) -> None:
    tab.do("document.querySelectorAll('details').forEach(one => { one.open = true; })")


PAGES = [
    Screen("login", at("index"), who=""),
    Screen("index", at("index"), of_approvals=False),
    Screen("inbox", at("outlast_approvals_request_changelist")),
    Screen("inbox-all", at("outlast_approvals_request_changelist", "?queue=all")),
    Screen("inbox-empty", at("outlast_approvals_request_changelist"), who="vera"),
    Screen("decide", decide(lambda scene: scene.short)),
    Screen("decide-revised", decide(lambda scene: scene.revised)),
    Screen("decide-ladder", decide(lambda scene: scene.ladder)),
    Screen("decide-answered", decide(lambda scene: scene.answered)),
    Screen("decide-reader", decide(lambda scene: scene.revised), who="vera"),
    Screen("decide-error", decide(lambda scene: scene.revised), first=send_without_reason),
    Screen("decide-part", decide(lambda scene: scene.part)),
    Screen("decide-for-another", decide(lambda scene: scene.short), who="dora"),
    Screen("decide-approved", decide(lambda scene: scene.approved)),
    Screen("decide-approved-error", decide(lambda scene: scene.approved), first=take_back_without_reason),
    Screen("ask", decide(lambda scene: scene.form)),
    Screen("ask-for-another", decide(lambda scene: scene.form), who="dora"),
    Screen("ask-error", decide(lambda scene: scene.form), first=send_nothing),
    Screen("ask-answered", decide(lambda scene: scene.filled_in)),
    Screen("assign", lambda scene: reverse("admin:outlast_approvals_request_assign", args=[scene.short.pk])),
    Screen(
        "assign-error", lambda scene: reverse("admin:outlast_approvals_request_assign", args=[scene.short.pk]), first=send_form
    ),
    Screen("inbox-chosen", at("outlast_approvals_request_changelist"), first=choose_requests("deny")),
    Screen("inbox-chosen-error", at("outlast_approvals_request_changelist"), first=choose_requests_and_send("deny")),
    Screen("inbox-chosen-became", at("outlast_approvals_request_changelist"), first=choose_requests_and_send("assign")),
    Screen("inbox-facets", at("outlast_approvals_request_changelist", "?_facets=True&queue=pending")),
    Screen("inbox-answered", at("outlast_approvals_request_changelist", "?queue=answered")),
    Screen("inbox-popup", at("outlast_approvals_request_changelist", "?_popup=1")),
    Screen("delegation-add-error", at("outlast_approvals_delegation_add"), first=send_form),
    Screen("delegation-add-popup", at("outlast_approvals_delegation_add", "?_popup=1")),
    Screen("pool-add-popup", at("outlast_approvals_pool_add", "?_popup=1")),
    Screen(
        "pool-reader",
        lambda scene: reverse("admin:outlast_approvals_pool_change", args=[Pool.objects.latest("pk").pk]),
        who="vera",
    ),
    Screen("history", lambda scene: reverse("admin:outlast_approvals_request_history", args=[scene.answered.pk])),
    Screen(
        "workflow-waiting",
        lambda scene: reverse("admin:outlast_flows_workflow_change", args=[scene.revised.workflow_id]),
        first=open_all,
        of_approvals=False,
    ),
    Screen(
        "workflow-stopped",
        lambda scene: reverse("admin:outlast_flows_workflow_change", args=[scene.stopped.id]),
        first=open_all,
        of_approvals=False,
    ),
    Screen(
        "workflow-turn",
        lambda scene: reverse("admin:outlast_flows_workflow_change", args=[scene.turned.id]),
        first=open_all,
        of_approvals=False,
    ),
    Screen(
        "workflow-context",
        lambda scene: reverse("admin:outlast_flows_workflow_context", args=[scene.stopped.id]),
        of_approvals=False,
    ),
    Screen(
        "workflow-of-a-page",
        lambda scene: reverse("admin:outlast_flows_workflow_change", args=[scene.stopped.id]) + "?timeline=2&activities=2",
        of_approvals=False,
    ),
    Screen(
        "workflows-narrowed", at("outlast_flows_workflow_changelist", "?status=waiting&wait=human&age=7d"), of_approvals=False
    ),
    Screen("workflows-bounded", at("outlast_flows_workflow_changelist", "?flow=t-page"), of_approvals=False),
    Screen("operations-all", at("outlast_flows_operation_changelist", "?queue=all"), of_approvals=False),
    Screen(
        "workflow-error",
        lambda scene: reverse("admin:outlast_flows_workflow_change", args=[scene.revised.workflow_id]),
        first=pause_without_reason,
        of_approvals=False,
    ),
    Screen(
        "operation-error",
        lambda scene: reverse("admin:outlast_flows_operation_change", args=[scene.doubtful.pk]),
        first=settle_without_verdict,
        of_approvals=False,
    ),
    Screen("operations-chosen", at("outlast_flows_operation_changelist", "?queue=doubt"), first=choose_two, of_approvals=False),
    Screen(
        "operations-chosen-error",
        at("outlast_flows_operation_changelist", "?queue=doubt"),
        first=choose_two_without_verdict,
        of_approvals=False,
    ),
]

PAGES_BY_NAME = {page.name: page for page in PAGES}


def pages() -> list[Screen]:
    """Those, and of everything of ours in the admin the list, the first row's page and, where one may add, the empty form."""
    found = list(PAGES)
    asking = HttpRequest()
    asking.user = get_user_model().objects.get(username="rita")
    for model, shown in admin.site._registry.items():
        label, name = model._meta.app_label, str(model._meta.model_name)
        if label not in OURS:
            continue
        ours = label == "outlast_approvals"
        found.append(Screen(f"{name}-list", at(f"{label}_{name}_changelist"), of_approvals=ours))
        row = model._default_manager.order_by("pk").first()
        if row is not None:
            page = reverse(f"admin:{label}_{name}_change", args=[row.pk])
            found.append(Screen(f"{name}-page", lambda scene, page=page: page, of_approvals=ours))
        if shown.has_add_permission(asking):
            found.append(Screen(f"{name}-add", at(f"{label}_{name}_add"), of_approvals=ours))
    return found


@contextmanager
def set_up(world: World) -> Iterator[Scene]:
    """Fill the record. The worker has run; what it left is committed."""
    factories.forget()
    doubting.forget()
    world.rita.is_superuser = True
    world.rita.save()
    releases.register("R17", models={"planner": "m-1"}, prompts={"plan": EVIL}, compatible_with=[])
    policies.publish("payments", {"limit": 5, "why": EVIL}, note=EVIL, by=world.sue)
    evil = {"text": EVIL, "summary": EVIL, EVIL: EVIL}
    refused = world.ask(evil, {**evil, "text": EVIL + "\n" + EVIL}, goal=EVIL, key=EVIL, input={"evidence": [EVIL]})
    world.decide(refused, "changes", comment=EVIL)
    world.worker.run()
    answered = world.ask(goal="The weather of tomorrow")
    world.decide(answered, by=world.ron)
    world.worker.run()
    ladder = ask_long(world, goal="A long piece about the harbour")
    world.decide(ladder, by=world.ron)
    short = world.ask({"text": "Good morning.", "at": "08:00"}, flow=AskYesOrNo, goal="The greeting of the day")
    part = world.ask({**FILES, "files": [EVIL, "b", "c"]}, flow=DeleteFiles, goal="Tidy up the archive")
    form = world.ask(flow=OrderParts, goal="Order parts for the press")
    filled_in = world.ask(EVIL, flow=AskInTheirWords, goal="Ask in their words")
    fill_in(filled_in, values={"x": "a"}, digest=filled_in.digest, by=world.ron)
    Pool.objects.create(name="proofreaders", note=EVIL).members.add(world.ron)
    world.ron.user_permissions.add(Permission.objects.get(codename="delegate_own"))
    delegate(world.ron, somebody("dora"), until=now("default") + timedelta(days=2), reason=EVIL, by=world.ron)
    with factories.declaring(world.worker) as declare:
        doubtful, stopped = _fill_flows(world, declare)
        turned = _fill_turn(world, declare)
        approved = world.ask(flow=AskYesOrNo, goal="The riddle of the week")
        world.decide(approved)  # and no worker goes on with it
        revised = world.request_of(refused.workflow)
        yield Scene(world, refused, revised, answered, ladder, short, part, form, filled_in, approved, doubtful, stopped, turned)
    factories.forget()
    doubting.forget()


def _fill_webhooks() -> None:
    """A source, a delivery of which nothing could be made, and sums of what was refused."""
    moment = now("default")
    described = {"scheme": "standard", "secrets": ["env:CI_SECRET"], "event_type": "body.type", "event_key": "body.object.id"}
    WebhookSource.objects.create(name="ci", **described, reason=EVIL, updated_at=moment)
    WebhookDelivery.objects.create(
        source="ci", delivery_id=EVIL, body_digest="sha256:" + "0" * 64, unsigned_id=False, body=packed(EVIL.encode() * 20), secret=1,
        headers={"user-agent": EVIL}, verdict="unmapped", code="not_json", received_at=moment, seen_at=moment,
    )  # fmt: skip
    WebhookRefusal.objects.create(
        source="ci", hour=moment.replace(minute=0, second=0, microsecond=0), code="bad_signature", count=17
    )


def _fill_capacity() -> None:
    """A dependency that a person declared down, with the limit of what may run against it."""
    health.make(EVIL, "default")
    dependencies.down(EVIL, reason=EVIL)


def _fill_schedules() -> None:
    """A calendar, a schedule, and an occurrence that was left away."""
    calendars.publish("office", {"zone": "Europe/Vienna", "week": {"mon": ["09:00-17:00"]}}, reason=EVIL)
    schedules.create(
        "nightly", "t-page", cron="30 2 * * *", zone="Europe/Vienna", input={"said": EVIL}, calendar="office", reason=EVIL
    )
    schedules.backfill("nightly", since=now("default") - timedelta(days=3), until=now("default"), reason=EVIL)
    Occurrence.objects.update(status="skipped", code="CALENDAR")


def _fill_holds() -> None:
    """A key that is held: nothing else of the scene is; and a bulk operation that nobody works off."""
    bulk.make("resume", status="waiting", reason=EVIL)
    flows.hold("key", "<b>a key of nobody</b> \u202eevil", reason=EVIL)


def _fill_orphans() -> None:
    """An event with the name of a run that is none, found by the scan."""
    flows.signal(EVIL[:100], "t.nobody", key=EVIL[:100], payload={}, about=flows.About(workflow=new_id()))
    scanning.scan(repair=False)


def _fill_flows(world: World, declare: Callable[..., type[flows.Flow]]) -> Any:
    """Operations in doubt, a commitment, an event that nobody waits for, and a run that has used up its budget, which is given back."""
    doubting.probe_says.append(doubting.Unknown("The provider has been busy since this morning, and asks to be asked later"))
    doubtful = doubting.in_doubt(world.worker, doubting.PayProbed, key=EVIL)
    doubting.in_doubt(world.worker, key="a-key-without-any-space-" * 8)
    doubting.HoldThenPay.start({}, key="release-of-the-website-2026-11")
    _fill_webhooks()
    _fill_capacity()
    _fill_schedules()
    _fill_holds()
    _fill_orphans()
    flows.signal("scene-1", "t.nobody", key="nobody", payload={"said": EVIL})
    flow = declare(
        "t-page",
        meta={"budget": Budget(model_calls=4, kept=Kept(model_calls=1))},
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(30, then="done")),
        done=End(COMPLETE),
    )
    stopped = flow.start({}, key=EVIL, by=world.robin)
    world.worker.run()
    for _ in range(2):
        gate.burn("t-page", "think", "", 1, "default")
    return doubtful, stopped


def _fill_turn(world: World, declare: Callable[..., type[flows.Flow]]) -> Any:
    """A run whose agent turn has asked its model and called tools, of which one has steps and one has failed."""

    def fail() -> Any:
        raise ValueError(EVIL)

    def code(attempt: Any) -> Candidate:
        journal = attempt.journal
        usage = {"input_tokens": 1234, "output_tokens": 56, "cost": "0.03"}
        journal.model("ask", lambda: Paid({"say": EVIL, EVIL: [EVIL]}, usage=usage), model=EVIL[:30])
        journal.tool("read", {"path": EVIL}, lambda: journal.unit("inside", lambda: EVIL))
        with suppress(ToolFailed):
            journal.tool("a-name-without-any-space-" * 8, {}, fail)
        return Candidate("go", EVIL)

    factories.does["turn"] = code
    flow = declare("t-page-turn", turn=AgentTurn(factories.work, choices={"go": "done"}), done=End(COMPLETE))
    turned = flow.start({}, key="the-agent-turn", by=world.robin)
    world.worker.run()
    assert JournalEntry.objects.filter(workflow_id=turned.id).count() == 4
    return turned
