"""Whatever people do to a request is one transaction: broken off after any of its statements, nothing of it is left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection

from approvals.api import assign, delegate, end_delegation, revoke
from approvals.models import Delegation, Notice, Request, Review
from flows.models import Transition, Wait, Workflow
from flows.services.clock import now
from flows.store import sql
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.support.approving import World
from tests.support.laddering import ask_long, somebody

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("T1", "F3")]


class Dead(BaseException):
    """The process is gone."""


def dies_at(point: int) -> Callable[[str, str], None]:
    left = [point]

    def seam(when: str, name: str) -> None:
        if when in {"within", "before"}:
            left[0] -= 1
            if left[0] < 0:
                raise Dead

    return seam


def record() -> list[Any]:
    rows = [Request, Review, Notice, Delegation, Wait, Workflow, Transition, LogEntry]
    return [sorted(map(str, model.objects.order_by("pk").values_list())) for model in rows]


def permit(user: Any, name: str) -> None:
    user.user_permissions.add(Permission.objects.get(codename=name, content_type__app_label="outlast_approvals"))


def counted(world: World) -> Callable[[], Any]:
    request = ask_long(world)
    return lambda: world.decide(request, by=world.rita)


def next_step(world: World) -> Callable[[], Any]:
    request = ask_long(world)
    world.decide(request, by=world.rita)
    return lambda: world.decide(request, by=world.ron)


def last(world: World) -> Callable[[], Any]:
    request = world.ask()
    return lambda: world.decide(request)


def part(world: World) -> Callable[[], Any]:
    request = world.ask(FILES, flow=DeleteFiles)
    return lambda: world.decide(request, "narrow", keep=[0], comment="Only that.")


def taken_back(world: World) -> Callable[[], Any]:
    request = world.ask()
    world.decide(request)
    return lambda: revoke(request, reason="A mistake.", by=world.rita)


def marked(world: World) -> Callable[[], Any]:
    request = world.ask()
    permit(world.vera, "assign_request")
    return lambda: assign(request, to=world.rita, by=world.vera)


def stood_in(world: World) -> Callable[[], Any]:
    permit(world.rita, "delegate_own")
    until, dora = now("default") + timedelta(days=2), somebody("dora")
    return lambda: delegate(world.rita, dora, until=until, reason="On leave", by=world.rita)


def ended(world: World) -> Callable[[], Any]:
    made = stood_in(world)()
    return lambda: end_delegation(made.pk, by=world.rita)


def escalated(world: World) -> Callable[[], Any]:
    ask_long(world)
    world.clock.move(hours=8, seconds=1)
    return world.worker.tick


@pytest.mark.parametrize("story", [counted, next_step, last, part, taken_back, marked, stood_in, ended, escalated])
def test_broken_off_anywhere_it_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, story: Callable[[World], Callable[[], Any]]
) -> None:
    act = story(world)
    before = record()
    points = 0
    while True:
        monkeypatch.setattr(sql, "seam", dies_at(points))
        try:
            act()
            break
        except Dead:
            assert not connection.in_atomic_block
            assert record() == before, f"after point {points}"
            points += 1
    monkeypatch.setattr(sql, "seam", None)
    assert points >= 1, "it has to be broken off somewhere"
    assert record() != before, "at last it was done"
