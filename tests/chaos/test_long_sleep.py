"""One long sleep, through everything that can happen meanwhile; what wakes is judged anew, and ends as it is declared (bar of part 3)."""

from __future__ import annotations

from collections import Counter

import pytest
import redis
from django.contrib.auth import get_user_model
from django.db import connections

import flows
from flows import budgets, releases
from flows.models import Candidate, Transition, Verdict
from tests.support.chaosapp import journal
from tests.support.chaosapp.sleeper import Sleeper
from tests.support.processes import ALIAS, Site

pytestmark = pytest.mark.req("T1", "G2", "I1", "N1", "D2", "H2", "C2")


def asleep(site: Site, run: object) -> None:
    site.wait("the run to sleep", lambda: site.status(run)[:2] == ("waiting", "sleep"))  # type: ignore[arg-type]


def test_a_workflow_sleeps_through_everything(site: Site) -> None:
    releases.register("R17", prompts={"plan": "old"}, using=ALIAS)
    releases.make_current("R17", by=None, reason="first", using=ALIAS)
    worker = site.worker()
    cleanup = site.cleanup()
    site.beat()
    run, gone = site.start(Sleeper, key="stays"), site.start(Sleeper, key="goes")
    for one in (run, gone):
        asleep(site, one)

    # every process goes, then the database, then all that the broker knows
    for process in (worker, cleanup):
        process.kill()
    site.servers.stop("postgres")
    site.start_server("postgres")
    connections[ALIAS].close()
    with redis.Redis.from_url(site.servers.redis_url) as client:
        client.flushall()

    # another release, another definition, another goal
    releases.register("R18", prompts={"plan": "new"}, compatible_with=["R17"], using=ALIAS)
    releases.make_current("R18", by=None, reason="second", using=ALIAS)
    site.worker("new", CHAOS_DEPLOYED="2")
    site.procs.start("cleanup", name="new cleanup", env={"CHAOS_DEPLOYED": "2"})
    assert flows.supersede(gone, goal="something else", using=ALIAS)
    for number, key in enumerate(("stays", "goes")):
        flows.signal(f"wake-{number}", "chaos.wake", key=key, payload={}, using=ALIAS)

    # the one: migrated, under the new release, until its budget of two calls is used up
    site.wait("the budget to be used up", lambda: site.status(run) == ("waiting", "finish", "HUMAN_REQUIRED"), seconds=90)
    assert site.rows("SELECT error_code, flow_version, release FROM outlast_workflow WHERE id = %s", run) == [
        ("BUDGET_EXHAUSTED", 2, "R18")
    ]
    assert len(site.called("scan/1")) == 1
    operator = get_user_model().objects.db_manager(ALIAS).create_superuser("operator")
    assert budgets.raise_(run, "model_calls", to=3, by=operator, reason="one more is worth it", using=ALIAS)
    site.wait_complete(run)

    # the other: what it owed was given back, and the event moved nothing
    site.wait("the end of the other", lambda: site.status(gone)[0] == "superseded")

    transitions = Transition.objects.using(ALIAS).filter(workflow_id=run)
    assert {"migrate", "pin"} <= set(transitions.values_list("trigger", flat=True))
    made = Candidate.objects.using(ALIAS).filter(workflow_id=run).order_by("id")
    assert list(made.values_list("node", "release")) == [("plan", "R17"), ("revise", "R18"), ("finish", "R18")]
    refused = Verdict.objects.using(ALIAS).filter(workflow_id=run).exclude(verdict="ALLOWED")
    assert list(refused.values_list("verdict", flat=True)) == ["BUDGET_EXHAUSTED"]
    done = Counter(line["operation"].partition("/")[2] for line in journal.read(site.world, journal.DONE))
    assert done == Counter({"hold/1": 2, "scan/1": 1, "act/1": 1, "hold/1/release/window": 1})
    held = site.rows(
        "SELECT w.key, c.status FROM outlast_commitment c JOIN outlast_workflow w ON w.id = c.workflow_id ORDER BY w.key"
    )
    assert held == [("goes", "released"), ("stays", "fulfilled")]
    assert not site.faults()
