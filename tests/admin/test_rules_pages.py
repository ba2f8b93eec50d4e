"""The pages of the gate: its verdicts on a run's page, policies to read, envelopes that a person opens again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, Activity, Decision, End, Flow, Gate, policies
from flows.models import Competence
from flows.services.competence import open_again
from flows.store import gate
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("H1", "H2")

MARKUP = "<b>v1</b>"


def propose(attempt: Any) -> Any:
    from flows import Candidate

    return Candidate("go", 1)


def act(attempt: Any) -> None: ...


class Looking(Flow):
    """What is outside is another each time, and its version is text from outside."""

    class Meta:
        name = "t-looking"

    propose = Decision(propose, choices={"go": "act"})
    act = Activity(act, gate=Gate(fresh={"main": lambda attempt: f"{MARKUP} {attempt.node}"}), then="done")
    done = End(COMPLETE)


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    made = Client()
    assert made.login(username="vera", password=PASSWORD)
    return made


def test_a_runs_page_says_what_the_gate_answered_and_what_to_do(world: World, client: Client) -> None:
    run = Looking.start({})
    world.worker.run()
    page = client.get(reverse("admin:outlast_flows_workflow_change", args=[run.id])).content.decode()
    assert "REVALIDATION_REQUIRED" in page
    assert "&lt;b&gt;v1&lt;/b&gt; propose" in page
    assert MARKUP not in page
    assert "then resumes: it is looked at again" in page


def test_policies_are_read(world: World, client: Client) -> None:
    policies.publish("payments", {"limit": "<i>5</i>"}, note="x", by=world.sue)
    listed = client.get(reverse("admin:outlast_flows_policy_changelist")).content.decode()
    assert "payments" in listed
    pk = policies.current("payments").pk
    page = client.get(reverse("admin:outlast_flows_policy_change", args=[pk])).content.decode()
    assert "&lt;i&gt;5&lt;/i&gt;" in page
    assert "<i>5</i>" not in page
    assert client.post(reverse("admin:outlast_flows_policy_change", args=[pk]), {"note": "y"}).status_code == 403


def test_an_envelope_is_opened_by_those_who_may_and_say_why(world: World, client: Client) -> None:
    for _ in range(2):
        gate.burn("t-looking", "propose", "", 1, "default")
    row, url = Competence.objects.get(), reverse("admin:outlast_flows_competence_changelist")
    asked = {"action": "open_again", "_selected_action": [row.pk], "reason": "mended"}
    client.post(url, asked)
    row.refresh_from_db()
    assert row.closed_at is not None, "Vera may only look"
    world.vera.user_permissions.add(Permission.objects.get(codename="open_competence"))
    assert "Say why" in client.post(url, {**asked, "reason": " "}, follow=True).content.decode()
    row.refresh_from_db()
    assert row.closed_at is not None
    assert "open again" in client.post(url, asked, follow=True).content.decode()
    row.refresh_from_db()
    assert (row.closed_at, row.burned, row.note, row.by_label) == (None, 0, "mended", "vera")
    assert LogEntry.objects.get().user == world.vera
    assert not open_again("t-looking", "propose", reason="twice")
    assert "is open already" in client.post(url, asked, follow=True).content.decode()
    assert LogEntry.objects.count() == 1
