"""Who is told when a deadline escalates, and where people and programs see what has passed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, ESCALATE, Activity, Commits, Deadline, End
from flows.testing import Clock, LocalWorker
from tests.factories import work
from tests.support import dated
from tests.support.commanding import cli
from tests.support.dated import Declare, pass_time, told

__all__ = ["cli"]

pytestmark = pytest.mark.req("B4", "L1")


@pytest.fixture
def people(worker: LocalWorker, django_user_model: Any) -> dict[str, Any]:
    """Ann is accountable; lee leads; pat may resolve operations, and gil by a group; sue may do everything and was given nothing."""
    made = {name: django_user_model.objects.create_user(name) for name in ("ann", "lee", "pat", "gil")}
    made["sue"] = django_user_model.objects.create_superuser("sue")
    resolving = Permission.objects.get(codename="resolve_operation", content_type__app_label="outlast_flows")
    group = Group.objects.create(name="resolvers")
    group.permissions.add(resolving)
    made["gil"].groups.add(group)
    made["pat"].user_permissions.add(resolving)
    made["lee"].groups.add(Group.objects.create(name="leads"))
    made["ann"].groups.add(Group.objects.get(name="leads"))
    return made


def asleep(declare: Declare, people: dict[str, Any], worker: LocalWorker, clock: Clock, **deadline: Any) -> None:
    declare(
        "t-told",
        meta={"deadline": Deadline(hours=1, then=ESCALATE, **deadline)},
        ask=dated.Wait("t.t", key="k", then="done", deadline=dated.FAR),
        done=End(COMPLETE),
    ).start({}, by=people["ann"])
    worker.run()
    pass_time(worker, clock, hours=2)


@pytest.mark.parametrize(
    ("names", "others"),
    [
        ((), []),
        ("leads", ["lee"]),
        ("outlast_flows.resolve_operation", ["gil", "pat"]),
        (("leads", "outlast_flows.resolve_operation"), ["gil", "lee", "pat"]),
        ("nobody", []),
        ("outlast_flows.nothing", []),
    ],
)
def test_those_of_a_group_or_with_a_permission_are_told_once(
    worker: LocalWorker, clock: Clock, declare: Declare, people: dict[str, Any], names: Any, others: list[str]
) -> None:
    asleep(declare, people, worker, clock, escalate_to=names)
    assert told() == [(name, "DEADLINE_EXPIRED") for name in sorted(["ann", *others])]


def test_a_setting_names_them_where_the_deadline_names_nobody(
    worker: LocalWorker, clock: Clock, declare: Declare, people: dict[str, Any], settings: Any
) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ESCALATE_TO": ["resolvers"]}
    asleep(declare, people, worker, clock)
    assert [name for name, _ in told()] == ["ann", "gil"]


def test_a_breach_that_escalates_tells_them_too_and_the_run_goes_on(
    worker: LocalWorker, clock: Clock, declare: Declare, people: dict[str, Any]
) -> None:
    window = Commits("w", release=work, deadline=Deadline(hours=1, then=ESCALATE, escalate_to="leads"))
    run = declare(
        "t-held",
        hold=Activity(work, commits=window, then="ask"),
        ask=dated.Wait("t.t", key="k", then="done", deadline=dated.FAR),
        done=End(COMPLETE),
    ).start({}, by=people["ann"])
    worker.run()
    pass_time(worker, clock, hours=2)
    worker.tick()
    assert told() == [("ann", "COMMITMENT_BREACHED"), ("lee", "COMMITMENT_BREACHED")]
    assert dated.Commitment.objects.get().status == "breached"
    assert run.id


def test_what_has_passed_is_shown(worker: LocalWorker, clock: Clock, declare: Declare, people: dict[str, Any], cli: Any) -> None:
    dated.forget()
    run = dated.flow(declare, "SLA", "breach").start({}, by=people["ann"])
    worker.run()
    ran = cli("show", str(run.id))
    assert "then breach (to come)" in ran.out
    pass_time(worker, clock, hours=3)
    ran = cli("show", str(run.id))
    assert "then breach (passed, handled)" in ran.out
    data = json.loads(cli("show", str(run.id), "--json").out)
    assert [(one["kind"], one["status"]) for one in data["deadlines"] if one["kind"] == "SLA"] == [("SLA", "handled")]
    browser = Client()
    browser.force_login(people["sue"])
    page = browser.get(reverse("admin:outlast_flows_workflow_change", args=[run.id])).content.decode()
    assert "Deadlines" in page
    assert "<code>breach</code>" in page
    assert browser.get(reverse("admin:outlast_flows_timer_changelist")).status_code == 200
