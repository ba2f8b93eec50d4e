"""Bulk operations: chosen once, each run done by itself and once, with the rights that who asked has now."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, transaction

import flows
from flows import COMPLETE, Activity, Decision, End, Gate, bulk
from flows.core.misuse import CannotBulk, NotPermitted, ReasonMissing
from flows.models import Bulk, BulkItem, Transition, Workflow
from flows.services import bulk as service
from flows.testing import LocalWorker
from tests.factories import Line, row, work
from tests.support import waking
from tests.support.record import Counting

USING = "default"
WHY = "the campaign is over"


def may(name: str) -> Any:
    user = get_user_model().objects.create_user(name)
    user.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    return user


def test_each_run_that_matches_now_is_done_once_and_says_what_became_of_it(worker: LocalWorker) -> None:
    ann = may("ann")
    ended = Line.start({}, key="ended")
    worker.run()
    live = Line.start_many([(f"k{number}", {}) for number in range(3)])
    made = bulk.make("cancel", flow="t-line", reason=WHY, by=ann)
    assert (made.status, made.total, made.left, made.counts) == ("running", 4, 4, {})
    assert made.filter == {"flow": "t-line"}
    later = Line.start({}, key="later")
    worker.tick()
    shown = bulk.show(made.id)
    assert (shown.status, shown.left, shown.counts) == ("done", 0, {"accepted": 3, "too_late": 1})
    assert {row(run).status for run in live} == {"cancelled"}
    assert (row(ended).status, row(later).status) == ("complete", "runnable"), "what matches later is not in it"
    item = BulkItem.objects.get(workflow_id=ended.id)
    assert (item.code, item.sentence) == ("too_late", "its status is complete")
    log = Transition.objects.filter(workflow_id=live[0].id, trigger="cancel")
    assert (log[0].trigger_ref, log[0].note["reason"]) == ("ann", WHY)
    assert service.carry_out(USING) == 0


@pytest.mark.parametrize(("verb", "before", "after"), [("pause", "runnable", "paused"), ("resume", "paused", "runnable")])
def test_the_verbs_of_control(worker: LocalWorker, verb: str, before: str, after: str) -> None:
    run = Line.start({})
    if before == "paused":
        flows.pause(run)
    made = bulk.make(verb, flow="t-line", status=before, reason=WHY)
    worker.tick()
    assert (bulk.show(made.id).counts, row(run).status) == ({"accepted": 1}, after)


def test_migrate_takes_its_version_and_says_why_not(worker: LocalWorker) -> None:
    run = Line.start({})
    made = bulk.make("migrate", key=None, flow="t-line", reason=WHY, arguments={"to": 1})
    worker.tick()
    assert bulk.show(made.id).counts == {"already": 1}
    made = bulk.make("migrate", flow="t-line", reason=WHY, arguments={"to": 7})
    worker.tick()
    assert bulk.show(made.id).counts == {"UNKNOWN_FLOW": 1}
    assert "t-line@7" in BulkItem.objects.get(bulk=made.id, workflow_id=run.id).sentence


def test_resume_takes_the_node_where_a_gate_has_stopped_them(worker: LocalWorker, declare: Any) -> None:
    versions = iter(["v1", "v1", *["v2"] * 20])
    flow = declare(
        "t-bulk-stopped",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Activity(work, verifies="propose", then="act"),
        act=Activity(work, gate=Gate(verified_by="check", fresh={"main": lambda attempt: next(versions)}), then="done"),
        done=End(COMPLETE),
    )
    run, asleep = flow.start({}), Line.start({})
    worker.run()
    assert (row(run).outcome, row(asleep).status) == ("REVALIDATION_REQUIRED", "complete")
    made = bulk.make("resume", flow="t-bulk-stopped", reason=WHY, arguments={"at": "nowhere"})
    worker.tick()
    assert bulk.show(made.id).counts == {"CANNOT_RESUME_AT": 1}
    made = bulk.make("resume", flow="t-bulk-stopped", reason=WHY, arguments={"at": "check"})
    worker.tick()
    assert (bulk.show(made.id).counts, row(run).status, row(run).node) == ({"accepted": 1}, "runnable", "check")


def test_fifty_a_look_and_the_next_look_is_asked_for(
    worker: LocalWorker, hints: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BATCH", 3)
    Line.start_many([(None, {}) for _ in range(5)])
    made = bulk.make("pause", flow="t-line", reason=WHY)
    assert hints.watched == ["bulk"], "it begins at once"
    hints.clear()
    assert service.carry_out(USING, 3) == 3
    assert hints.watched == ["bulk"]
    assert (bulk.show(made.id).left, bulk.show(made.id).status) == (2, "running")
    assert service.carry_out(USING, 3) == 2
    assert bulk.show(made.id).status == "done"


def test_two_at_once_go_one_after_the_other(worker: LocalWorker) -> None:
    Line.start_many([(None, {}) for _ in range(2)])
    first = bulk.make("pause", flow="t-line", reason=WHY)
    second = bulk.make("resume", flow="t-line", reason=WHY)
    worker.tick()
    assert (bulk.show(first.id).counts, bulk.show(second.id).counts) == ({"accepted": 2}, {"accepted": 2})
    assert set(Workflow.objects.values_list("status", flat=True)) == {"runnable"}


def test_what_is_stopped_stays_as_it_is(worker: LocalWorker) -> None:
    ann = may("ann")
    Line.start_many([(None, {}) for _ in range(4)])
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    service.carry_out(USING, 2)
    assert bulk.stop(made.id, reason="not these", by=ann)
    assert not bulk.stop(made.id, reason="not these", by=ann)
    worker.tick()
    shown = bulk.show(made.id)
    assert (shown.status, shown.counts, shown.left) == ("stopped", {"accepted": 2}, 2)
    assert Workflow.objects.filter(status="runnable").count() == 2
    kept = Bulk.objects.get()
    assert (kept.stopped_by, kept.stopped_reason) == ("ann", "not these")


def test_who_has_lost_the_right_meanwhile_does_no_more(worker: LocalWorker) -> None:
    """Looked up anew at each look: taken away, switched off, deleted."""
    lost: dict[str, Any] = {
        "taken": lambda user: user.user_permissions.clear(),
        "off": lambda user: get_user_model().objects.filter(pk=user.pk).update(is_active=False),
        "gone": lambda user: user.delete(),
    }
    for name, lose in lost.items():
        user = may(name)
        run = Line.start({}, key=name)
        made = bulk.make("cancel", key=name, reason=WHY, by=user)
        lose(user)
        worker.tick()
        shown = bulk.show(made.id)
        assert (shown.status, shown.counts, row(run).status) == ("done", {"NOT_PERMITTED": 1}, "runnable")
        assert name in BulkItem.objects.get(bulk=made.id).sentence


def test_one_that_fails_holds_up_no_other(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Line.start_many([(f"k{number}", {}) for number in range(3)])
    act = service.VERBS["cancel"]

    def failing(workflow: Any, **given: Any) -> Any:
        found = act(workflow, **given)
        if workflow == runs[1].id:
            raise RuntimeError("what nobody foresaw")
        return found

    monkeypatch.setattr(service, "VERBS", {**service.VERBS, "cancel": failing})
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    worker.tick()
    assert bulk.show(made.id).counts == {"accepted": 2, "FAULT": 1}
    assert [row(run).status for run in runs] == ["cancelled", "runnable", "cancelled"], "half of what failed is not kept"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"verb": "delete", "flow": "t-line"}, "There is no verb 'delete': choose cancel"),
        ({"verb": "cancel"}, "Say which runs"),
        ({"verb": "cancel", "colour": "red"}, "no filter 'colour'"),
        ({"verb": "cancel", "flow": "t-none"}, "No run matches"),
        ({"verb": "cancel", "flow": "t-line", "arguments": {"to": 2}}, "cancel takes no 'to'"),
        ({"verb": "pause", "flow": "t-line", "arguments": {"at": "one"}}, "pause takes no 'at'"),
        ({"verb": "resume", "flow": "t-line", "arguments": {"at": "a\x00"}}, "no name of a node"),
        ({"verb": "cancel", "flow": "a\x00"}, "give text"),
        ({"verb": "cancel", "version": "one"}, "give a number"),
        ({"verb": "cancel", "version": True}, "give a number"),
        ({"verb": "cancel", "flow": "t-line", "seen": 1}, "2 runs match now, and 1 did"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(worker: LocalWorker, given: dict[str, Any], text: str) -> None:
    Line.start_many([(None, {}) for _ in range(2)])
    with pytest.raises(CannotBulk, match=text):
        bulk.make(**given, reason=WHY)
    assert not Bulk.objects.exists()
    assert not BulkItem.objects.exists()


def test_more_than_may_be_are_refused(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST", 2)
    Line.start_many([(None, {}) for _ in range(3)])
    with pytest.raises(CannotBulk, match="More than 2 runs match"):
        bulk.make("cancel", flow="t-line", reason=WHY)
    assert not BulkItem.objects.exists()


def test_a_reason_and_the_right_are_needed(worker: LocalWorker) -> None:
    Line.start({})
    cat = get_user_model().objects.create_user("cat")
    with pytest.raises(NotPermitted):
        bulk.make("cancel", flow="t-line", reason=WHY, by=cat)
    with pytest.raises(ReasonMissing):
        bulk.make("cancel", flow="t-line", reason="")
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    with pytest.raises(NotPermitted):
        bulk.stop(made.id, reason=WHY, by=cat)
    for number in (0, 2**70, "x", made.id + 1):
        with pytest.raises(CannotBulk, match="no bulk operation"):
            bulk.show(number)  # type: ignore[arg-type]
    bulk.stop(made.id, reason=WHY)


def test_a_filter_in_the_words_of_a_list_with_its_own_parameters(worker: LocalWorker) -> None:
    """Any query set will do: what an admin's list shows, too, with percent signs and arrays in it."""
    runs = Line.start_many([("100%", {}), ("b", {})])
    found = Workflow.objects.filter(key__contains="%", pk__in=[run.id for run in runs]).distinct()
    made = service.make("pause", found, filter={"q": "100%"}, reason=WHY)
    worker.tick()
    assert (made.total, [row(run).status for run in runs]) == (1, ["paused", "runnable"])


def test_the_database_keeps_status_and_end_together(worker: LocalWorker) -> None:
    Line.start({})
    made = bulk.make("pause", flow="t-line", reason=WHY)
    for values in ({"status": "done"}, {"status": "lost"}, {"ended_at": "2026-01-01T00:00Z"}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Bulk.objects.filter(pk=made.id).update(**values)
    bulk.stop(made.id, reason=WHY)
