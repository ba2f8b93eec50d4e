"""Where the time went, from the log: what the statements say is what a slow count by hand says, on real runs and on random logs."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

import flows
from flows import COMPLETE, ESCALATE, FAILED, Activity, Candidate, Deadline, Decision, End, Retry, Visits, minutes
from flows import Wait as WaitNode
from flows.core import measures as core
from flows.core.protocol import LIVE, MOVES, OUTCOMES, WAIT_KINDS, Status
from flows.models import Attempt, Latency, Measure, RollUp, Transition, Verdict, Wait, Workflow
from flows.services import control, measures, sweeps
from flows.store import measures as store
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Line, Nap
from tests.support import measuring
from tests.support.measuring import assert_measured

pytestmark = pytest.mark.req("Q2", "C5")

USING = "default"
START = datetime(2026, 3, 1, tzinfo=UTC)


def buckets(**filters: Any) -> dict[str, float]:
    return {bucket: float(seconds) for bucket, seconds in measures.measured(hours=48, **filters).by_bucket().items()}


def rolled_up(worker: LocalWorker) -> None:
    RollUp.objects.update(looked_at=START, until=START, final=measuring.hour_of(store.state(USING)[2]) - timedelta(hours=12))
    worker.tick()


def test_each_kind_of_wait_counts_in_its_bucket() -> None:
    assert core.OF_WAIT == measuring.WAITS
    assert set(measuring.WAITS) == set(WAIT_KINDS)
    assert set(core.OF_STATUS) == LIVE - {Status.RUNNING, Status.WAITING}


def test_a_night_asleep_is_the_timers(worker: LocalWorker, clock: Clock) -> None:
    Nap.start({})
    worker.run()
    clock.move(hours=1)
    found = buckets(flow=Nap.definition.name)
    assert 3600 <= found["timer"] < 3630
    assert found["queued"] + found["computing"] < 30
    assert assert_measured(USING) > 0


def test_reasoning_verification_retries_and_people_are_told_apart(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    def propose(attempt: Any) -> Candidate:
        clock.move(minutes=4)
        return Candidate("go", {"a": 1})

    def verify(attempt: Any) -> None:
        clock.move(minutes=3)

    def work(attempt: Any) -> None:
        clock.move(minutes=2)
        if attempt.number == 1:
            raise flows.errors.Transient("once more")

    flow = declare(
        "t-measured-kinds",
        think=Decision(propose, choices={"go": "check"}, visits=Visits(3, then="lost"), timeout=minutes(30)),
        check=Activity(verify, verifies="think", timeout=minutes(30), then="work"),
        work=Activity(
            work,
            retry=Retry(max_attempts=3, initial=minutes(10), maximum=minutes(10), jitter=0),
            timeout=minutes(30),
            then="done",
        ),
        done=End(COMPLETE),
        lost=End(FAILED),
    )
    run = flow.start({})
    worker.run()
    clock.move(minutes=11)
    worker.tick()
    worker.run()
    assert factories.row(run).status == "complete"
    found = {bucket: round(seconds / 60) for bucket, seconds in buckets(flow="t-measured-kinds").items()}
    assert found == {"reasoning": 4, "verification": 3, "computing": 4, "queued": 0, "retry delay": 11}
    assert assert_measured(USING) > 0


def test_a_pause_is_no_wait_and_what_was_waited_for_stays(worker: LocalWorker, clock: Clock) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    clock.move(minutes=10)
    control.pause(run.id, reason="no")
    clock.move(minutes=20)
    control.resume(run.id, reason="yes")
    worker.run()
    clock.move(minutes=30)
    found = {bucket: round(seconds / 60) for bucket, seconds in buckets().items()}
    assert found == {"external job": 40, "paused": 20, "queued": 0, "computing": 0}
    assert_measured(USING)


def test_an_hour_is_rolled_up_as_a_whole_and_twice_is_once(worker: LocalWorker, clock: Clock) -> None:
    Nap.start({})
    Line.start({})
    worker.run()
    clock.move(hours=5)
    worker.tick()
    worker.run()
    rolled_up(worker)
    first, until = measuring.stored(USING), RollUp.objects.get().until
    hours = sorted({place[0] for place in first[0]})
    assert len(hours) >= 5
    assert until == measuring.hour_of(store.state(USING)[2])
    assert first == (measuring.spent(START, until, USING), measuring.took(START, until, USING))
    assert RollUp.objects.get().final == until - timedelta(hours=1)
    rolled_up(worker)
    assert measuring.stored(USING) == first


@pytest.fixture
def waiting(worker: LocalWorker, declare: Any) -> None:
    """A run that waits for days."""
    flow = declare(
        "t-measured-days",
        wait=WaitNode("t.days", key="k", deadline=Deadline(days=9, then=ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    flow.start({})
    worker.run()


def test_what_comes_late_is_in_it_an_hour_later_and_then_it_is_final(worker: LocalWorker, clock: Clock, waiting: None) -> None:
    clock.move(hours=3)
    rolled_up(worker)
    Measure.objects.update(seconds=0)  # as if rows of the log had come after the roll-up
    clock.move(hours=1)
    RollUp.objects.update(looked_at=START)
    worker.tick()
    kept = dict(Measure.objects.filter(bucket="external job").values_list("hour", "seconds"))
    hours = sorted(kept)
    assert [round(kept[hour]) for hour in hours[:-2]] == [0] * (len(hours) - 2)
    assert [round(kept[hour]) for hour in hours[-2:]] == [3600, 3600]


def test_the_clock_looks_once_a_minute_at_most(worker: LocalWorker, clock: Clock) -> None:
    clock.move(hours=2)
    look = sweeps.run_tick(USING)
    assert look is not None
    assert "measures" not in look.watches  # somebody has set about it
    RollUp.objects.update(looked_at=START)
    assert measures.roll_up(USING)
    assert not measures.roll_up(USING)


def test_a_record_that_was_emptied_is_measured_from_now_on(worker: LocalWorker) -> None:
    RollUp.objects.all().delete()
    assert not measures.roll_up(USING)  # no hour has ended since
    (row,) = RollUp.objects.all()
    assert row.until == row.final == measuring.hour_of(store.state(USING)[2])


def test_a_long_time_without_a_clock_is_caught_up_a_day_at_a_time(worker: LocalWorker, clock: Clock) -> None:
    RollUp.objects.update(looked_at=START)
    before = RollUp.objects.get().final
    clock.move(hours=60)
    worker.tick()
    row = RollUp.objects.get()
    assert (row.final, row.until) == (before + timedelta(hours=24), before + timedelta(hours=24))


def test_what_is_not_rolled_up_is_computed_when_it_is_asked_for(worker: LocalWorker, clock: Clock, waiting: None) -> None:
    clock.move(hours=3)
    rolled_up(worker)
    before = buckets()["external job"]
    clock.move(minutes=30)
    assert round(buckets()["external job"] - before) in (1800, 1801)


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "24", 10**6])
def test_hours_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(flows.errors.PayloadError, match="number of hours"):
        measures.measured(hours=given)


@pytest.mark.parametrize("seed", range(8))
def test_random_logs_are_measured_as_by_hand(transactional_db: None, seed: int) -> None:
    dice = random.Random(seed)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # logs that no arrow wrote
        for _ in range(25):
            a_life(dice)
        start = START + timedelta(hours=dice.randrange(3))
        end = start + timedelta(hours=dice.randrange(1, 12))
        by_hand = measuring.spent(start, end, USING), measuring.took(start, end, USING)
        assert measuring.apart(measuring.computed(start, end, USING), by_hand) == []
        assert by_hand[0]
        transaction.set_rollback(True)


def a_life(dice: random.Random) -> None:
    """A run whose statuses follow one another as they may, at any moments, with the waits that belong to them."""
    run = Workflow(
        pk=uuid.UUID(int=dice.getrandbits(128)), flow_name=dice.choice(["t-line", "t-pipe"]), flow_version=1, fingerprint="", input={},
        input_digest="", intent_id=uuid.UUID(int=1), intent_version=1, node="one", status="runnable", version=0, queue="agents",
        rank=START, created_at=START, updated_at=START,
    )  # fmt: skip
    at = START + timedelta(seconds=dice.randrange(3600 * 3), microseconds=dice.randrange(10**6))
    status, wait, log = None, None, []
    for _ in range(dice.randrange(1, 30)):
        choices = sorted(MOVES[Status(status) if status else None])
        if not choices:
            break
        target = (
            dice.choice([one for one in choices if one not in measuring.OVER] or choices)
            if dice.random() < 0.9
            else dice.choice(choices)
        )
        at += timedelta(seconds=dice.choice([0, 0.001, 0.3, 7, 400, 5000]) * dice.random() * 2, microseconds=1)
        run.version += 1
        outcome = dice.choice(["WAITING", "RECONCILIATION_REQUIRED", "POLICY_BLOCKED"]) if target == "waiting" else target.upper()
        log.append(Transition(
            workflow_id=run.pk, seq=run.version, from_status=status or "", to_status=target, from_node="one", to_node="one", outcome=outcome,
            epoch=0, trigger="claim" if (status, target) == ("runnable", "running") else dice.choice(["event", "resume"]), trigger_ref="",
            intent_version=1, policy_version="", at=at,
        ))  # fmt: skip
        if wait is not None and ((target == "running" and status == "runnable" and dice.random() < 0.7) or target == "waiting"):
            wait.closed_at, wait.status = at, "satisfied"
            wait.save()
            wait = None
        if target == "waiting" and dice.random() < 0.9:
            wait = Wait(
                workflow_id=run.pk, node="one", visit=1, kind=dice.choice(sorted(WAIT_KINDS)), reason="", event_type="", key="", on_expiry="",
                epoch=0, intent_version=1, policy_version="", status="open", opened_at=at,
            )  # fmt: skip
            wait.save()
        status = str(target)
    run.status, run.outcome = str(status), min(str(one or "") for one in OUTCOMES[Status(str(status))])
    run.worker_id = uuid.UUID(int=2) if status == "running" else None
    run.save(force_insert=True)
    Transition.objects.bulk_create(log)
    for number in range(dice.randrange(4)):
        ended = START + timedelta(seconds=dice.randrange(40000))
        began = dice.choice([None, ended - timedelta(seconds=dice.choice([0, 0.01, 0.1, 2.5, 900, 10**6]))])
        outcome = dice.choice(["succeeded", "failed", "lost"])
        Attempt.objects.create(
            workflow_id=run.pk, activity_seq=1, number=number + 1, node="one", started_at=began, ended_at=ended, outcome=outcome
        )
        Verdict.objects.create(
            workflow_id=run.pk, version=1, epoch=0, intent_version=1, node="one", cause="start", checks=[], at=ended,
            verdict=dice.choice(["ALLOWED", "INTENT_SUPERSEDED"]),
        )  # fmt: skip


def test_a_share_of_a_histogram() -> None:
    assert core.quantile({0.01: 98, 5.0: 1, 60.0: 1}, 0.5) == 0.01
    assert core.quantile({0.01: 98, 5.0: 1, 60.0: 1}, 0.99) == 5.0
    assert core.quantile({0.01: 98, 5.0: 1, 60.0: 1}, 1.0) == 60.0
    assert core.quantile({}, 0.5) is None
    assert not Latency.objects.exists()
