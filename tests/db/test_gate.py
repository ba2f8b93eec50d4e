"""The gate at every wake-up: one case for each verdict and each cause, and what is recorded of it (H1, H2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

import flows
from flows import policies
from flows.core.errors import VerificationFailed
from flows.core.misuse import CannotResumeAt
from flows.models import BudgetEntry, Observation, Transition, Verdict, Workflow
from flows.services import attempting as attempt_module
from flows.services import describe
from flows.services.resuming import CheckpointConflict
from flows.testing import Clock, LocalWorker, local_worker
from tests import factories
from tests.support import waking
from tests.support.waking import BREAKS, CAUSES, Woken

pytestmark = pytest.mark.req("H1", "H2", "C4")

#: These breaks edit the record under the run, which a replay of it finds.
STRAYS = (
    {"test_what_no_resume_mends_is_mended_at_the_node_that_made_it[CANDIDATE_INVALID-propose]"}
    | {
        f"test_what_changed_meanwhile_is_refused_after_every_wake_up[{cause}-{verdict}]"
        for cause in CAUSES
        for verdict in ("WORKFLOW_MIGRATION_REQUIRED", "CANDIDATE_INVALID", "APPROVAL_REQUIRED")
    }
    | {
        "test_what_changed_meanwhile_is_refused_after_every_wake_up[resume-VERIFICATION_REQUIRED]"
    }  # one of before the pass is invented
    | {
        f"test_each_verdict_leads_to_the_node_that_is_declared_for_it[{cause}-{verdict}]"
        for cause in ("event", "recovery")
        for verdict in ("WORKFLOW_MIGRATION_REQUIRED", "CANDIDATE_INVALID", "APPROVAL_REQUIRED")
    }
)

#: Asked of the step, and not already where the run stands.
LOOKED = set(waking.ROUTED) - {"POLICY_BLOCKED", "WORKFLOW_MIGRATION_REQUIRED", "RELEASE_INCOMPATIBLE"}

#: They hold for whatever comes next, too.
LASTING = {"POLICY_BLOCKED", "WORKFLOW_MIGRATION_REQUIRED"}

Bring = Callable[..., Woken]


@pytest.fixture
def bring(clock: Clock, settings: Any) -> Iterator[Bring]:
    """A run at the edge of its last step, by the cause that is to wake it."""
    settings.OUTLAST = {**settings.OUTLAST, "PLACEMENT": "tests.support.waking.placement"}
    waking.outside.clear()
    waking.acted.clear()
    with local_worker(placements=["eu"]) as worker:

        def made(cause: str, flow: type[flows.Flow] = waking.Waking) -> Woken:
            woken = Woken(worker, clock, cause, waking.make_user(), flow)
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


@pytest.mark.parametrize("verdict", waking.ROUTED)
@pytest.mark.parametrize("cause", ["event", "recovery"])
def test_each_verdict_leads_to_the_node_that_is_declared_for_it(bring: Bring, cause: str, verdict: str) -> None:
    """The gate of the step says where the run goes; what concerns the whole run is refused where it stands, and there as long as it is so."""
    woken = bring(cause, waking.Routed)
    fingerprint = factories.row(woken.run).fingerprint
    BREAKS[verdict][0](woken)
    woken.wake()
    assert waking.acted == []
    if verdict in LASTING:
        assert factories.status(woken.run) == ("waiting", verdict, "instead")
        Workflow.objects.filter(pk=woken.run.id).update(fingerprint=fingerprint)
        assert policies.adopt(woken.run, reason="read") or flows.resume(woken.run)
        woken.worker.run()
    assert factories.status(woken.run)[0] == "complete"
    assert factories.called("instead") == 1
    assert ("act" if cause == "recovery" or verdict in LOOKED else "wait", cause, verdict) in woken.verdicts()


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


# ------------------------------------------------------------------ what counts as looked at, for which gate


@pytest.mark.req("H1", "H4", "B5")
def test_what_another_node_decides_renews_nothing_here(worker: LocalWorker, declare: Any) -> None:
    """Proposed and tested on v1; then main moves, and something else is decided on v2. What was tested on v1 is not carried out on v2."""
    seen = {"main": "v1"}

    def other(attempt: Any) -> flows.Candidate:
        return flows.Candidate("go", {"of": attempt.versions["main"]})

    def move(attempt: Any) -> None:
        seen["main"] = "v2"

    flow = declare(
        "t-elsewhere",
        propose=flows.Decision(waking.propose, choices={"go": "check"}),
        check=flows.Activity(factories.work, verifies="propose", visits=flows.Visits(3, then="no"), then="move"),
        move=flows.Activity(move, then="other"),
        other=flows.Decision(other, choices={"go": "act"}),
        act=flows.Activity(
            lambda attempt: dict(attempt.versions),
            gate=flows.Gate(verified_by="check", fresh={"main": lambda attempt: seen["main"]}),
            then="done",
        ),
        done=flows.End(flows.COMPLETE, result=lambda state: state.results["act"]),
        no=flows.End(flows.FAILED),
    )
    run = flow.start({})
    worker.run()
    assert factories.status(run) == ("waiting", "REVALIDATION_REQUIRED", "act")
    last = Verdict.objects.filter(workflow_id=run.id).latest("id")
    assert last.reason == "main was at v1, and is at v2"
    # The way on that the run names: what its gate stands on is done anew, and nothing else.
    assert "--at NODE" in flows_show(run)
    assert flows.resume(run, at="check", reason="main moved")
    worker.run()
    assert (factories.row(run).status, factories.row(run).result) == ("complete", {"main": "v2"})
    assert (factories.called("check"), factories.called("propose")) == (2, 0)


def flows_show(run: Any) -> str:
    return str(describe.describe(run.id, using="default"))


@pytest.mark.req("H4")
def test_a_verification_of_another_state_is_none(worker: LocalWorker, declare: Any) -> None:
    """Main moves after the test and is looked at again by a node that tests nothing: the test was of v1, what is stood on is v2."""
    seen = {"main": "v1"}

    def again(attempt: Any) -> None:
        seen["main"] = "v3" if attempt.visit > 1 else "v2"

    flow = declare(
        "t-looked-again",
        propose=flows.Decision(waking.propose, choices={"go": "check"}),
        check=flows.Activity(factories.work, verifies="propose", then="move"),
        move=flows.Activity(again, then="act"),
        look=flows.Activity(factories.work, visits=flows.Visits(2, then="no"), then="act"),
        act=flows.Activity(
            lambda attempt: dict(attempt.versions),
            gate=flows.Gate(verified_by="check", fresh={"main": lambda attempt: seen["main"]}),
            on={flows.Verdict.REVALIDATION_REQUIRED: "look"},
            then="done",
        ),
        done=flows.End(flows.COMPLETE, result=lambda state: state.results["act"]),
        no=flows.End(flows.FAILED),
    )
    run = flow.start({})
    worker.run()
    assert factories.status(run) == ("waiting", "HUMAN_REQUIRED", "act")
    assert Verdict.objects.filter(workflow_id=run.id).latest("id").reason == (
        "check saw main at v1; since then it was looked at at v2"
    )
    assert flows.resume(run, at="check", reason="test it on v2")
    worker.run()
    # `check` looks at v2 itself and leads to `move`, which moves main once more: looked at again, and tested on v2 only.
    assert factories.row(run).error_code == "VERIFICATION_REQUIRED"


# ------------------------------------------------------------------ a person has a run go on elsewhere


def test_a_run_goes_on_only_at_what_its_gate_stands_on(bring: Bring) -> None:
    woken = bring("event")
    with pytest.raises(CannotResumeAt, match=r"cannot go on at 'check': it is waiting: only a run that is suspended"):
        flows.resume(woken.run, at="check")
    waking.outside["main"] = "v2"
    woken.wake()
    assert factories.row(woken.run).outcome == "REVALIDATION_REQUIRED"
    for node in ("hold", "way", "nowhere", "act", ""):
        with pytest.raises(CannotResumeAt, match=r"it stopped at act, which stands on check, propose\. Resume it without"):
            flows.resume(woken.run, at=node)
    assert factories.status(woken.run)[0] == "waiting"
    assert flows.resume(woken.run, at="propose", by=woken.user, reason="main moved")
    assert factories.status(woken.run) == ("runnable", "", "propose")
    log = Transition.objects.filter(workflow_id=woken.run.id).latest("seq")
    assert (log.trigger, log.from_node, log.to_node) == ("resume", "act", "propose")
    woken.worker.run()
    assert factories.status(woken.run) == ("waiting", "WAITING", "ask")  # decided, tested and asked about anew
    woken.answer("ask")
    woken.worker.run()
    flows.signal("woken again", "t.woken", key=woken.run.key)
    woken.worker.run()
    assert factories.row(woken.run).status == "complete"


@pytest.mark.parametrize(("verdict", "node"), [("VERIFICATION_REQUIRED", "check"), ("CANDIDATE_INVALID", "propose")])
def test_what_no_resume_mends_is_mended_at_the_node_that_made_it(bring: Bring, verdict: str, node: str) -> None:
    woken = bring("recovery")
    BREAKS[verdict][0](woken)
    woken.wake()
    assert factories.row(woken.run).error_code == verdict
    flows.resume(woken.run)
    woken.worker.run()
    assert factories.row(woken.run).error_code == verdict
    assert flows.resume(woken.run, at=node)
    woken.worker.run()
    assert factories.status(woken.run) == ("waiting", "WAITING", "ask")


@pytest.mark.req("A5", "N1")
def test_a_checkpoint_that_names_what_is_gone_uses_nothing_up(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at before the pass: no code ran, so the approval is live and the budget whole."""
    woken = bring("event")

    def gone(owned: Any, attempt: Any, node: Any) -> None:
        raise CheckpointConflict("the branch is gone")

    monkeypatch.setattr(attempt_module, "conflict_of", gone)
    woken.wake()
    assert factories.row(woken.run).status == "waiting"
    assert waking.Request.objects.get(workflow_id=woken.run.id).status == "approved"
    assert not woken_entries(woken)


