"""The pages of schedules, occurrences and calendars: what comes next and what became of it is shown as data, and people act with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import calendars, minutes, schedules, seconds
from flows.models import Calendar, Occurrence, Schedule
from flows.services.clock import now
from flows.services.schedules import planning, starting
from tests import factories
from tests.support.approving import World
from tests.support.browsing import ESCAPED, EVIL, client_of, page, said, words

pytestmark = pytest.mark.req("M1", "C7", "Q3")

SCHEDULES, OCCURRENCES, CALENDARS = (f"admin:outlast_flows_{name}_changelist" for name in ("schedule", "occurrence", "calendar"))
ADD = "admin:outlast_flows_schedule_add"
GIVEN = {
    "name": "nightly", "flow": "t-line", "kind": "cron", "expression": "30 2 * * *", "zone": "Europe/Vienna", "input": '{"a": 1}',
    "options": '{"missed": "every", "window": 3600, "overlap": "queue"}', "reason": EVIL,
}  # fmt: skip
WEEK = {"zone": "Europe/Vienna", "week": {"mon": ["09:00-17:00"]}}


@pytest.fixture
def manager(world: World) -> Client:
    """Vera, who may look, with two more rights."""
    found = Permission.objects.filter(codename__in=("manage_schedule", "publish_calendar"))
    world.vera.user_permissions.add(*found)
    return client_of("vera")


def change(row: Any) -> str:
    return reverse(f"admin:outlast_flows_{row._meta.model_name}_change", args=[row.pk])


def acted(client: Client, **given: Any) -> Any:
    """The page after a form about the only schedule was sent."""
    row = Schedule.objects.get()
    form = client.get(change(row)).context["decide_form"]
    initial = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    return client.post(change(row), {**initial, "reason": "because", **given}, follow=True)


def test_a_schedule_is_made_for_who_makes_it_and_shows_the_next_ten(manager: Client) -> None:
    assert "Five or six fields of cron" in page(manager, reverse(ADD))
    done = manager.post(reverse(ADD), GIVEN, follow=True)
    row = Schedule.objects.get()
    assert done.redirect_chain == [(change(row), 302)]
    assert "nightly is made" in said(done)
    html = done.content.decode()
    assert ESCAPED in html and "<script>alert(1)" not in html
    assert (row.user_label, row.missed, row.window, row.overlap) == ("vera", "every", minutes(60), "queue")
    assert words(html).count("UTC") >= 10
    assert "nightly" in page(manager, reverse(SCHEDULES))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reason": " "}, "Say why"),
        ({"name": ""}, "This field is required"),
        ({"expression": "61 * * * *"}, "cannot be read"),
        ({"kind": "interval", "expression": "often"}, "is not what a schedule of the kind interval has"),
        ({"kind": "once", "expression": "soon"}, "is not what a schedule of the kind once has"),
        ({"zone": "Europe/Wien"}, "There is no time zone"),
        ({"input": "{"}, "This is not JSON"),
        ({"input": "[1]"}, "This is no JSON object"),
        ({"options": '{"often": 1}'}, "There is no option often"),
        ({"options": '{"window": "long"}'}, "seconds, as a number"),
        ({"options": '{"missed": 7}'}, "missed"),
        ({"options": '{"user": "robin"}'}, "only a superuser"),
    ],
)
def test_what_cannot_be_is_refused_and_says_why(manager: Client, changed: dict[str, str], told: str) -> None:
    response = manager.post(reverse(ADD), {**GIVEN, **changed})
    assert response.status_code == 200
    assert told in words(response.content.decode())
    assert "<title>Error:" in response.content.decode()
    assert not Schedule.objects.exists()


def test_people_act_with_a_reason(manager: Client) -> None:
    manager.post(reverse(ADD), GIVEN)
    assert "nightly is paused" in said(acted(manager, act="pause"))
    assert "paused" in page(manager, reverse(SCHEDULES))
    assert "nightly goes on" in said(acted(manager, act="resume"))
    assert "1 occurrence of nightly is added" in said(acted(manager, act="run"))
    refused = acted(manager, act="backfill").content.decode()
    assert "Say which time is to be made up for" in refused
    span = {"since": "2026-03-28 00:00:00", "until": "2026-03-31 00:00:00"}
    assert "3 occurrences of nightly are added" in said(acted(manager, act="backfill", **span))
    assert "nothing was changed" in said(acted(manager, act="backfill", **span))
    assert "it has revision 2 now" in said(acted(manager, act="change", options='{"cap": 3}'))
    row = Schedule.objects.get()
    assert (row.cap, row.missed, row.window, row.expression) == (3, "newest", None, "30 2 * * *")
    stale = acted(manager, act="change", seen=1).content.decode()
    assert "has revision 2 by now, not 1" in words(stale)
    assert acted(manager, act="pause", reason=" ").status_code == 200
    assert Schedule.objects.get().paused_at is None


def test_who_may_look_may_not_act(world: World, manager: Client) -> None:
    manager.post(reverse(ADD), GIVEN)
    world.vera.user_permissions.remove(Permission.objects.get(codename="manage_schedule"))
    viewer, row = client_of("vera"), Schedule.objects.get()
    assert "manage_schedule" in page(viewer, change(row))
    assert viewer.post(change(row), {"act": "pause", "seen": 1, "reason": "r"}).status_code == 403
    assert viewer.get(reverse(ADD)).status_code == 403
    assert viewer.post(reverse(ADD), {**GIVEN, "name": "other"}).status_code == 403
    assert Schedule.objects.get().paused_at is None


def test_each_moment_has_its_row_with_its_reason_and_its_run(world: World, manager: Client) -> None:
    start = now("default") - minutes(3) - seconds(1)
    schedules.create("minutely", factories.Line, every=minutes(1), anchor=start, missed="skip", overlap="allow")
    Schedule.objects.update(planned_until=start, next_at=start + minutes(1))
    planning.plan_due("default")
    starting.start_due("default")
    skipped, started = Occurrence.objects.filter(code="MISSED").first(), Occurrence.objects.get(status="started")
    assert skipped is not None
    assert "Nobody looked in time" in page(manager, change(skipped))
    run = reverse("admin:outlast_flows_workflow_change", args=[started.workflow_id])
    assert run in manager.get(change(started)).content.decode()
    for query, count in (
        ("", 3),
        ("?status=started", 1),
        ("?code=MISSED", 2),
        ("?origin=manual", 0),
        ("?q=minutely", 3),
        ("?q=other", 0),
    ):
        response = manager.get(reverse(OCCURRENCES) + query)
        assert response.context["cl"].result_count == count, query
    shown = page(manager, change(Schedule.objects.get()))
    assert "MISSED" in shown and "started" in shown


def test_a_schedule_of_code_is_not_changed_here(manager: Client) -> None:
    manager.post(reverse(ADD), GIVEN)
    Schedule.objects.update(origin="code")
    form = manager.get(change(Schedule.objects.get())).context["decide_form"]
    assert [name for name, _ in form.fields["act"].choices] == ["pause", "run", "backfill"]
    assert "not one of the available choices" in words(acted(manager, act="change").content.decode())


def test_one_that_cannot_be_read_here_says_so(manager: Client) -> None:
    manager.post(reverse(ADD), GIVEN)
    Schedule.objects.update(time_zone="Mars/Olympus")
    assert "There is no time zone" in page(manager, change(Schedule.objects.get()))


def test_a_calendar_shows_when_it_opens_and_is_published_anew(manager: Client) -> None:
    calendars.publish("office", WEEK, reason=EVIL)
    row = Calendar.objects.get()
    html = manager.get(change(row)).content.decode()
    assert "09:00:00+0" in html or "open now" in html
    assert ESCAPED in html and "<script>alert(1)" not in html
    anew = {"after": 1, "body": json.dumps({**WEEK, "holidays": ["12-25"]}), "reason": "Christmas"}
    assert "office@2 is published" in said(manager.post(change(row), anew, follow=True))
    stale = manager.post(change(row), {**anew, "body": json.dumps({**WEEK, "holidays": ["12-26"]})})
    assert "by now, not 1" in words(stale.content.decode())
    newest = Calendar.objects.get(version=2)
    assert "says the same already" in said(manager.post(change(newest), {**anew, "after": 2}, follow=True))
    wrong = manager.post(change(newest), {**anew, "after": 2, "body": '{"zone": "UTC", "week": {"mon": ["9-5"]}}'})
    assert "is no window such as" in words(wrong.content.decode())
    calendars.publish("shut", {"zone": "UTC", "week": {}})
    assert "never, within two years" in page(manager, change(Calendar.objects.get(name="shut")))
    assert "office" in page(manager, reverse(CALENDARS) + "?q=off")
