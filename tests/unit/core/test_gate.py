"""The gate: refuses for recorded facts, in a fixed order, and allows only what was approved exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flows.core import canonical, gate
from flows.core.definition import Definition
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Decision, End, Pipeline, Step
from flows.core.policies import ESCALATE, Deadline
from flows.core.protocol import Outcome
from flows.core.requirements import Gate
from flows.core.state import ApprovalFact, Look, Seen, VerificationFact
from flows.core.verdicts import Verdict, suspension_of
from tests.support.flow_values import NOW, activity, approval, declare, facts, state, work

pytestmark = pytest.mark.req("H1")


def sample() -> Definition:
    return declare(
        propose=Decision(work, choices={"patch": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="merge", denied="no", expires=Deadline(hours=1, then=ESCALATE)),
        merge=Activity(work, gate=Gate(approved_by="ask"), then="done"),
        done=End(COMPLETE),
        no=End(FAILED),
    )


def artifact(value: Any = 1) -> dict[str, Any]:
    body = {"choice": "patch", "value": value}
    return {**body, "evidence": None, "digest": canonical.digest(body), "revision": 1}


DIGEST = artifact()["digest"]


def verdict(fact: ApprovalFact | None, candidate: Any = None, **values: Any) -> Verdict | None:
    flow = sample()
    at = state("merge", results={"propose": candidate or artifact()}, **values)
    refusal = gate.check(flow, flow.nodes["merge"], at, facts(flow, approvals={"ask": fact}))
    return refusal.verdict if refusal else None


def test_a_live_approval_of_exactly_this_candidate_is_allowed() -> None:
    assert verdict(approval(DIGEST)) is None


@pytest.mark.req("F2")
@pytest.mark.parametrize(
    "fact",
    [
        None,
        approval(DIGEST, "pending"),
        approval(DIGEST, "denied"),
        approval(DIGEST, "expired"),
        approval(DIGEST, "invalidated"),
        approval("sha256:other"),
        approval(DIGEST, intent_version=2),
        approval(DIGEST, expired=True),
        approval(DIGEST, "consumed", used_by=3),
        approval(DIGEST, "consumed"),
    ],
)
def test_anything_less_needs_an_approval(fact: ApprovalFact | None) -> None:
    assert verdict(fact) is Verdict.APPROVAL_REQUIRED


def test_the_activity_that_used_an_approval_up_keeps_it_even_after_its_time() -> None:
    for fact in (approval(DIGEST, "consumed", used_by=3), approval(DIGEST, "consumed", used_by=3, expired=True)):
        assert verdict(fact, activity=activity("merge", seq=3)) is None
        assert verdict(fact, activity=activity("merge", seq=4)) is Verdict.APPROVAL_REQUIRED


def test_another_candidate_needs_another_approval_even_for_the_activity_that_used_this_one_up() -> None:
    fact = approval(DIGEST, "consumed", used_by=3)
    assert verdict(fact, artifact(2), activity=activity("merge", seq=3)) is Verdict.APPROVAL_REQUIRED


def test_a_candidate_that_was_changed_under_its_digest_is_invalid() -> None:
    assert verdict(approval(DIGEST), {**artifact(), "value": 2}) is Verdict.CANDIDATE_INVALID


@pytest.mark.req("F3")
@pytest.mark.parametrize("written", [{**artifact(), "value": 2}, {**artifact(), "choice": 7}, {"choice": "x"}, {}])
def test_the_copy_that_the_request_keeps_is_what_is_executed_so_it_has_to_be_the_same(written: dict[str, Any]) -> None:
    assert verdict(approval(DIGEST, candidate=artifact())) is None
    assert verdict(approval(DIGEST, candidate=written)) is Verdict.CANDIDATE_INVALID
    assert verdict(approval("sha256:other", candidate=written)) is Verdict.APPROVAL_REQUIRED, "it is another one anyway"


def test_without_a_candidate_nothing_can_be_executed() -> None:
    flow = sample()
    refusal = gate.check(flow, flow.nodes["merge"], state("merge"), facts(flow, approvals={"ask": approval(DIGEST)}))
    assert refusal is not None
    assert refusal.verdict is Verdict.CANDIDATE_INVALID
    assert refusal.reason == "propose has produced no candidate"


@pytest.mark.parametrize(("version", "status"), [(2, "active"), (1, "superseded"), (1, "cancelled")])
def test_a_goal_that_is_gone_is_refused_first(version: int, status: str) -> None:
    flow = sample()
    seen = facts(flow, intent_version=version, intent_status=status, fingerprint="other")
    refusal = gate.check(flow, flow.nodes["merge"], state("merge"), seen)
    assert refusal is not None
    assert refusal.verdict is Verdict.INTENT_SUPERSEDED


@pytest.mark.req("G2")
def test_a_definition_of_another_shape_asks_for_a_migration() -> None:
    flow = sample()
    refusal = gate.check(flow, None, state("merge"), facts(flow, fingerprint="0123"))
    assert refusal is not None
    assert refusal.verdict is Verdict.WORKFLOW_MIGRATION_REQUIRED
    assert refusal.reason == f"started with fingerprint 0123, version 1 is now {flow.fingerprint}"


@pytest.mark.req("G2")
def test_a_node_that_is_gone_asks_for_a_migration() -> None:
    flow = sample()
    refusal = gate.check(flow, None, state("elsewhere"), facts(flow))
    assert refusal is not None
    assert refusal.verdict is Verdict.WORKFLOW_MIGRATION_REQUIRED


def test_a_node_without_a_gate_is_asked_nothing_about_approvals() -> None:
    flow = sample()
    assert gate.check(flow, flow.nodes["propose"], state("propose"), facts(flow)) is None
    assert gate.check(flow, None, state("merge"), facts(flow)) is None


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.ALLOWED])
def test_every_refusal_leads_to_a_suspended_outcome(verdict: Verdict) -> None:
    assert suspension_of(verdict) in {
        Outcome.HUMAN_REQUIRED,
        Outcome.POLICY_BLOCKED,
        Outcome.REVALIDATION_REQUIRED,
        Outcome.RECONCILIATION_REQUIRED,
        Outcome.WORKFLOW_MIGRATION_REQUIRED,
    }


# ---------------------------------------------------------------------- with a look, and what is recorded of it


NODES = Gate(
    approved_by="ask", verified_by="check", fresh={"main": work}, authority="app.act", commitments="window", placement="eu"
)


def looking() -> Definition:
    return declare(
        propose=Decision(work, choices={"patch": "check"}),
        check=Activity(work, verifies="propose", then="ask"),
        ask=Approval(candidate="propose", role="r", approved="merge", denied="no", expires=Deadline(hours=1, then=ESCALATE)),
        merge=Activity(work, gate=NODES, then="done"),
        done=End(COMPLETE),
        no=End(FAILED),
    )


def sound_look(**changed: Any) -> Look:
    seen = Seen("v1", NOW)
    whole = Look(
        seen={"main": seen},
        baseline={"main": seen},
        verifications={"check": VerificationFact(DIGEST, passed=True)},
        commitments={"window": "active"},
        authority={"app.act": ""},
    )
    return replace(whole, **changed)


def examined(look: Look | None) -> gate.Examined:
    flow = looking()
    at = state("merge", results={"propose": artifact()})
    known = replace(facts(flow, approvals={"ask": approval(DIGEST)}), look=look)
    found = gate.examine(flow, flow.nodes["merge"], at, known)
    assert found.refusal == gate.check(flow, flow.nodes["merge"], at, known)
    return found


def test_what_only_a_look_can_tell_is_not_asked_before_one() -> None:
    found = examined(None)
    assert found.refusal is None
    assert [answer.check for answer in found.answers] == ["intent", "definition", "candidate", "approval"]


def test_a_sound_look_is_allowed_and_every_check_says_so() -> None:
    found = examined(sound_look())
    assert found.refusal is None
    asked = [
        "intent",
        "definition",
        "candidate",
        "approval",
        "verification",
        "commitments",
        "fresh",
        "budget",
        "authority",
        "placement",
    ]
    assert [(answer.check, answer.answer) for answer in found.answers] == [(name, "holds") for name in asked]


@pytest.mark.req("H2")
def test_a_check_whose_facts_are_those_for_which_it_held_is_not_run_again() -> None:
    held = {answer.check: answer.digest for answer in examined(sound_look()).answers}
    again = examined(sound_look(held=held))
    assert {answer.answer for answer in again.answers} == {"unchanged"}
    changed = examined(sound_look(held=held, commitments={"window": "breached"}))
    assert changed.refusal is not None
    assert (changed.refusal.verdict, changed.refusal.node) == (Verdict.COMMITMENT_UNSOUND, "merge")
    assert [answer.answer for answer in changed.answers] == ["unchanged"] * 5 + ["refused"]


@pytest.mark.parametrize(
    ("changed", "verdict", "reason"),
    [
        ({"baseline": {}}, Verdict.REVALIDATION_REQUIRED, "nobody has looked at main"),
        ({"seen": {"main": Seen("v2", NOW)}}, Verdict.REVALIDATION_REQUIRED, "main was at v1, and is at v2"),
        ({"seen": {}}, Verdict.REVALIDATION_REQUIRED, "is at None"),
        ({"verifications": {}}, Verdict.VERIFICATION_REQUIRED, "verified nothing"),
        (
            {"verifications": {"check": VerificationFact("sha256:x", passed=True)}},
            Verdict.VERIFICATION_REQUIRED,
            "another candidate",
        ),
        ({"verifications": {"check": VerificationFact(DIGEST, passed=False)}}, Verdict.VERIFICATION_REQUIRED, "did not pass"),
        ({"commitments": {}}, Verdict.COMMITMENT_UNSOUND, "not there"),
        ({"commitments": {"window": "overdue"}}, Verdict.COMMITMENT_UNSOUND, "overdue"),
        ({"authority": {}}, Verdict.AUTHORITY_DENIED, "nobody was asked"),
        ({"authority": {"app.act": "no"}}, Verdict.AUTHORITY_DENIED, "app.act: no"),
        ({"placement": "not here"}, Verdict.PLACEMENT_DENIED, "not here"),
        ({"budget": "model_calls: 3 of 3"}, Verdict.BUDGET_EXHAUSTED, "3 of 3"),
    ],
)
def test_each_thing_that_does_not_hold_has_its_verdict(changed: dict[str, Any], verdict: Verdict, reason: str) -> None:
    refusal = examined(sound_look(**changed)).refusal
    assert refusal is not None
    assert refusal.verdict is verdict
    assert reason in refusal.reason


def test_a_later_step_of_the_visit_that_used_the_approval_has_it_still() -> None:
    flow = declare(
        propose=Decision(work, choices={"patch": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="merge", denied="no", expires=Deadline(hours=1, then=ESCALATE)),
        merge=Pipeline(Step("one", work), Step("two", work), gate=Gate(approved_by="ask"), then="done"),
        done=End(COMPLETE),
        no=End(FAILED),
    )
    for seq, used_by, allowed in ((4, 3, True), (4, 4, True), (4, 2, False), (5, 3, False)):
        at = state("merge", results={"propose": artifact()}, activity=activity("merge", seq=seq, step="two"))
        fact = approval(DIGEST, "consumed", used_by=used_by)
        refusal = gate.check(flow, flow.nodes["merge"], at, facts(flow, approvals={"ask": fact}))
        assert (refusal is None) == allowed, (seq, used_by)
