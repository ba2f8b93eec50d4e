"""manage.py flows orphans."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows.models import Scan, Timer
from flows.testing import LocalWorker
from tests.factories import Ask
from tests.support.commanding import cli
from tests.support.sabotage import damage

__all__ = ["cli"]

pytestmark = pytest.mark.req("P2")
TAMPERS = True


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> None:
    """Ann may operate workflows, Cat may not."""
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    get_user_model().objects.create_user("cat")


def misdirect() -> None:
    stranger = "00000000-0000-4000-8000-000000000001"
    flows.signal("e-1", "t.asked", key="nobody\x1b[31m", payload={}, about=flows.About(workflow=stranger))


def test_found_mended_and_listed(cli: Any, worker: LocalWorker) -> None:
    ran = cli("orphans", "--scan")
    assert (ran.code, ran.err.splitlines()[1]) == (0, "0 shown")
    run = Ask.start({"key": "mine"})
    worker.run()
    damage("DELETE FROM outlast_timer WHERE workflow_id = %(id)s", id=run.id)
    misdirect()
    ran = cli("orphans", "--scan", "--json")
    assert ran.code == 1
    (one,) = ran.json
    assert (one["kind"], one["status"], one["offered"]) == ("misdirected", "open", ["redeliver"])
    assert ", 1 repaired" in ran.err
    assert Timer.objects.filter(workflow_id=run.id, status="pending").count() == 1
    listed = cli("orphans", "--all")
    assert [line.split()[1] for line in listed.out.splitlines()] == ["KIND", "misdirected", "timer_lost"]
    assert "\x1b" not in listed.out
    assert cli("orphans", "--kind", "timer_lost").code == 0


def test_dismissed_with_a_reason_by_who_may(cli: Any) -> None:
    misdirect()
    number = str(cli("orphans", "--scan", "--json").json[0]["number"])
    assert cli("orphans", "dismiss", number).code == 2
    ran = cli("orphans", "dismiss", number, "--by", "cat", "--reason", "no")
    assert (ran.code, "operate_workflow" in ran.err) == (1, True)
    ran = cli("orphans", "repair", number, "--by", "ann", "--reason", "please", "--how", "cancel")
    assert (ran.code, "Offered: redeliver" in ran.err) == (1, True)
    ran = cli("orphans", "dismiss", number, "--by", "ann", "--reason", "a test of the sender's")
    assert (ran.code, ran.err) == (0, "Done.\n")
    assert cli("orphans", "dismiss", number, "--by", "ann", "--reason", "again").code == 1
    assert cli("orphans", "--scan").code == 0
    assert cli("orphans", "repair", "77", "--by", "ann", "--reason", "there is none").code == 1


def test_what_was_not_looked_for_is_said(cli: Any) -> None:
    cli("orphans", "--scan")
    Scan.objects.filter(kind="half").update(problem="it took longer than 2 s")
    assert "half was not looked for: it took longer than 2 s" in cli("orphans").err
