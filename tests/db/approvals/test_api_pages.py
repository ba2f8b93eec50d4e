"""Pages of the API: every row once, while rows come and go; and the queues are those of the inbox."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals.api import delegate
from approvals.models import Request
from flows import COMPLETE, FAILED, Approval, Decision, End, Flow
from flows.services.clock import now
from tests.support import approving
from tests.support.api import api
from tests.support.approving import ROLE, AskYesOrNo, World

__all__ = ["api"]

pytestmark = pytest.mark.django_db(transaction=True)


class AskForEver(Flow):
    """A question without an end."""

    propose = Decision(approving.propose, choices={"release": "ask"})
    ask = Approval(candidate="propose", role=ROLE, approved="done", denied="stopped")
    done = End(COMPLETE)
    stopped = End(FAILED)


def expiring(moment: str, rows: list[Request]) -> None:
    """Let these expire at that moment, behind the back of the guards."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            f"UPDATE outlast_approval_request SET expires_at = {moment} WHERE id = ANY (%s)", [[row.pk for row in rows]]
        )


def walked(client: Any, path: str = "/requests", name: str = "requests", between: Any = None, **query: Any) -> list[int]:
    """The ids of all pages, one after the other."""
    found: list[int] = []
    more: dict[str, Any] = {}
    while True:
        page = client.get(path, limit=2, **query, **more)
        found += [row["id"] for row in page.data[name]]
        if page.data["next"] is None:
            return found
        more = {"cursor": page.data["next"]}
        if between is not None:
            between()
            between = None


def test_the_soonest_to_expire_first_and_each_once(world: World, api: Any) -> None:
    week = world.ask(flow=AskYesOrNo)
    ever = [world.ask(flow=AskForEver) for _ in range(3)]
    days = [world.ask() for _ in range(3)]
    order = [*(row.pk for row in days), week.pk, *(row.pk for row in ever)]
    rita = api("rita")
    assert walked(rita) == order == walked(rita, queue="pending")
    assert walked(rita, flow="ask-for-ever") == order[-3:]
    assert walked(rita, workflow=str(week.workflow_id)) == [week.pk]
    assert walked(rita, queue="all") == sorted(order, reverse=True)
    assert walked(rita, queue="answered") == []


def test_rows_that_come_and_go_move_no_page(world: World, api: Any) -> None:
    rows = [world.ask() for _ in range(6)]

    def meanwhile() -> None:
        world.decide(rows[0])
        world.decide(rows[4])
        world.ask()

    found = walked(api("rita"), between=meanwhile)
    assert found[:5] == [rows[n].pk for n in (0, 1, 2, 3, 5)]
    assert len(found) == len(set(found)) == 6, "the new one is at the end"


def test_many_that_expire_at_one_moment(world: World, api: Any) -> None:
    rows = [world.ask() for _ in range(5)]
    expiring("date_trunc('second', flows_now()) + interval '1 day'", rows)
    assert walked(api("rita")) == [row.pk for row in rows]


def test_the_queues_are_those_of_the_inbox(world: World, api: Any) -> None:
    mine, answered, own = world.ask(), world.ask(), world.ask(by=world.rita)
    world.decide(answered)
    late = world.ask()
    expiring("flows_now()", [late])
    rita = api("rita")
    assert walked(rita) == [mine.pk]
    assert walked(rita, queue="pending") == [late.pk, mine.pk, own.pk]
    assert walked(rita, queue="answered") == [answered.pk]
    assert walked(api("vera")) == []
    assert walked(api("vera"), queue="all") == [late.pk, own.pk, answered.pk, mine.pk]


def test_delegations_page_by_page(world: World, api: Any) -> None:
    until = now("default") + timedelta(days=1)
    made = [delegate(world.ron, world.vera, until=until + timedelta(hours=n), reason="x", by=world.sue).pk for n in range(3)]
    made.append(delegate(world.rita, world.otto, until=until, reason="x", by=world.sue).pk)
    assert walked(api("vera"), "/delegations", "delegations") == made[2::-1]
    assert walked(api("vera"), "/delegations", "delegations", of="everybody") == made[::-1]
    assert walked(api("rita"), "/delegations", "delegations") == made[3:]


def test_a_page_costs_the_same_however_many_there_are(world: World, api: Any) -> None:
    rita, counts = api("rita"), []
    for number in (1, 6):
        for _ in range(number):
            world.ask()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            rita.get("/requests")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 16
    assert Request.objects.count() == 7
