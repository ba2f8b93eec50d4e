"""The page of a run with five thousand arrows: few statements, one page of each section, and a picture of all of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import flows
from flows.admin.paging import SIZE
from flows.models import Workflow
from tests.factories import Ask
from tests.support import many
from tests.support import record as records
from tests.support.approving import World
from tests.support.statements import counted

pytestmark = pytest.mark.req("Q3")

ARROWS, MOST = 5_000, 11


@pytest.fixture
def looker(world: World) -> Client:
    """Somebody who may see everything of flows, and is no superuser: whose rights are looked up."""
    world.vera.user_permissions.set(Permission.objects.filter(content_type__app_label="outlast_flows"))
    world.vera.is_staff = True
    world.vera.save()
    client = Client()
    client.force_login(world.vera)
    return client


def look(client: Client, url: str) -> tuple[str, int]:
    """The page, and the statements that it cost, ours and Django's; the first look warms what is looked up once for a process."""
    client.get(url)
    with counted() as ours, CaptureQueriesContext(connection) as captured:
        response = client.get(url)
    assert response.status_code == 200
    return response.content.decode(), len(captured) + len(ours)


def of(run: Any) -> str:
    return reverse("admin:outlast_flows_workflow_change", args=[run.id])


def test_few_statements_and_a_page_of_each_section(world: World, looker: Client) -> None:
    run = Ask.start({}, key="long")
    world.worker.run()
    short, few = look(looker, of(run))
    many.lengthen(run.id, ARROWS)
    shown, count = look(looker, of(run))
    assert count <= MOST, "under twelve"
    assert count == few, "it does not grow with the run"
    row = Workflow.objects.get(pk=run.id)
    assert row.version == ARROWS
    assert f"<td>{ARROWS}</td>" in shown
    assert f"<td>{ARROWS - SIZE + 1}</td>" in shown
    assert f"<td>{ARROWS - SIZE}</td>" not in shown
    for name in ("timeline", "activities", "attempts", "verdicts", "effects", "candidates"):
        assert f'href="?{name}=2#oa-{name}"' in shown, name
    assert "How this run has spent its time" in shown
    assert len(shown) < 1_000_000
    second, count = look(looker, f"{of(run)}?timeline=2")
    assert count <= MOST
    assert f"<td>{ARROWS - SIZE}</td>" in second
    assert 'href="?timeline=1#oa-timeline"' in second
    last, _count = look(looker, f"{of(run)}?timeline={ARROWS // SIZE}")
    assert "<td>1</td>" in last
    assert "Older" not in last[last.index('id="oa-timeline"') : last.index('id="oa-activities"')]
    assert "Older" not in short
    records.wipe(large=True)  # no arrow wrote that log, and none of what it says is in the run's row


@pytest.mark.parametrize("asked", ["0", "-1", "x", "9" * 40, "%00", "1e3", "٣"])
def test_a_page_that_is_none_is_the_first(world: World, looker: Client, asked: str) -> None:
    run = Ask.start({})
    world.worker.run()
    shown, _count = look(looker, f"{of(run)}?timeline={asked}")
    assert 'id="oa-timeline"' in shown
    assert "<td>1</td>" in shown


def test_the_page_says_why_it_waits_and_who_ends_that(world: World, looker: Client) -> None:
    run = Ask.start({})
    world.worker.run()
    shown, _count = look(looker, of(run))
    (why,) = flows.describe(run).why
    assert (why.code, why.out) == ("WAITING", "the event&#x27;s sender".replace("&#x27;", "'"))
    part = shown[shown.index('id="oa-why"') : shown.index('id="oa-waits"')]
    assert "<code>WAITING</code>" in part
    assert "the event&#x27;s sender" in part
    flows.cancel(run)
    shown, _count = look(looker, of(run))
    assert 'id="oa-why"' not in shown, "it has ended"