def woken_entries(woken: Woken) -> list[str]:
    return list(BudgetEntry.objects.filter(workflow_id=woken.run.id, node="act").values_list("entry", flat=True))


@pytest.mark.req("C1", "F1")
def test_what_a_question_stands_on_is_kept_with_it(bring: Bring) -> None:
    """The versions that the candidate was decided and verified on; the wait after it says what it stood on, too."""
    woken = bring("event")
    request = waking.Request.objects.get(workflow_id=woken.run.id)
    assert request.state_versions == {"main": "v1"}
    waits = factories.row(woken.run).waits.order_by("id")
    assert list(waits.values_list("node", "state_versions")) == [("ask", {"main": "v1"}), ("wait", {"main": "v1"})]


@pytest.mark.req("F1", "F7")
def test_the_reviewer_is_shown_what_it_stands_on_as_data(bring: Bring, client: Client) -> None:
    waking.outside["main"] = "<b>v1"
    woken = bring("approval")
    request = waking.Request.objects.get(workflow_id=woken.run.id, node="again")
    client.force_login(woken.user)
    shown = client.get(reverse("admin:outlast_approvals_request_decide", args=[request.pk])).content.decode()
    assert "Decided and verified on" in shown
    assert "&lt;b&gt;v1" in shown
    assert "<b>v1" not in shown


@pytest.mark.req("H4")
def test_a_verifier_stands_on_what_it_verifies(worker: LocalWorker, declare: Any) -> None:
    """It failed, and nothing says where that leads: a person has the candidate decided anew."""
    factories.does["check"] = factories.failing(1, VerificationFailed)
    flow = declare(
        "t-failing-check",
        propose=flows.Decision(waking.propose, choices={"go": "check"}),
        check=flows.Activity(factories.work, verifies="propose", then="done"),
        done=flows.End(flows.COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).error_code == "VERIFICATION_FAILED"
    assert flows.resume(run, at="propose", reason="another one")
    worker.run()
    assert factories.row(run).status == "complete"
    assert list(factories.row(run).activities.order_by("seq").values_list("node", "status")) == [
        ("propose", "done"),
        ("check", "fenced"),
        ("propose", "done"),
        ("check", "done"),
    ]
