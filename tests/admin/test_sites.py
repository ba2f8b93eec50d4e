"""The pages on an admin site with another name, and under Django's own content policy with nonces."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import django
import pytest
from django.contrib import admin
from django.test import Client
from django.urls import path, reverse

from approvals.admin import RequestAdmin
from approvals.models import Request
from flows.admin.workflow import WorkflowAdmin
from flows.models import Workflow
from tests.support.approving import PASSWORD, World

ops = admin.AdminSite(name="ops")
ops.register(Request, RequestAdmin)
ops.register(Workflow, WorkflowAdmin)

urlpatterns = [path("ops/", ops.urls)]


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
