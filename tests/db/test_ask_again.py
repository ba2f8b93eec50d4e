"""A probe that was broken is mended: a person has it asked again, and the doubt goes on from what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows.core.effects import Effect
from flows.models import Notice, Operation, Resolution
from flows.services.resolve import Code, Verdict, offered, resolve, seen_of
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import called, row, status
from tests.support import doubting
from tests.support.doubting import (
    DidNotHappen,
    Happened,
    PayMended,
    PayPlain,
    PayProbed,
    in_doubt,
    lost,
    operation_of,
    probe_says,
    refund_does,
)
from tests.support.obligations import faults

pytestmark = pytest.mark.req("B5", "B7")
IN_DOUBT = (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.CANNOT_TELL)


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    doubting.forget()
    yield
    doubting.forget()


@pytest.fixture
def ann(transactional_db: None) -> Any:
    return get_user_model().objects.create_superuser("ann", email="ann@example.com")


def broken(operation: Any) -> Any:
    raise KeyError("status")


def worn_out(worker: LocalWorker, clock: Clock, **start: Any) -> Operation:
    """A payment in doubt whose broken probe was asked as often as it may."""
    probe_says.extend([broken, broken])
    operation = in_doubt(worker, PayMended, **start)
    later(worker, clock)
    return now(operation)


def later(worker: LocalWorker, clock: Clock) -> None:
    for _ in range(2):
        clock.move(seconds=5)
        worker.tick()
        worker.run()


def now(operation: Operation) -> Operation:
    return Operation.objects.select_related("workflow").get(pk=operation.pk)


def ask_again(operation: Operation, by: Any, **more: Any) -> Code:
    return resolve(operation, verdict="ask_again", by=by, **{"reason": "The probe is mended.", **more}).code


def test_the_mended_probe_is_asked_again_and_the_workflow_goes_on(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = worn_out(worker, clock)
    run = operation.workflow_id
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "OUTCOME_UNKNOWN")
    assert (operation.due_at, operation.tries, offered(operation)) == (None, 2, (*IN_DOUBT, Verdict.ASK_AGAIN))
    assert ask_again(operation, ann, seen=seen_of(operation)) is Code.ACCEPTED
    found = now(operation)
    assert (found.status, found.due_at is not None, found.tries, found.lost) == ("uncertain", True, 0, 0)
    assert offered(found) == IN_DOUBT, "a probe is going to ask"
    assert "person" not in flows.describe(run).decision_needed
    assert faults() == []
    probe_says.append(Happened({"receipt": 9}, external_id="r-9"))
    worker.run()
    assert (now(operation).status, now(operation).external_id, status(run)[0], called("pay")) == (
        "succeeded",
        "r-9",
        "waiting",
        1,
    )
    assert row(run).node == "wait"
    kept = [(one.source, one.answer, one.counted) for one in Resolution.objects.filter(operation=operation).order_by("pk")]
    assert kept == [("probe", "unknown", False)] * 2 + [("person", "retry", False), ("probe", "happened", True)]


def test_a_probe_that_says_no_lets_the_same_operation_be_tried_again(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = worn_out(worker, clock)
    assert ask_again(operation, ann) is Code.ACCEPTED
    probe_says.append(DidNotHappen())
    worker.run()
    assert (now(operation).status, now(operation).attempt, called("pay")) == ("succeeded", 2, 2)


def test_a_probe_that_is_still_broken_has_all_its_tries_and_then_a_person_is_told_again(
    worker: LocalWorker, ann: Any, clock: Clock
) -> None:
    operation = worn_out(worker, clock, by=ann)
    assert Notice.objects.count() == 1
    assert ask_again(operation, ann) is Code.ACCEPTED
    probe_says.extend([broken, broken])
    worker.run()
    assert now(operation).tries == 1
    later(worker, clock)
    found = now(operation)
    assert (found.due_at, found.tries, offered(found)) == (None, 2, (*IN_DOUBT, Verdict.ASK_AGAIN))
    assert list(Notice.objects.values_list("code", flat=True)) == ["OUTCOME_UNKNOWN"] * 2
    assert operation.pk in flows.describe(operation.workflow_id).decision_needed
    assert faults() == []


def test_of_a_cancelled_workflow_the_cleanup_goes_on(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = worn_out(worker, clock)
    run = operation.workflow_id
    flows.cancel(run)
    worker.run()
    later(worker, clock)
    operation = now(operation)
    assert (status(run)[:2], operation.due_at) == (("cancelling", "HUMAN_REQUIRED"), None)
    assert ask_again(operation, ann) is Code.ACCEPTED
    assert status(run)[:2] == ("cancelling", ""), "nobody but the probe is waited for"
    probe_says.append(Happened({"receipt": 9}))
    worker.run()
    assert (status(run)[0], now(operation).status) == ("cancelled", "compensated")


def test_a_refund_in_doubt_likewise(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    run = PayMended.start({})
    worker.run()
    refund_does.append(lost)
    probe_says.extend([broken, broken])
    flows.cancel(run)
    worker.run()
    later(worker, clock)
    refund = operation_of(run, kind="compensation")
    assert (refund.status, status(run)[:2]) == ("uncertain", ("cancelling", "HUMAN_REQUIRED"))
    assert ask_again(refund, ann) is Code.ACCEPTED
    probe_says.append(Happened())
    worker.run()
    assert (status(run)[0], now(refund).status) == ("cancelled", "succeeded")


def test_a_paused_workflow_stays_paused_and_is_told_true(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = worn_out(worker, clock)
    flows.pause(operation.workflow_id)
    assert ask_again(operation, ann) is Code.ACCEPTED
    assert "cleanup queue" in flows.describe(operation.workflow_id).decision_needed
    probe_says.append(Happened())
    worker.run()
    assert (status(operation.workflow_id)[0], now(operation).status) == ("paused", "succeeded")
    flows.resume(operation.workflow_id)
    worker.run()
    assert row(operation.workflow_id).node == "wait"


def test_where_nobody_can_be_asked_it_is_refused_and_says_so(worker: LocalWorker, ann: Any) -> None:
    operation = now(in_doubt(worker, PayPlain))
    assert offered(operation) == IN_DOUBT
    found = resolve(operation, verdict="ask_again", by=ann, reason="x")
    assert (found.code, bool(found)) == (Code.NOBODY_TO_ASK, False)
    assert "reconcile" in found.sentence
    assert not Resolution.objects.exists()


def test_where_this_process_does_not_know_the_flow_it_is_refused(worker: LocalWorker, ann: Any) -> None:
    with factories.declaring(worker) as declare:
        pay = flows.Activity(factories.work, effect=Effect(reconcile=broken, probes=doubting.ONCE), then="done")
        operation = in_doubt(worker, declare("t-doubt-unknown", pay=pay, done=flows.End(flows.COMPLETE)))
        assert now(operation).due_at is None
    assert ask_again(operation, ann) is Code.NOBODY_TO_ASK


def test_what_a_probe_is_going_to_ask_needs_no_second_word(worker: LocalWorker, ann: Any) -> None:
    operation = in_doubt(worker, PayProbed)
    assert ask_again(operation, ann) is Code.ASKED_ANYWAY
    assert resolve(operation, verdict="ask_again", by=ann, reason="x").sentence.startswith("It is asked about anyway")


def test_twice_at_once_is_once_and_an_old_page_is_refused(worker: LocalWorker, ann: Any, clock: Clock) -> None:
    operation = worn_out(worker, clock)
    seen = seen_of(operation)
    assert ask_again(operation, ann, seen=seen) is Code.ACCEPTED
    assert ask_again(operation, ann, seen=seen) is Code.MOVED
    assert ask_again(operation, ann) is Code.ASKED_ANYWAY


def test_of_what_failed_nothing_can_be_asked(worker: LocalWorker, ann: Any) -> None:
    assert ask_again(doubting.undoing(worker), ann) is Code.NOT_OFFERED
