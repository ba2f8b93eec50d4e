"""A run's page: resume, pause, cancel, adopt; by a permitted POST with a reason, about the state that was seen, and twice is once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, Decision, End, Gate, Wait, policies
from flows.models import Transition
from flows.services import control
from flows.services import policies as service
from flows.testing import local_worker
from tests import factories
from tests.factories import row, status
from tests.support import doubting
from tests.support.approving import PASSWORD, World
from tests.support.doubting import in_doubt

pytestmark = pytest.mark.req("Q3", "H1")

EVIL = "<script>alert(1)</script>\u202e"
VERBS = ("resume", "pause", "cancel", "adopt")


@pytest.fixture
def flow(world: World) -> Iterator[type[flows.Flow]]:
    """Rita may operate and adopt, Vera may look. The flow waits for an event, then works under a policy."""
    rights = Permission.objects.filter(codename__in=["operate_workflow", "publish_policy"])
    world.rita.user_permissions.add(*rights)
    policies.publish("t-controlled", {"n": 1})
    with factories.declaring(world.worker) as declare:
        yield declare(
            "t-controlled",
            meta={"policy": "t-controlled"},
            hear=Wait("t.controlled", key=factories.key_of, deadline=Deadline(hours=1, then=ESCALATE), then="act"),
            act=Activity(factories.work, then="done"),
            done=End(COMPLETE),
        )
    factories.forget()


def waiting(world: World, flow: type[flows.Flow], key: str = "k") -> Any:
    run = flow.start({"key": key}, key=key)
    world.worker.run()
    assert status(run)[:2] == ("waiting", "WAITING")
    return run


def blocked(world: World, flow: type[flows.Flow], key: str = "k") -> Any:
    """A run that the newest version of its policy has stopped."""
    run = waiting(world, flow, key)
    policies.publish("t-controlled", {"n": key})
    flows.signal(f"{key}/e", "t.controlled", key=key)
    world.worker.run()
    assert status(run)[:2] == ("waiting", "POLICY_BLOCKED")
    return run


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def url(run: Any, verb: str = "") -> str:
    return reverse(f"admin:outlast_flows_workflow_{verb or 'change'}", args=[run.id])


def page(run: Any, name: str = "rita") -> str:
    return client_of(name).get(url(run)).content.decode()


def post(run: Any, verb: str, name: str = "rita", **data: Any) -> Any:
    """As a browser sends the form that the page shows now."""
    newer = service.newer(row(run), "default").rpartition("@")[2]
    given = {"reason": "looked at it", "seen": control.seen_of(row(run)), "version": newer or "1", **data}
    return client_of(name).post(url(run, verb), given, follow=True)


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def forms(text: str) -> list[str]:
    """The verbs that the page has a form for."""
    return re.findall(r'<details class="oa-control" id="oa-(\w+)"', text)


def test_a_run_is_paused_resumed_and_cancelled_from_its_page(world: World, flow: type[flows.Flow]) -> None:
    run = waiting(world, flow)
    assert forms(page(run)) == ["pause", "cancel"]
    assert "It pauses as soon as nothing of it computes; its status is paused." in said(post(run, "pause"))
    assert forms(page(run)) == ["resume", "cancel"]
    assert "Resumed: its status is runnable." in said(post(run, "resume"))
    world.worker.run()
    assert "its status is cancelled" in said(post(run, "cancel"))
    assert forms(page(run)) == []
    told = Transition.objects.filter(workflow_id=run.id, trigger__in=["pause", "resume", "cancel"]).order_by("seq")
    assert [(one.trigger, one.trigger_ref, one.note["reason"]) for one in told][:2] == [
        ("pause", "rita", "looked at it"), ("resume", "rita", "looked at it"),
    ]  # fmt: skip
    entries = LogEntry.objects.order_by("pk")
    assert [(one.user, one.object_id, one.get_change_message()) for one in entries] == [
        (world.rita, str(run.id), what) for what in ("Paused.", "Resumed.", "Cancelled.")
    ]


def test_a_run_that_its_policy_stopped_is_led_on_by_adopting_it(world: World, flow: type[flows.Flow]) -> None:
    run = blocked(world, flow)
    shown = page(run)
    assert forms(shown) == ["adopt", "resume", "cancel"]
    assert '<a href="#oa-adopt">Adopt the newest version of its policy</a>' in shown
    assert "t-controlled@2" in shown
    assert "It is bound to the newest version of its policy; its status is runnable." in said(post(run, "adopt"))
    world.worker.run()
    assert (status(run)[:2], row(run).policy_version) == (("complete", "COMPLETE"), "t-controlled@2")
    assert LogEntry.objects.get().get_change_message() == "Adopted the newest version of its policy."


@pytest.mark.parametrize("verb", VERBS)
def test_only_a_permitted_post_does_anything(world: World, flow: type[flows.Flow], verb: str) -> None:
    run = blocked(world, flow)
    before = row(run).version
    given = {"reason": "x", "seen": control.seen_of(row(run))}
    assert post(run, verb, "vera").status_code == 403
    assert post(run, verb, "otto").status_code == 403
    assert client_of("rita").get(url(run, verb), given).status_code == 405
    assert client_of("rita").put(url(run, verb)).status_code == 405
    assert client_of("rita", enforce_csrf_checks=True).post(url(run, verb), given).status_code == 403
    assert Client().post(url(run, verb), given).status_code == 302
    assert client_of("rita").post(url(run, verb).replace(str(run.id), "no-id"), given).status_code == 404
    assert client_of("rita").post(url(run)).status_code == 403, "the page itself takes nothing"
    for path in (url(run), url(run) + "?reason=x"):
        client_of("rita").get(path)
    assert (row(run).version, LogEntry.objects.count()) == (before, 0)


def test_each_verb_has_its_own_right(world: World, flow: type[flows.Flow]) -> None:
    run = blocked(world, flow)
    world.rita.user_permissions.remove(Permission.objects.get(codename="publish_policy"))
    shown = page(run)
    assert forms(shown) == ["resume", "cancel"]
    assert "by somebody with the permission outlast_flows.publish_policy" in shown
    assert post(run, "adopt").status_code == 403
    assert forms(page(run, "vera")) == []
    assert "outlast_flows.operate_workflow" in page(run, "vera")
    assert row(run).outcome == "POLICY_BLOCKED"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("data", [{"reason": ""}, {"reason": " \n"}, {"reason": "x" * 2001}, {"seen": ""}])
def test_what_is_missing_is_said_at_its_field(world: World, flow: type[flows.Flow], verb: str, data: dict[str, str]) -> None:
    run = blocked(world, flow)
    before = row(run).version
    response = post(run, verb, **data)
    shown = response.content.decode()
    assert "Nothing was changed." in shown
    assert f'id="oa-{verb}" open' in shown
    assert "<title>Error:" in shown
    if "seen" not in data:
        assert shown.count("Say why" if not data["reason"].strip() else "at most 2000 characters") == 1
    assert row(run).version == before


def test_a_stale_form_does_nothing_and_says_so(world: World, flow: type[flows.Flow]) -> None:
    run = waiting(world, flow)
    seen = control.seen_of(row(run))
    policies.publish("t-controlled", {"n": 2})
    flows.pause(run)
    flows.resume(run)
    world.worker.run()
    before = row(run)
    assert (before.status, before.version > 2) == ("waiting", True)
    for verb in ("pause", "cancel", "adopt", "resume"):
        answer = said(post(run, verb, seen=seen))
        assert answer == ("It has moved since you looked at it; its status is waiting. Nothing was changed: look again."), verb
    assert (row(run).version, LogEntry.objects.count()) == (before.version, 0)


def test_a_run_that_computes_is_stopped_whatever_step_it_has_come_to(world: World, flow: type[flows.Flow]) -> None:
    run = factories.Line.start({})
    seen = control.seen_of(row(run))
    owned = factories.take_one(world.worker)
    factories.enter(owned)
    assert control.seen_of(row(run)) == seen
    assert "its status is running" in said(post(run, "pause", seen=seen))
    assert forms(page(run)) == ["resume", "cancel"], "a pause that was asked can be taken back"
    assert "Resumed: its status is running." in said(post(run, "resume", seen=seen))
    assert "its status is cancelled" in said(post(run, "cancel", seen=seen))


def test_sent_twice_is_once(world: World, flow: type[flows.Flow]) -> None:
    run = waiting(world, flow)
    for verb in ("pause", "resume", "cancel"):
        seen = control.seen_of(row(run))
        assert LogEntry.objects.filter(change_message__startswith="Re" if verb == "resume" else verb.title()).count() == 0
        post(run, verb, seen=seen)
        after = row(run).version
        assert "It was so already: nothing was changed." in said(post(run, verb, seen=seen)), verb
        assert row(run).version == after
        if verb == "resume":
            world.worker.run()
    assert LogEntry.objects.count() == 3
    assert "Too late: its status is cancelled." in said(post(run, "pause", seen="waiting:1"))


def test_an_adoption_that_is_sent_twice_is_once(world: World, flow: type[flows.Flow]) -> None:
    run = blocked(world, flow)
    seen = control.seen_of(row(run))
    post(run, "adopt", seen=seen)
    assert "It was so already" in said(post(run, "adopt", seen=seen))
    assert LogEntry.objects.count() == 1


def test_nobody_adopts_a_version_that_they_have_not_seen(world: World, flow: type[flows.Flow]) -> None:
    run = blocked(world, flow)
    assert "t-controlled@1 → t-controlled@2" in page(run)
    policies.publish("t-controlled", {"n": "another"})
    assert "The newest version of 't-controlled' is 3 by now, not 2. Read that first." in said(post(run, "adopt", version="2"))
    assert (row(run).policy_version, row(run).status, LogEntry.objects.count()) == ("t-controlled@1", "waiting", 0)
    assert "runnable" in said(post(run, "adopt", version="3"))


def test_a_doubt_is_not_resumed_and_its_page_leads_to_the_operation(world: World, flow: type[flows.Flow]) -> None:
    doubting.forget()
    operation = in_doubt(world.worker)
    run = row(operation.workflow)
    shown = page(run)
    assert (
        reverse("admin:outlast_flows_operation_change", args=[quote(operation.pk)])
        in shown.split("The way on")[1].split("</section>")[0]
    )
    assert "cannot go on: nobody knows whether" in said(post(run, "resume"))
    assert row(run).status == "waiting"
    doubting.forget()


def test_what_a_model_or_a_person_wrote_is_escaped(world: World, flow: type[flows.Flow]) -> None:
    run = flow.start({"key": EVIL}, key=EVIL, by=get_user_model().objects.create_user(EVIL), goal=EVIL)
    world.worker.run()
    for shown in (page(run), post(run, "pause", reason=EVIL).content.decode(), post(run, "resume", reason="").content.decode()):
        assert "<script>alert(1)" not in shown
        assert "\u202e" not in shown.replace(f"{EVIL}</textarea>", "")
    again = client_of("rita").post(url(run, "resume"), {"reason": EVIL, "seen": ""}).content.decode()
    assert "<script>alert(1)" not in again


def test_the_page_is_never_cached(world: World, flow: type[flows.Flow]) -> None:
    run = waiting(world, flow)
    response = client_of("rita").get(url(run))
    assert response.headers["Cache-Control"].startswith("no-store")


def test_a_run_that_nobody_offers_is_led_to_the_workers(world: World, flow: type[flows.Flow]) -> None:
    run = factories.Line.start({})
    world.worker.stop()
    shown = page(run)
    assert reverse("admin:outlast_flows_worker_changelist") in shown.split("The way on")[1].split("</section>")[0]
    with local_worker() as other:
        other.run()
    assert "The way on" not in page(run)


@pytest.mark.req("H4")
def test_what_a_gate_stopped_goes_on_where_its_candidate_is_made_or_verified_anew(world: World) -> None:
    seen = ["v1"]
    with factories.declaring(world.worker) as declare:
        flow = declare(
            "t-anew",
            propose=Decision(lambda attempt: flows.Candidate("go"), choices={"go": "check"}),
            check=Activity(factories.work, verifies="propose", then="hear"),
            hear=Wait("t.anew", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="act"),
            act=Activity(factories.work, gate=Gate(verified_by="check", fresh={"main": lambda attempt: seen[0]}), then="done"),
            done=End(COMPLETE),
        )
        world.rita.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
        run = flow.start({}, key="k")
        world.worker.run()
        assert 'name="at"' not in page(run)
        seen[0] = "v2"
        flows.signal("e", "t.anew", key="k")
        world.worker.run()
        shown = page(run)
        assert re.findall(r'<option value="(\w*)"', shown.split('name="at"')[1].split("</select>")[0]) == ["", "check", "propose"]
        refused = post(run, "resume", at="done")
        assert "Select a valid choice" in refused.content.decode()
        assert status(run) == ("waiting", "REVALIDATION_REQUIRED", "act")
        assert "Resumed: its status is runnable." in said(post(run, "resume", at="check"))
        assert status(run) == ("runnable", "", "check")
    factories.forget()
