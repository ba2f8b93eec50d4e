"""The gate at every wake-up: one case for each verdict and each cause, and what is recorded of it (H1, H2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import flows
from flows import policies
from flows.models import Observation, Transition, Verdict
from flows.testing import Clock, LocalWorker, local_worker
from tests import factories
from tests.support import waking
from tests.support.waking import BREAKS, CAUSES, Woken

pytestmark = pytest.mark.req("H1", "H2", "C4")

#: These breaks edit the record under the run, which a replay of it finds.
STRAYS = {
    f"test_what_changed_meanwhile_is_refused_after_every_wake_up[{cause}-{verdict}]"
    for cause in CAUSES
    for verdict in ("WORKFLOW_MIGRATION_REQUIRED", "CANDIDATE_INVALID", "APPROVAL_REQUIRED")
}

Bring = Callable[[str], Woken]


@pytest.fixture
def bring(clock: Clock, settings: Any) -> Iterator[Bring]:
    """A run at the edge of its last step, by the cause that is to wake it."""
    settings.OUTLAST = {**settings.OUTLAST, "PLACEMENT": "tests.support.waking.placement"}
    waking.outside.clear()
    waking.acted.clear()
    with local_worker(placements=["eu"]) as worker:

        def made(cause: str) -> Woken:
            woken = Woken(worker, clock, cause, waking.make_user())
            woken.bring()
            assert waking.acted == []
            return woken

        yield made


@pytest.mark.parametrize("cause", CAUSES)
def test_what_is_sound_passes_after_every_wake_up(bring: Bring, cause: str) -> None:
    woken = bring(cause)
    woken.arrive()
    woken.wake()
    assert factories.status(woken.run) == ("complete", "COMPLETE", "done")
    assert waking.acted == ["act"]
    (last,) = [row for row in woken.verdicts() if row[0] == "act" and row[2] == "ALLOWED"]
    assert last[1] == cause
    assert factories.row(woken.run).result["versions"] == {"main": "v1"}


@pytest.mark.parametrize("verdict", BREAKS)
@pytest.mark.parametrize("cause", CAUSES)
def test_what_changed_meanwhile_is_refused_after_every_wake_up(bring: Bring, cause: str, verdict: str) -> None:
    """The table of bar 1: whatever woke it, the code is not run, and the verdict says why."""
    woken = bring(cause)
    change, status, outcome = BREAKS[verdict]
    woken.arrive()
    change(woken)
    woken.wake()
    assert waking.acted == []
    assert factories.status(woken.run)[:2] == (status, outcome)
    last = Verdict.objects.filter(workflow_id=woken.run.id).latest("id")
    assert (last.cause, last.verdict) == (cause, verdict)
    assert last.reason
    note = Transition.objects.filter(workflow_id=woken.run.id, note__has_key="verdict").latest("seq").note
    assert (note["verdict"], note["reason"]) == (verdict, last.reason)


def test_an_event_that_met_a_refusal_is_not_lost(bring: Bring) -> None:
    """The policy stops the run at the wake-up; when a person has adopted it, the event that woke it is decided on."""
    woken = bring("event")
    policies.publish("t-policy", {"limit": 0})
    woken.wake()
    assert factories.row(woken.run).outcome == "POLICY_BLOCKED"
    assert policies.adopt(woken.run, reason="looked at")
    woken.worker.run()
    assert factories.status(woken.run) == ("complete", "COMPLETE", "done")
    assert factories.row(woken.run).policy_version == "t-policy@2"


def test_a_policy_that_is_adopted_on_the_way_is_not_what_woke_the_run(bring: Bring) -> None:
    """The event made it ready; before a worker takes it, a person binds it to the newest version."""
    woken = bring("event")
    policies.publish("t-policy", {"limit": 0})
    flows.signal("woken", "t.woken", key=woken.run.key)
    assert policies.adopt(woken.run, reason="looked at")
    woken.worker.run()
    assert factories.row(woken.run).status == "complete"
    assert woken.verdicts()[-1] == ("act", "event", "ALLOWED")


def test_a_refusal_after_which_all_is_sound_again_goes_on_by_resume(bring: Bring) -> None:
    woken = bring("timer")
    waking.outside["placement"] = "not now"
    woken.wake()
    assert factories.row(woken.run).outcome == "POLICY_BLOCKED"
    waking.outside.clear()
    assert flows.resume(woken.run, by=woken.user, reason="moved")
    woken.worker.run()
    assert factories.row(woken.run).status == "complete"
    assert waking.acted == ["act"]


def test_a_refused_node_has_not_used_the_approval_up(bring: Bring) -> None:
    """It was entered, and refused before its code: the approval is as live as before."""
    woken = bring("event")
    waking.outside["placement"] = "not now"
    woken.wake()
    assert waking.Request.objects.filter(workflow_id=woken.run.id).values_list("status", flat=True).get() == "approved"
    waking.outside.clear()
    flows.resume(woken.run)
    woken.worker.run()
    request = waking.Request.objects.get(workflow_id=woken.run.id)
    assert (request.status, factories.row(woken.run).status) == ("consumed", "complete")


def test_checks_whose_facts_are_as_before_are_not_run_again(bring: Bring, monkeypatch: Any) -> None:
    """The code fails after the first pass; the second asks again only what has changed, and says so."""
    woken = bring("event")
    monkeypatch.setattr(waking, "acted", Failing(1))
    woken.wake()
    woken.clock.move(seconds=30)
    woken.worker.tick()
    woken.worker.run()
    first, second = Verdict.objects.filter(workflow_id=woken.run.id, node="act").order_by("id")
    assert {answer for _, answer, _ in first.checks} == {"holds"}
    assert (first.cause, second.cause) == ("event", "retry")
    answers = {name: answer for name, answer, _ in second.checks}
    assert answers["verification"] == answers["authority"] == answers["fresh"] == "unchanged"
    assert answers["approval"] == "holds"  # it has been used up meanwhile, by this very node


class Failing(list):  # type: ignore[type-arg]
    """Fails so many times at `append`."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def append(self, value: Any) -> None:
        if self.left:
            self.left -= 1
            raise waking.Transient("once")
        super().append(value)


