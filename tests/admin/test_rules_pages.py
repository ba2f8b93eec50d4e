"""The pages of the gate: its verdicts on a run's page, policies that are read and published, envelopes that a person opens again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, Activity, Decision, End, Flow, Gate, policies
from flows.core.requirements import Competence as Envelope
from flows.models import Competence, CompetenceOpening
from flows.services.competence import open_again
from flows.store import gate
from tests import factories
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("H1", "H2")

MARKUP = "<b>v1</b>"
EVIL = "<script>alert(1)</script>\u202e"


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


class Stopping(Flow):
    """Asks for an envelope before anything else."""

    class Meta:
        name = "t-stopping"

    act = Activity(act, gate=Gate(competence=Envelope("propose", errors=1)), then="done")
    propose = Decision(propose, choices={"go": "act"})
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
    assert "has it decided or checked anew" in page


def test_policies_are_read(world: World, client: Client) -> None:
    policies.publish("payments", {"limit": "<i>5</i>"}, note=EVIL, by=world.sue)
    listed = client.get(reverse("admin:outlast_flows_policy_changelist")).content.decode()
    assert "payments" in listed
    page = client.get(policy_url()).content.decode()
    assert "&lt;i&gt;5&lt;/i&gt;" in page
    assert "<i>5</i>" not in page
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page
    assert "The next version" not in page
    assert client.post(policy_url(), {"body": "{}", "after": 1, "reason": "y"}).status_code == 403


# ------------------------------------------------------------------ publishing


def policy_url() -> str:
    return reverse("admin:outlast_flows_policy_change", args=[policies.current("payments").pk])


def may(world: World, codename: str) -> Client:
    """Vera, with one more right."""
    world.vera.user_permissions.add(Permission.objects.get(codename=codename))
    return client_of("vera")


def client_of(name: str, **options: Any) -> Client:
    made = Client(**options)
    assert made.login(username=name, password=PASSWORD)
    return made


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def test_what_hides_in_a_policy_can_be_seen_where_it_is_changed(world: World) -> None:
    body = {"why": "\u202e\U000e0041 Größe", "limit": 5}
    policies.publish("payments", body)
    text = may(world, "publish_policy").get(policy_url()).context["decide_form"]["body"].value()
    assert r"\u202e\udb40\udc41 Größe" in text
    assert json.loads(text) == body


def test_the_next_version_is_published_from_the_page_of_the_newest(world: World) -> None:
    policies.publish("payments", {"limit": 5, "why": EVIL})
    client, url = may(world, "publish_policy"), policy_url()
    response = client.get(url)
    shown = response.content.decode()
    assert "The next version" in shown
    assert "<script>alert(1)" not in shown
    assert response.headers["Cache-Control"].startswith("no-store")
    given = {"body": '{"limit": 4}', "blocks": "on", "after": "1", "reason": EVIL}
    done = client.post(url, given, follow=True)
    assert "payments@2 is published." in said(done)
    assert "<script>alert(1)" not in done.content.decode()
    newest = policies.current("payments")
    assert (newest.version, newest.body, newest.blocks, newest.note, newest.by_label) == (2, {"limit": 4}, True, EVIL, "vera")
    assert LogEntry.objects.get().get_change_message() == "Published version 2."
    assert "payments@2 says the same already: nothing was changed." in said(client.post(url, given, follow=True))
    assert "The next version" not in client.get(url).content.decode(), "the first version is not the newest any more"
    stale = client.post(url, {**given, "body": '{"limit": 9}'}).content.decode()
    assert "The newest version of &#x27;payments&#x27; is 2 by now, not 1" in stale
    assert (policies.current("payments").version, LogEntry.objects.count()) == (2, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"body": ""}, "Say what the policy says"),
        ({"body": "{"}, "This is not JSON"),
        ({"body": "[" * 100_000}, "This is not JSON"),
        ({"body": "[1]"}, "must be an object"),
        ({"body": '{"a": NaN}'}, "Nothing was changed."),
        ({"reason": "\n"}, "Say why: the reason is part of the record."),
        ({"after": ""}, "Nothing was changed."),
    ],
)
def test_what_is_no_policy_is_said_at_its_field(world: World, given: dict[str, str], message: str) -> None:
    policies.publish("payments", {"limit": 5})
    sent = {"body": '{"limit": 4}', "after": "1", "reason": "x", **given}
    assert message in may(world, "publish_policy").post(policy_url(), sent).content.decode()
    assert policies.current("payments").version == 1


def test_only_a_permitted_post_publishes(world: World) -> None:
    policies.publish("payments", {"limit": 5})
    given = {"body": '{"limit": 4}', "after": "1", "reason": "x"}
    assert client_of("otto").post(policy_url(), given).status_code == 403
    assert Client().post(policy_url(), given).status_code == 302
    may(world, "publish_policy")
    assert client_of("vera", enforce_csrf_checks=True).post(policy_url(), given).status_code == 403
    assert client_of("vera").put(policy_url()).status_code == 405
    client_of("vera").get(policy_url(), given)
    assert policies.current("payments").version == 1


def test_the_page_of_a_policy_names_the_runs_that_wait_for_it(world: World, client: Client) -> None:
    with factories.declaring(world.worker) as declare:
        policies.publish("payments", {"limit": 5})
        flow = declare("t-paying", meta={"policy": "payments"}, one=Activity(act, then="done"), done=End(COMPLETE))
        run = flow.start({}, key=EVIL)
        policies.publish("payments", {"limit": 4})
        world.worker.run()
        assert factories.status(run)[1] == "POLICY_BLOCKED"
        page = client.get(policy_url()).content.decode()
        assert reverse("admin:outlast_flows_workflow_change", args=[run.id]) + "#oa-ways" in page
        assert "<script>alert(1)" not in page


# ------------------------------------------------------------------ opening


def closed(flow: str = "t-looking") -> Competence:
    for _ in range(2):
        gate.burn(flow, "propose", "", 1, "default")
    return Competence.objects.get()


def open_url() -> str:
    return reverse("admin:outlast_flows_competence_change", args=[Competence.objects.get().pk])


def form_of(client: Client) -> dict[str, str]:
    """As a browser sends what the page shows."""
    form = client.get(open_url()).context["decide_form"]
    return {"closed": form["closed"].value() or "", "reason": "mended", "resume": "on"}


def test_an_envelope_is_opened_by_those_who_may_and_say_why(world: World) -> None:
    closed()
    client = may(world, "open_competence")
    given = form_of(client)
    assert "Say why" in client.post(open_url(), {**given, "reason": " "}).content.decode()
    assert Competence.objects.get().closed_at is not None
    response = client.post(open_url(), {**given, "reason": EVIL}, follow=True)
    assert said(response) == "t-looking.propose is open again."
    assert "<script>alert(1)" not in response.content.decode()
    assert "2 of 1 errors" in response.content.decode()
    row = Competence.objects.get()
    assert (row.closed_at, row.burned, row.note, row.by_label) == (None, 0, EVIL, "vera")
    assert LogEntry.objects.get().get_change_message() == "Opened again."
    assert said(client.post(open_url(), given, follow=True)) == "t-looking.propose is open already."
    assert (LogEntry.objects.count(), CompetenceOpening.objects.count()) == (1, 1)
    assert client.get(open_url()).context["decide_form"] is None


def test_who_may_only_look_reads_which_permission_it_needs(world: World) -> None:
    policies.publish("payments", {"limit": 5}, note="first")
    url = policy_url()
    assert "somebody with the permission outlast_flows.publish_policy" in client_of("vera").get(url).content.decode()
    assert "somebody with the permission" not in client_of("sue").get(url).content.decode()


def test_only_a_permitted_post_opens(world: World) -> None:
    closed()
    given = {"closed": Competence.objects.get().closed_at.isoformat(), "reason": "x"}  # type: ignore[union-attr]
    assert client_of("vera").post(open_url(), given).status_code == 403
    assert Client().post(open_url(), given).status_code == 302
    may(world, "open_competence")
    assert client_of("vera", enforce_csrf_checks=True).post(open_url(), given).status_code == 403
    assert client_of("vera").put(open_url()).status_code == 405
    client_of("vera").get(open_url(), given)
    assert "Nothing was changed" in client_of("vera").post(open_url(), {**given, "closed": "x"}).content.decode()
    assert Competence.objects.get().closed_at is not None


def test_a_page_is_about_the_closing_that_it_showed(world: World) -> None:
    closed()
    client = may(world, "open_competence")
    given = form_of(client)
    open_again("t-looking", "propose", reason="somebody was faster")
    closed()
    answer = said(client.post(open_url(), given, follow=True))
    assert answer == "t-looking.propose was closed anew since you looked at it. Nothing was changed: look again."
    assert said(client.post(open_url(), {**given, "closed": ""}, follow=True)) == answer, "an open one was shown"
    assert Competence.objects.get().closed_at is not None
    assert (LogEntry.objects.count(), CompetenceOpening.objects.count()) == (0, 1)


@pytest.mark.parametrize("resume", [True, False])
def test_the_runs_that_it_stopped_go_on_in_the_same_confirmation(world: World, *, resume: bool) -> None:
    closed("t-stopping")
    runs = [Stopping.start({}), Stopping.start({})]
    world.worker.run()
    assert {factories.row(run).error_code for run in runs} == {"COMPETENCE_EXCEEDED"}
    client = may(world, "open_competence")
    given = form_of(client)
    for run in runs:
        assert str(run.id) in client.get(open_url()).content.decode()
    if not resume:
        del given["resume"]
    answer = said(client.post(open_url(), given, follow=True))
    assert answer == "t-stopping.propose is open again." + (" 2 runs go on." if resume else "")
    if not resume:
        assert {factories.row(run).status for run in runs} == {"waiting"}
        later = said(client.post(open_url(), {**form_of(client), "resume": "on"}, follow=True))
        assert later == "t-stopping.propose is open already. 2 runs go on."
        assert [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")] == ["Opened again.", "Its runs resumed."]
    world.worker.run()
    assert {factories.row(run).status for run in runs} == {"complete"}
