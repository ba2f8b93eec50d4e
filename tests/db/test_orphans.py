"""Findings: one row while it is there; repaired, gone or dismissed; and back again as a new one. The watch, and what bounds a scan."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connections

import flows
from flows import registry
from flows.core.liveness import REPEATS, Repair
from flows.errors import CannotRepair, NotPermitted, ReasonMissing, UnknownFinding, UnknownOrphanKind
from flows.models import Finding, Scan, Timer, Workflow
from flows.services import sweeps
from flows.services.liveness import acting, mending, scanning, searches, watch
from flows.services.liveness.acting import Answer
from flows.store import findings as store
from flows.store import orphans, sql
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask
from tests.support import races, sabotage
from tests.support.sabotage import damage
from tests.support.trace import Died

pytestmark = pytest.mark.req("P1", "P2")
TAMPERS = True
USING = "default"


def lose_timer(run: Any) -> None:
    damage("DELETE FROM outlast_timer WHERE workflow_id = %(id)s", id=run.id)


@pytest.fixture
def run(worker: LocalWorker) -> Any:
    started = Ask.start({"key": "mine"})
    worker.run()
    return started


def misdirect(number: int = 1) -> None:
    stranger = "00000000-0000-4000-8000-000000000001"
    flows.signal(f"e-{number}", "t.asked", key="nobody", payload={}, about=flows.About(workflow=stranger))


def operator(*more: str) -> Any:
    person = factories.person("olga")
    names = ("operate_workflow", *more)
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="outlast_flows", codename__in=names))
    return person


def test_what_comes_back_is_a_new_finding_that_says_how_often_it_was_there(run: Any) -> None:
    for before in range(3):
        lose_timer(run)
        scanning.scan()
        newest = Finding.objects.latest("pk")
        assert (newest.status, newest.before, newest.code) == ("repaired", before, "make_timer")
    assert Finding.objects.count() == 3


def test_what_comes_back_too_often_is_left_to_a_person(run: Any) -> None:
    for _ in range(REPEATS):
        lose_timer(run)
        scanning.scan()
    lose_timer(run)
    scanning.scan()
    newest = Finding.objects.latest("pk")
    assert (newest.status, newest.before) == ("open", REPEATS)
    assert acting.repair(newest, by=operator(), reason="somebody deletes timers: told them").answer is Answer.ACCEPTED
    newest.refresh_from_db()
    assert (newest.status, newest.by_label, newest.reason) == ("repaired", "olga", "somebody deletes timers: told them")
    assert Timer.objects.filter(workflow_id=run.id, status="pending").count() == 1


def test_what_somebody_else_has_mended_is_gone(run: Any) -> None:
    lose_timer(run)
    scanning.scan(repair=False)
    assert Finding.objects.get().status == "open"
    flows.signal("e-1", "t.asked", key="mine", payload={})
    scanning.scan(repair=False)
    one = Finding.objects.get()
    assert (one.status, one.times, one.closed_at is not None) == ("gone", 1, True)


def test_what_is_gone_before_the_repair_hits_nothing(run: Any) -> None:
    lose_timer(run)
    scanning.scan(repair=False)
    one = Finding.objects.get()
    flows.signal("e-1", "t.asked", key="mine", payload={})
    before = sabotage.rows()
    assert acting.repair(one, by=None, reason="try").answer is Answer.MOVED
    assert sabotage.changed(before, sabotage.rows()) == []
    assert Finding.objects.get().tries == 1


def test_a_dismissed_one_stays_dismissed_until_it_goes(worker: LocalWorker) -> None:
    misdirect()
    scanning.scan()
    one = Finding.objects.get()
    assert acting.dismiss(one, by=operator(), reason="a test of the sender's").answer is Answer.ACCEPTED
    assert acting.dismiss(one, by=None, reason="again").answer is Answer.ALREADY
    assert acting.repair(one, by=None, reason="after all").answer is Answer.ALREADY
    scanning.scan()
    one.refresh_from_db()
    assert (Finding.objects.count(), one.status, one.times, one.closed_at) == (1, "dismissed", 2, None)
    damage("UPDATE outlast_event SET place = 'early'")
    scanning.scan()
    damage("UPDATE outlast_event SET place = 'misdirected'")
    scanning.scan()
    one.refresh_from_db()
    assert (one.status, one.closed_at is not None) == ("dismissed", True)
    newest = Finding.objects.latest("pk")
    assert (newest.status, newest.before) == ("open", 1)


def test_who_may_and_what_is_offered(worker: LocalWorker) -> None:
    misdirect()
    scanning.scan()
    one = Finding.objects.get()
    with pytest.raises(NotPermitted, match="operate_workflow"):
        acting.repair(one, by=factories.person("nobody"), reason="because")
    with pytest.raises(NotPermitted, match="redeliver_event"):
        acting.repair(one, by=operator(), reason="because")
    with pytest.raises(NotPermitted):
        acting.dismiss(one, by=factories.person("nobody"), reason="because")
    with pytest.raises(ReasonMissing):
        acting.repair(one, by=operator("redeliver_event"), reason=" ")
    with pytest.raises(CannotRepair, match="Offered: redeliver"):
        acting.repair(one, by=operator(), reason="because", how="cancel")
    with pytest.raises(UnknownFinding):
        acting.dismiss(10**30, by=None, reason="because")
    with pytest.raises(UnknownOrphanKind, match="no kind of orphan 'lost'"):
        scanning.scan(kinds=["lost"])
    assert Finding.objects.get().status == "open"
    assert acting.repair(one, by=operator("redeliver_event"), reason="its run is there now").answer is Answer.ACCEPTED


def test_two_scans_at_once_make_one_row_and_one_repair(run: Any) -> None:
    lose_timer(run)
    outcomes = races.all_of([lambda: scanning.scan(kinds=["timer_lost"]), lambda: scanning.scan(kinds=["timer_lost"])])
    assert [one for one in outcomes if isinstance(one, Exception)] == []
    assert Finding.objects.get().status == "repaired"
    assert Timer.objects.filter(workflow_id=run.id, status="pending").count() == 1


def test_a_repair_and_a_person_at_once_are_one(run: Any) -> None:
    lose_timer(run)
    scanning.scan(repair=False)
    one = Finding.objects.get()
    outcomes = races.all_of(
        [lambda: scanning.mend_one(one.pk, USING), lambda: acting.repair(one.pk, by=None, reason="mine"), lambda: scanning.scan()]
    )
    assert [each for each in outcomes if isinstance(each, Exception)] == []
    assert Timer.objects.filter(workflow_id=run.id, status="pending").count() == 1
    scanning.scan()  # one that began before the repair may have found it once more: that is gone
    assert set(Finding.objects.values_list("status", flat=True)) <= {"repaired", "gone"}


@pytest.mark.serial
def test_a_crash_at_any_point_leaves_it_open_or_repaired(run: Any) -> None:
    number, over = 0, False
    while not over:
        Finding.objects.all().delete()  # five before it would leave it to a person
        lose_timer(run)
        passed: list[str] = []

        def seam(when: str, name: str, passed: list[str] = passed, last: int = number) -> None:
            passed.append(f"{when} {name}")
            if len(passed) - 1 == last:
                raise Died

        sql.seam = seam
        try:
            over = bool(scanning.scan(kinds=["timer_lost"]))
        except Died:
            connections[USING].close()
        finally:
            sql.seam = None
        scanning.scan(kinds=["timer_lost"])
        assert Timer.objects.filter(workflow_id=run.id, status="pending").count() == 1
        assert set(Finding.objects.values_list("status", flat=True)) == {"repaired"}
        number += 1
    assert {"before scan", "after scan", "before repair", "after repair"} <= set(passed)


def test_what_another_process_knows_is_no_try_of_this_one(run: Any, monkeypatch: Any) -> None:
    lose_timer(run)
    monkeypatch.setitem(mending.MENDS, Repair.MAKE_TIMER, lambda order: raising())
    scanning.scan(kinds=["timer_lost"])
    one = Finding.objects.get()
    assert (one.status, one.tries) == ("open", 0)
    assert acting.repair(one, by=None, reason="because").answer is Answer.MOVED


def raising() -> bool:
    raise mending.NotHere


def test_a_kind_that_takes_too_long_is_told_and_holds_up_no_other(run: Any, monkeypatch: Any, caplog: Any) -> None:
    lose_timer(run)
    slow = "SELECT 'x:1', NULL::uuid, '{}'::jsonb FROM pg_sleep(9) LIMIT %(limit)s::int"
    monkeypatch.setattr(orphans, "SEARCHES", {**orphans.SEARCHES, "ownerless": slow})
    monkeypatch.setattr(scanning, "BOUND", 50)
    found = {one.kind: one for one in scanning.scan(kinds=["ownerless", "timer_lost"])}
    assert (found["ownerless"].whole, found["ownerless"].problem) == (False, scanning.TOO_LONG)
    assert found["timer_lost"].repaired == 1
    assert Scan.objects.get(kind="ownerless").problem == scanning.TOO_LONG
    assert "were not looked for" in caplog.text


def test_a_scan_that_was_not_whole_lets_nothing_go(worker: LocalWorker, settings: Any) -> None:
    for number in range(3):
        misdirect(number)
    scanning.scan()
    settings.OUTLAST = {**settings.OUTLAST, "SWEEP_BATCH": 2}
    (one,) = scanning.scan(kinds=["misdirected"])
    assert (one.whole, one.found) == (False, 2)
    assert Finding.objects.filter(status="open").count() == 3


def test_a_repair_that_fails_is_counted_and_holds_up_no_other(worker: LocalWorker, monkeypatch: Any) -> None:
    for number in range(2):
        Ask.start({"key": f"k-{number}"})
    worker.run()
    damage("DELETE FROM outlast_timer")
    from flows.services.liveness import mending

    first = str(Workflow.objects.earliest("id").pk)
    usual = mending.MENDS["make_timer"]  # type: ignore[index]

    def fails(order: Any) -> bool:
        if str(order.workflow) == first:
            raise ValueError("it broke")
        return usual(order)

    monkeypatch.setitem(mending.MENDS, "make_timer", fails)  # type: ignore[misc]
    scanning.scan()
    assert list(Finding.objects.order_by("status").values_list("status", "tries")) == [("open", 1), ("repaired", 0)]


def test_the_clock_scans_once_in_a_while(run: Any, worker: LocalWorker, monkeypatch: Any) -> None:
    monkeypatch.setattr(registry, "_watches", {"liveness": watch()})
    lose_timer(run)
    worker.tick()
    assert not Scan.objects.exists(), "a worker that has just been started"
    damage("UPDATE outlast_worker SET started_at = started_at - interval '2 minutes'")
    sweeps.run_tick(USING)
    assert Finding.objects.get().status == "repaired"
    lose_timer(run)
    sweeps.run_tick(USING)
    assert Finding.objects.count() == 1, "within the minute"
    assert store.begin(60.0, USING) is False
    damage("UPDATE outlast_scan SET scanned_at = scanned_at - interval '2 minutes'")
    sweeps.run_tick(USING)
    assert Finding.objects.count() == 2


def test_it_can_be_switched_off(settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "LIVENESS_SECONDS": None}
    assert watch().exists == "false"
    assert scanning.scan_due(USING) == []


def test_every_kind_has_a_query_and_every_repair_a_function() -> None:
    from flows.core.liveness import DOES, KINDS, Repair
    from flows.services.liveness.mending import MENDS

    assert set(orphans.SEARCHES) | {"request_adrift"} == set(KINDS)
    assert searches.of("request_adrift") is not None
    assert set(DOES) == set(Repair)
    assert set(MENDS) | {Repair.WITHDRAW} == set(Repair)
