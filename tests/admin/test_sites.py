"""The pages on an admin site with another name, and under Django's own content policy with nonces."""

from __future__ import annotations

import sys
from datetime import timedelta
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import django
import pytest
from django.contrib import admin
from django.test import Client
from django.urls import path, reverse

from approvals.admin import DelegationAdmin, NoticeAdmin, PoolAdmin, RequestAdmin
from approvals.models import Delegation, Notice, Pool, Request
from flows.admin.workflow import WorkflowAdmin
from flows.models import Workflow
from flows.services.clock import now
from tests.support.approving import PASSWORD, AskYesOrNo, World
from tests.support.browsing import Forms, permit
from tests.support.filling import OrderParts

ops = admin.AdminSite(name="ops")
ops.register(Request, RequestAdmin)
ops.register(Workflow, WorkflowAdmin)
ops.register(Delegation, DelegationAdmin)
ops.register(Pool, PoolAdmin)
ops.register(Notice, NoticeAdmin)

urlpatterns = [path("ops/", ops.urls)]

#: Both sites, the usual one first.
BOTH = ModuleType(f"{__name__}_both")
BOTH.urlpatterns = [path("admin/", admin.site.urls), *urlpatterns]  # type: ignore[attr-defined]


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def test_a_site_of_another_name_keeps_people_on_it(world: World, settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    first, second = world.ask(), world.ask()
    client = client_of("rita")
    inbox = client.get("/ops/outlast_approvals/request/").content.decode()
    assert f'href="/ops/outlast_approvals/request/{first.pk}/decide/"' in inbox
    target = reverse("admin:outlast_approvals_request_decide", args=[first.pk], current_app="ops")
    assert f'href="/ops/outlast_flows/workflow/{first.workflow_id}/change/"' in client.get(target).content.decode()
    response = client.post(target, {"digest": first.digest, "verdict": "approve"})
    assert response.headers["Location"] == f"/ops/outlast_approvals/request/{second.pk}/decide/"
    shown = client.get(f"/ops/outlast_flows/workflow/{first.workflow_id}/change/").content.decode()
    assert f"/ops/outlast_approvals/request/of-wait/{first.wait_id}/" in shown


class Links(HTMLParser):
    """Where a page leads, and where its forms are sent."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in ("a", "form"):
            self.found |= {known.get(name) or "" for name in ("href", "action") if known.get(name)}


@pytest.mark.parametrize("mounted", ["alone", "beside the other"])
def test_no_page_of_a_second_site_leads_to_another(world: World, settings: Any, mounted: str) -> None:
    settings.ROOT_URLCONF = __name__ if mounted == "alone" else f"{__name__}_both"
    sys.modules[f"{__name__}_both"] = BOTH
    permit(world.rita, "assign_request", "delegate_own", "view_pool", "add_pool", "delete_pool", "change_pool", "view_notice")
    one, form, decided = world.ask({"text": "a"}, {"text": "b"}), world.ask(flow=OrderParts), world.ask(flow=AskYesOrNo)
    world.decide(one, "changes", comment="Other.", by=world.ron)
    world.worker.run()
    one = world.request_of(one.workflow)
    world.decide(decided)
    pool = Pool.objects.create(name="lawyers")
    client = client_of("rita")
    until = (now("default") + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    app = "/ops/outlast_approvals"
    client.post(f"{app}/delegation/add/", {"to": "ron", "until": until, "reason": "On leave"})
    made = Delegation.objects.get()
    chosen = {"action": "deny_selected", "_selected_action": [one.pk]}
    shown = {"selected": client.post(f"{app}/request/?queue=pending", chosen)}
    for target in (
        "/ops/",
        "/ops/outlast_approvals/",
        f"{app}/request/?queue=all",
        f"{app}/request/{one.pk}/decide/",
        f"{app}/request/{form.pk}/decide/",
        f"{app}/request/{decided.pk}/decide/",
        f"{app}/request/{one.pk}/assign/",
        f"{app}/request/{one.pk}/history/",
        f"{app}/request/together/",
        f"{app}/delegation/",
        f"{app}/delegation/add/",
        f"{app}/delegation/{made.pk}/change/",
        f"{app}/delegation/{made.pk}/history/",
        f"{app}/pool/",
        f"{app}/pool/add/?_popup=1",
        f"{app}/pool/{pool.pk}/change/",
        f"{app}/pool/{pool.pk}/delete/",
        f"{app}/notice/",
    ):
        shown[target] = client.get(target)
    for target, response in shown.items():
        assert response.status_code == 200, target
        html = response.content.decode().partition('id="recent-actions-module"')[0]  # its links are Django's own
        assert not {link for link in Links(html).found if not link.startswith(("/ops/", "?", "#", ".")) and link != "/"}, target
    asked = Client().get(f"{app}/request/{one.pk}/decide/")
    assert asked.headers["Location"] == f"/ops/login/?next={app}/request/{one.pk}/decide/"
    for what, given in (("claim", {}), ("release", {}), ("assign", {"to": world.ron.pk}), ("revoke", {"reason": "x"})):
        number = decided.pk if what == "revoke" else one.pk
        answer = client.post(f"{app}/request/{number}/{what}/", given)
        assert answer.headers["Location"] == f"{app}/request/{number}/decide/", what
    assert client.post(f"{app}/delegation/{made.pk}/revoke/").headers["Location"] == f"{app}/delegation/{made.pk}/change/"
    frozen = Forms(shown["selected"].content.decode()).values["selection"]
    answer = client.post(f"{app}/request/together/deny/", {"selection": frozen, "comment": "No."})
    assert answer.headers["Location"] == f"{app}/request/together/"


class Sources(HTMLParser):
    """The scripts and style sheets of a page, each with its nonce."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "script" or (tag == "link" and known.get("rel") == "stylesheet"):
            self.found.append((known.get("src") or known.get("href") or "inline", known.get("nonce")))


@pytest.mark.skipif(django.VERSION < (6, 1), reason="the admin of Django before 6.1 has no nonces")
def test_every_style_sheet_has_the_nonce_where_django_gives_one(world: World, settings: Any) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.csp.ContentSecurityPolicyMiddleware"]
    settings.SECURE_CSP = {
        "default-src": ["'none'"],
        "script-src": ["<CSP_NONCE_SENTINEL>"],
        "style-src": ["<CSP_NONCE_SENTINEL>"],
    }
    options = settings.TEMPLATES[0]["OPTIONS"]
    settings.TEMPLATES = [
        {
            **settings.TEMPLATES[0],
            "OPTIONS": {
                **options,
                "context_processors": [*options["context_processors"], "django.template.context_processors.csp"],
            },
        }
    ]
    request = world.ask()
    client = client_of("rita")
    for target in (
        reverse("admin:outlast_approvals_request_changelist"),
        reverse("admin:outlast_approvals_request_decide", args=[request.pk]),
        reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id]),
    ):
        found = Sources(client.get(target).content.decode()).found
        assert any("outlast_flows/admin.css" in source for source, _nonce in found)
        assert [source for source, nonce in found if not nonce] == []
