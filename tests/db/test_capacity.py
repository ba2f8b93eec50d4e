"""Capacity: what attempts take before they begin, how they wait for it, and how they are let in again (R1, R2, B3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.utils import timezone

import flows
from flows import (
    CANCEL,
    COMPLETE,
    ESCALATE,
    Activity,
    Budget,
    Deadline,
    Dependency,
    End,
    Limit,
    Ramp,
    Retry,
    Spend,
    dependencies,
    hours,
    minutes,
    seconds,
)
from flows.core import declared as declarations
from flows.core.capacity import DependencyStatus
from flows.core.errors import CapacityUnavailable, Transient, classify
from flows.core.misuse import NotPermitted, ReasonMissing, UnknownDependency, UsageError
from flows.core.moves import Park
from flows.models import Attempt, Notice, Slot, Timer, Transition, Wait
from flows.models import Dependency as Row
from flows.models import Limit as LimitRow
from flows.services import gating
from flows.services.attempt import Attempt as Handed
from flows.services.capacity import pump
from flows.store import limits
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, enter, row, status, take_one, work
from tests.support.budgeting import amounts
from tests.support.record import Counting
from tests.unit.core.test_activities import activity, node, state

pytestmark = pytest.mark.req("R1", "R2")

Declare = Callable[..., type[flows.Flow]]
USING = "default"
GOOD = {"well": True}
asked: list[str] = []


def probe() -> bool:
    asked.append("payments")
    return GOOD["well"]


def tenant(state: Any) -> str:
    return str(state.input.get("tenant", ""))


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("payments", rate=200, ceiling=2, ramp=Ramp(start=10, factor=2, every=seconds(2)), fails=1)
    Dependency("asked", probe=probe, ceiling=2, fails=1)
    Limit("gpu", concurrency=1)
    Limit("tenants", concurrency=1, key=tenant)
    Limit("calls", rate=0.02, burst=2)
    asked.clear()
    GOOD["well"] = True
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def paying(declare: Declare) -> type[flows.Flow]:
    return declare("t-paying", pay=Activity(work, needs="payments", then="done"), done=End(COMPLETE))


def scarce(declare: Declare, name: str = "t-scarce", **options: Any) -> type[flows.Flow]:
    return declare(name, one=Activity(work, **options, then="done"), done=End(COMPLETE))


def running(flow: Any, worker: LocalWorker, **given: Any) -> Any:
    """A run whose attempt has passed, and holds what it needs."""
    started = flow.start(given)
    owned = take_one(worker)
    assert enter(owned) is factories.Progress.RUN
    gating.pass_gate(owned, Handed(owned, worker), [])
    return started, owned


def parked(flow: Any, worker: LocalWorker, **given: Any) -> Any:
    started = flow.start(given)
    worker.run()
    assert status(started)[:2] == ("waiting", "WAITING"), status(started)
    return started


def pumped(worker: LocalWorker) -> int:
    count = pump.run(USING)
    worker.run()
    return count


def triggers(run: Any) -> list[str]:
    return list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))


def held() -> int:
    return Slot.objects.filter(workflow_id__isnull=False).count()


def health(name: str = "payments") -> Row:
    return Row.objects.get(name=name)


def raises(**options: Any) -> Callable[[Any], Any]:
    def act(attempt: Any) -> Any:
        raise CapacityUnavailable(**options)

    return act


# ---------------------------------------------------------------- take, hold, free


def test_an_attempt_holds_a_slot_and_gives_it_back_with_its_end(worker: LocalWorker, paying: Any) -> None:
    run, owned = running(paying, worker)
    assert (held(), LimitRow.objects.get().label) == (1, "dependency:payments")
    assert factories.complete(owned) is factories.Progress.LEFT
    assert (status(run)[0], held()) == ("complete", 0)
    assert Slot.objects.exclude(took=None).count() == 1


def test_who_finds_no_slot_waits_beside_its_activity_and_burns_nothing(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    second = parked(flow, worker)
    wait = Wait.objects.get()
    assert (wait.kind, wait.key, wait.node, wait.reason) == ("resource", "limit:gpu", "one", "waiting for gpu: all 1 are in use")
    assert wait.deadline_at is not None and wait.deadline_at - wait.opened_at > hours(23)
    assert factories.called("one") == 0
    assert list(Attempt.objects.filter(workflow_id=second.id).values_list("outcome", "error_code")) == [
        ("returned", "CAPACITY_UNAVAILABLE")
    ]
    assert row(second).activities.get().failures == 0
    assert pumped(worker) == 0
    factories.complete(owned)
    assert pumped(worker) == 1
    assert status(second)[0] == "complete"
    assert triggers(second) == ["start", "claim", "parked", "readmit", "claim", "completed"]
    assert held() == 0
    assert not Timer.objects.filter(workflow_id=second.id).exists()


def test_who_comes_anew_goes_behind_those_who_wait(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    first = parked(flow, worker)
    factories.complete(owned)
    late = parked(flow, worker)
    assert Wait.objects.get(workflow_id=late.id).reason == "waiting behind others for gpu"
    assert pumped(worker) == 1
    assert (status(first)[0], status(late)[0]) == ("complete", "waiting")
    assert pumped(worker) == 1
    assert status(late)[0] == "complete"


def test_keys_are_counted_apart(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="tenants")
    running(flow, worker, tenant="a")
    other = flow.start({"tenant": "b"})
    worker.run()
    assert status(other)[0] == "complete"
    assert Wait.objects.count() == 0
    parked(flow, worker, tenant="a")
    assert Wait.objects.get().key == "limit:tenants:a"


def test_all_or_none(worker: LocalWorker, declare: Declare) -> None:
    _, owned = running(scarce(declare, limits="gpu"), worker)
    both = scarce(declare, "t-both", limits=["tenants", "gpu"])
    run = parked(both, worker, tenant="a")
    assert held() == 1, "what it had of the other limit is free"
    factories.complete(owned)
    assert pumped(worker) == 1
    assert status(run)[0] == "complete"


def test_a_rate_lets_so_many_begin_and_the_others_as_tokens_come(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = scarce(declare, limits="calls")
    runs = [flow.start({}) for _ in range(5)]
    worker.run()
    assert [status(run)[0] for run in runs].count("complete") == 2
    assert pumped(worker) == 0
    clock.move(seconds=100)
    assert pumped(worker) == 2
    assert held() == 0
    clock.move(seconds=20)
    assert pumped(worker) == 0
    clock.move(seconds=32)
    assert pumped(worker) == 1
    assert all(status(run)[0] == "complete" for run in runs)


def test_the_time_that_a_look_takes_costs_no_tokens(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """What came between the lock and the count is there at the next look."""
    scarce(declare, limits="calls").start({})
    worker.run()
    with transaction.atomic():
        limit = limits.lock(LimitRow.objects.get(name="limit:calls").pk, USING)
        assert limit is not None
        clock.move(seconds=7)
        limits.counted(limit, 0.0, USING)
    with transaction.atomic():
        again = limits.lock(limit.id, USING)
    assert again is not None
    assert 7 <= again.elapsed < 60


@pytest.mark.parametrize("end", ["cancel", "timeout", "lost"])
def test_whoever_ends_an_attempt_may_forget_what_it_held(worker: LocalWorker, declare: Declare, clock: Clock, end: str) -> None:
    flow = scarce(declare, limits="gpu", retry=Retry(initial=hours(9), maximum=hours(9)))
    run, _ = running(flow, worker)
    second = parked(flow, worker)
    if end == "cancel":
        flows.cancel(run)
    elif end == "timeout":
        clock.move(minutes=11)
        worker.tick()
    else:
        factories.lose(worker)
        flows.pause(run)
        worker = factories.another_worker()
    assert pumped(worker) == 1 or status(second)[0] == "complete"
    assert status(second)[0] == "complete"


def test_a_reservation_that_nobody_claims_is_free_again(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    first, second = parked(flow, worker), parked(flow, worker)
    factories.complete(owned)
    assert pump.run(USING) == 1
    flows.pause(first)
    assert pump.run(USING) == 1, "the paused one has no claim to it any more"
    worker.run()
    assert (status(first)[0], status(second)[0]) == ("paused", "complete")
    flows.resume(first)
    worker.run()
    assert status(first)[0] == "complete"


def test_the_urgent_go_first(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    calm, urgent = flow.start({}), flow.start({}, priority=5)
    worker.run()
    factories.complete(owned)
    assert pump.run(USING) == 1
    assert (status(calm)[0], status(urgent)[0]) == ("waiting", "runnable")


def test_a_limit_that_is_declared_larger_is_larger(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    running(flow, worker)
    declarations.DECLARED[:] = [one for one in declarations.DECLARED if one.name != "gpu"]
    Limit("gpu", concurrency=2)
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "complete"


def test_a_limit_that_nobody_declares_stops_at_a_person(worker: LocalWorker, declare: Declare) -> None:
    run = scarce(declare, limits="nothing").start({})
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "DEFINITION_ERROR")


# ---------------------------------------------------------------- patience


def test_when_its_patience_is_over_its_policy_decides(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = scarce(declare, limits="gpu", patience=Deadline(hours=2, then=CANCEL))
    running(flow, worker)
    run = parked(flow, worker)
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert status(run)[0] == "cancelled"


def test_patience_counts_from_the_beginning_however_often_it_waits(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = scarce(declare, needs="payments", patience=Deadline(hours=2, then="done"))
    does["one"] = raises()
    run = parked(flow, worker)
    first = Wait.objects.get().deadline_at
    clock.move(hours=1)
    worker.tick()
    worker.run()
    waits = list(Wait.objects.order_by("id"))
    assert len(waits) == 2
    assert abs(waits[1].deadline_at - first) < timedelta(seconds=5)
    clock.move(hours=1.1)
    worker.tick()
    worker.run()
    assert status(run) == ("complete", "COMPLETE", "done")


def test_who_is_to_be_told_is_told(worker: LocalWorker, declare: Declare, clock: Clock, django_user_model: Any) -> None:
    duty = django_user_model.objects.create_user("duty")
    duty.groups.add(Group.objects.create(name="duty officers"))
    patience = Deadline(hours=2, then=ESCALATE, escalate_to="duty officers")
    flow = scarce(declare, limits="gpu", patience=patience)
    running(flow, worker)
    run = parked(flow, worker)
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "WAIT_EXPIRED")
    assert Notice.objects.filter(workflow_id=run.id, user_id=duty.pk).exists()


def test_without_patience_a_person_is_asked_at_once(worker: LocalWorker, declare: Declare) -> None:
    does["one"] = raises()
    run = scarce(declare, patience=None).start({})
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "CAPACITY_UNAVAILABLE")


# ---------------------------------------------------------------- capacity errors


def test_a_capacity_error_without_a_route_waits_for_the_node(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    does["one"] = raises()
    run = parked(scarce(declare), worker)
    wait = Wait.objects.get()
    assert (wait.kind, wait.key) == ("dependency_health", "dependency:node:t-scarce.one")
    assert health("node:t-scarce.one").status == DependencyStatus.DOWN
    assert row(run).activities.get().failures == 0
    clock.move(seconds=31)
    worker.tick()
    worker.run()
    assert factories.called("one") == 2
    assert status(run)[0] == "waiting", "it failed on trial, too"
    does.clear()
    clock.move(seconds=61)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    worker.tick()
    assert health("node:t-scarce.one").status == DependencyStatus.RECOVERING


def test_the_provider_says_when(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    does["one"] = raises(retry_after=7)
    run = parked(scarce(declare), worker)
    does.clear()
    clock.move(seconds=6)
    worker.tick()
    worker.run()
    assert status(run)[0] == "waiting"
    clock.move(seconds=2)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


def test_routes_and_retries_go_first(worker: LocalWorker, declare: Declare) -> None:
    does["one"] = raises()
    routed = scarce(declare, "t-routed", on={CapacityUnavailable: "done"}).start({})
    retried = scarce(declare, "t-retried", retry=Retry(retry_on=(CapacityUnavailable,))).start({})
    worker.run()
    assert status(routed)[0] == "complete"
    assert Wait.objects.get(workflow_id=retried.id).kind == "retry_window"


def test_one_error_names_another_dependency(worker: LocalWorker, declare: Declare) -> None:
    does["one"] = raises(dependency="asked")
    parked(scarce(declare, needs="payments"), worker)
    assert Wait.objects.get().key == "dependency:asked"
    assert health("asked").status == DependencyStatus.DOWN
    assert health("payments").status == DependencyStatus.HEALTHY


def test_what_it_had_set_aside_and_not_said_is_not_used(worker: LocalWorker, declare: Declare) -> None:
    def act(attempt: Any) -> Any:
        attempt.spend(model_tokens=3)
        raise CapacityUnavailable

    does["one"] = act
    flow = declare(
        "t-spending-scarce",
        meta={"budget": Budget(model_tokens=100, tool_calls=9)},
        one=Activity(work, needs="payments", spends=Spend(model_tokens=10, tool_calls=4), then="done"),
        done=End(COMPLETE),
    )
    run = parked(flow, worker)
    assert amounts(run, "model_tokens") == (3, 0)
    assert amounts(run, "tool_calls") == (0, 0)
    assert held() == 0


# ---------------------------------------------------------------- down, trial, recovery


def gone(worker: LocalWorker, paying: Any, count: int) -> list[Any]:
    """So many runs that wait for payments, which is down."""
    does["pay"] = raises()
    runs = [paying.start({}, priority=number) for number in range(count)]
    worker.run()
    does.clear()
    assert health().status == DependencyStatus.DOWN
    assert all(status(run)[:2] == ("waiting", "WAITING") for run in runs)
    return runs


def test_while_it_is_down_nobody_begins(worker: LocalWorker, paying: Any) -> None:
    gone(worker, paying, 3)
    assert factories.called("pay") == 1, "the others were not even begun"
    late = paying.start({})
    worker.run()
    assert "which is down" in Wait.objects.get(workflow_id=late.id).reason
    assert pumped(worker) == 0


@pytest.mark.failure("dependency recovers with a backlog")
def test_one_is_tried_and_then_more_and_more(worker: LocalWorker, paying: Any, clock: Clock) -> None:
    runs = gone(worker, paying, 60)
    clock.move(seconds=31)
    assert pump.run(USING) == 1
    trial = health()
    assert (trial.status, trial.trial_workflow) == (DependencyStatus.TRIAL, runs[-1].id)
    assert pump.run(USING) == 0, "the others wait for how it ends"
    worker.run()
    assert status(runs[-1])[0] == "complete"
    counts = []
    for _ in range(40):
        counts.append(pumped(worker))
        clock.move(seconds=0.1)
    assert sum(counts) == 59
    assert max(counts) <= 2, "the ceiling"
    assert all(status(run)[0] == "complete" for run in runs)
    clock.move(seconds=10)
    pump.run(USING)
    assert health().status == DependencyStatus.HEALTHY


def test_the_one_on_trial_fails(worker: LocalWorker, paying: Any, clock: Clock) -> None:
    gone(worker, paying, 3)
    does["pay"] = raises()
    clock.move(seconds=31)
    assert pumped(worker) == 1
    found = health()
    assert (found.status, found.delay) == (DependencyStatus.DOWN, 60)
    assert pumped(worker) == 0


@pytest.mark.parametrize("end", ["cancelled", "failed otherwise", "done already"])
def test_a_trial_that_says_nothing_is_followed_by_another(worker: LocalWorker, paying: Any, clock: Clock, end: str) -> None:
    runs = gone(worker, paying, 3)
    clock.move(seconds=31)
    assert pump.run(USING) == 1
    if end == "cancelled":
        flows.cancel(runs[-1])
    elif end == "failed otherwise":
        does["pay"] = factories.failing(1, Transient)
        worker.run()
    else:
        worker.run()
    assert pump.run(USING) == (0 if end == "done already" else 1) or end == "done already"
    expected = DependencyStatus.RECOVERING if end == "done already" else DependencyStatus.TRIAL
    assert health().status == expected


def test_a_failure_in_the_middle_stops_it(worker: LocalWorker, paying: Any, clock: Clock) -> None:
    gone(worker, paying, 20)
    clock.move(seconds=31)
    pumped(worker)
    clock.move(seconds=1)
    assert pump.run(USING) == 2
    does["pay"] = raises()
    worker.run()
    assert health().status == DependencyStatus.DOWN
    assert factories.called("pay") == 3, "the second one that was let in was parked again before it began"
    clock.move(seconds=5)
    assert pumped(worker) == 0


def test_a_probe_is_asked_by_the_cleanup_worker(worker: LocalWorker, declare: Declare, clock: Clock, hints: Counting) -> None:
    flow = scarce(declare, needs="asked")
    does["one"] = raises()
    run = parked(flow, worker)
    does.clear()
    GOOD["well"] = False
    clock.move(seconds=31)
    pump.run(USING)
    assert hints.services == 1
    worker.run()
    assert (asked, health("asked").status) == (["payments"], DependencyStatus.DOWN)
    GOOD["well"] = True
    clock.move(seconds=61)
    worker.run()
    assert (len(asked), health("asked").status) == (2, DependencyStatus.TRIAL)
    pumped(worker)
    assert status(run)[0] == "complete"


def test_a_probe_that_raises_or_is_overtaken_by_a_person(worker: LocalWorker, declare: Declare, clock: Clock, boss: Any) -> None:
    def meddled() -> bool:
        dependencies.down("asked", reason="maintenance", by=boss)
        return True

    declarations.DECLARED[:] = [one for one in declarations.DECLARED if one.name != "asked"]
    Dependency("asked", probe=meddled, fails=1)
    dependencies.report("asked", ok=False)
    clock.move(seconds=31)
    worker.run()
    assert (health("asked").status, health("asked").probe_at) == (DependencyStatus.DOWN, None), "the person's word stands"


# ---------------------------------------------------------------- people and code


@pytest.fixture
def boss(django_user_model: Any, transactional_db: None) -> Any:
    user = django_user_model.objects.create_user("boss")
    user.user_permissions.add(Permission.objects.get(codename="operate_dependency"))
    return django_user_model.objects.get(pk=user.pk)


def test_people_say_that_it_is_down_and_back(worker: LocalWorker, paying: Any, boss: Any, clock: Clock) -> None:
    assert dependencies.down("payments", reason="maintenance", by=boss) == "down"
    run = parked(paying, worker)
    clock.move(hours=1)
    assert pumped(worker) == 0, "nothing looks whether it is back"
    shown = dependencies.show("payments")
    assert (shown.status, shown.by, shown.reason, shown.waiting) == ("down", "boss", "maintenance", 1)
    assert dependencies.up("payments", reason="done", by=boss) == "recovering"
    clock.move(seconds=1)
    pumped(worker)
    assert status(run)[0] == "complete"


def test_a_person_sets_rate_and_ceiling(worker: LocalWorker, paying: Any, boss: Any) -> None:
    dependencies.set_rate("payments", rate=5, ceiling=1, reason="they asked for it", by=boss)
    running(paying, worker)
    parked(paying, worker)
    shown = dependencies.show("payments")
    assert (shown.rate, shown.ceiling, shown.in_use, shown.waiting) == (5, 1, 1, 1)
    assert shown.drain_seconds == pytest.approx(0.2)
    dependencies.set_rate("payments", reason="as before", by=boss)
    assert (dependencies.show("payments").ceiling, pumped(worker)) == (2, 1)


def test_who_may_and_who_may_not(boss: Any, django_user_model: Any) -> None:
    other = django_user_model.objects.create_user("other")
    with pytest.raises(NotPermitted):
        dependencies.down("payments", reason="x", by=other)
    with pytest.raises(ReasonMissing):
        dependencies.up("payments", reason=" ", by=boss)
    with pytest.raises(UnknownDependency, match=r"known: .*payments"):
        dependencies.down("nothing", reason="x", by=boss)
    with pytest.raises(UsageError, match="give a positive number"):
        dependencies.set_rate("payments", rate=0, reason="x", by=boss)
    assert {"asked", "payments"} <= {one.name for one in dependencies.show()}  # others declare theirs


def test_code_reports(transactional_db: None, clock: Clock) -> None:
    assert dependencies.report("payments", ok=False, code="POOL_EMPTY") == "down"
    assert dependencies.show("payments").code == "POOL_EMPTY"
    assert dependencies.report("payments", ok=True) == "trial"


# ---------------------------------------------------------------- the clock's part


def test_a_tick_pumps(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    run = parked(flow, worker)
    factories.complete(owned)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


def test_a_freed_slot_has_the_waiters_looked_at_once(worker: LocalWorker, declare: Declare, hints: Counting) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    run = parked(flow, worker)
    assert hints.watched == ["pump"], "with the wait"
    LimitRow.objects.update(look_at=timezone.now() + timedelta(seconds=4))
    factories.complete(owned)
    assert hints.watched == ["pump"], "that one has not come yet"
    LimitRow.objects.update(look_at=None)
    assert pump.run(USING) == 1
    worker.run()
    assert status(run)[0] == "complete"


def test_a_cancel_and_the_end_of_a_flow_withdraw_the_wait(worker: LocalWorker, paying: Any) -> None:
    runs = gone(worker, paying, 2)
    flows.cancel(runs[0])
    assert Wait.objects.get(workflow_id=runs[0].id).status == "withdrawn"
    assert pumped(worker) == 0


def test_a_pause_and_a_resume_pass_through_the_gate(worker: LocalWorker, declare: Declare) -> None:
    flow = scarce(declare, limits="gpu")
    _, owned = running(flow, worker)
    run = parked(flow, worker)
    flows.pause(run)
    flows.resume(run)
    worker.run()
    assert status(run)[:2] == ("waiting", "WAITING"), "it is still behind"
    factories.complete(owned)
    assert pumped(worker) == 1
    assert status(run)[0] == "complete"


def test_the_move_of_a_capacity_error_names_its_dependency() -> None:
    made = node(Activity(work, then="next", patience=Deadline(minutes=5, then="next"))).failed(
        state(activity=activity()), classify(CapacityUnavailable(dependency="x", retry_after=3))
    )
    assert isinstance(made, Park)
    assert (made.keys, made.deadline, made.on_expiry) == (("dependency:x",), minutes(5), "node:next")
    assert made.detail == {"failed": "CAPACITY_UNAVAILABLE", "dependency": "x", "retry_after": 3}
