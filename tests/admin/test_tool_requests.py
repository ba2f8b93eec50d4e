"""A request about a call of a tool on the pages of the admin: shown, answered and linked as every other."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from approvals.models import Request
from tests.support.approving import PASSWORD, World
from tests.support.tooling import asked, begin, made, now, refund, tools

__all__ = ["tools"]

pytestmark = [pytest.mark.req("F6", "F7"), pytest.mark.usefixtures("tools")]


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def url(request: Request) -> str:
    return reverse("admin:outlast_approvals_request_decide", args=[request.pk])


def test_the_page_shows_the_call_and_takes_the_answer(world: World) -> None:
    run = begin(world, lambda attempt: refund(7, "<script>alert(1)</script>"), goal="Help Ann")
    (request,) = asked(run)
    client = client_of("rita")
    shown = client.get(url(request)).content.decode()
    for text in (
        "refund",
        "arguments.order",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "order 7",
        "tool_version",
        request.digest,
        "goes on at “act”",
        "Nothing is approved. The workflow goes on at its step “act”.",
    ):
        assert text in shown, text
    assert "<script>alert(1)" not in shown
    answered = client.post(url(request), {"digest": request.digest, "verdict": "approve"}, follow=True)
    assert answered.status_code == 200
    world.worker.run()
    assert made == [(7, "<script>alert(1)</script>")]
    assert now(run).status == "complete"
    assert client.get(url(request)).status_code == 200


def test_it_stands_in_the_inbox_and_the_run_leads_to_it(world: World) -> None:
    run = begin(world, lambda attempt: refund(7), goal="Help Ann")
    (request,) = asked(run)
    inbox = client_of("rita").get(reverse("admin:outlast_approvals_request_changelist")).content.decode()
    assert url(request) in inbox
    of_run = client_of("sue").get(reverse("admin:outlast_flows_workflow_change", args=[run.pk])).content.decode()
    link = reverse("admin:outlast_approvals_request_of_wait", args=[request.wait_id])
    assert link in of_run
    assert client_of("rita").get(link).url == url(request)  # type: ignore[attr-defined]