def test_a_probe_whose_look_is_young_enough_is_not_called_again(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    """`Fresh(reuse=…)`: the second attempt stands on the first one's look; after that time it is made anew."""
    looked: list[str] = []

    def probe(attempt: Any) -> str:
        looked.append(attempt.node)
        return "v1"

    factories.does["act"] = factories.failing(2)
    flow = declare(
        "t-reuse",
        propose=flows.Decision(waking.propose, choices={"go": "act"}),
        act=flows.Activity(
            factories.work,
            retry=factories.SLOWLY,
            gate=flows.Gate(fresh={"main": flows.Fresh(probe, reuse=timedelta(seconds=15))}),
            then="done",
        ),
        done=flows.End(flows.COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert looked == ["propose"]  # the baseline is young enough for the first attempt
    clock.move(seconds=11)
    worker.tick()
    worker.run()
    assert looked == ["propose"]
    clock.move(seconds=21)
    worker.tick()
    worker.run()
    assert looked == ["propose", "act"]
    assert factories.row(run).status == "complete"
    assert list(Observation.objects.order_by("id").values_list("node", "baseline")) == [("propose", True), ("act", False)]


@pytest.mark.req("H4", "B5")
def test_only_what_is_affected_is_redone(worker: LocalWorker, declare: Any) -> None:
    """Main moves after the check: the check alone is made again, on what is there now, and the same candidate is carried out."""
    seen = {"main": "v1"}

    def act(attempt: Any) -> Any:
        return dict(attempt.versions)

    def check(attempt: Any) -> Any:
        factories.calls.append(("check", attempt.visit, attempt.number))
        found = dict(attempt.versions)
        seen["main"] = "v2"  # somebody pushes just after the check
        return found

    flow = declare(
        "t-affected",
        propose=flows.Decision(waking.propose, choices={"go": "check"}),
        check=flows.Activity(check, verifies="propose", visits=flows.Visits(3, then="no"), then="act"),
        act=flows.Activity(
            act,
            gate=flows.Gate(verified_by="check", fresh={"main": lambda attempt: seen["main"]}),
            on={flows.Verdict.REVALIDATION_REQUIRED: "check"},
            then="done",
        ),
        done=flows.End(flows.COMPLETE, result=lambda state: state.results["act"]),
        no=flows.End(flows.FAILED),
    )
    run = flow.start({})
    worker.run()
    row = factories.row(run)
    assert (row.status, row.result) == ("complete", {"main": "v2"})
    assert factories.called("check") == 2
    assert list(Observation.objects.filter(baseline=True).order_by("id").values_list("node", "version")) == [
        ("propose", "v1"),
        ("check", "v1"),
        ("check", "v2"),
    ]
    assert list(row.verifications.order_by("id").values_list("passed", "state_versions")) == [
        (True, {"main": "v1"}),
        (True, {"main": "v2"}),
    ]
