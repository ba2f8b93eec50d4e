"""The gate: may this workflow take its next consequential step? One pure function over recorded facts (H1).

    base checks       intent current, definition compatible               at every wake-up and claim
    node's checks     candidate sound, live approval of exactly it        before a node with `gate=` is entered, and again when a
                                                                          worker takes its activity up
A later check is one more function in `CHECKS`; each answers None (holds) or a Refusal. The first refusal is the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flows.core import canonical
from flows.core.definition import Definition
from flows.core.nodes import candidate_of
from flows.core.nodes.base import Node
from flows.core.nodes.waits import Approval
from flows.core.protocol import IntentStatus
from flows.core.state import Facts, State
from flows.core.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Refusal:
    """A verdict other than ALLOWED, and the recorded fact that caused it."""

    verdict: Verdict
    reason: str


#: All checks have one signature, also where one needs less of it.
Check = Callable[[Definition, Node | None, State, Facts], Refusal | None]


def check_intent(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:  # noqa: ARG001
    """The workflow works for the current version of an active intent."""
    if facts.intent_status != IntentStatus.ACTIVE or facts.intent_version != state.intent_version:
        return Refusal(
            Verdict.INTENT_SUPERSEDED,
            f"bound to version {state.intent_version}; the intent is {facts.intent_status} at version {facts.intent_version}",
        )
    return None


def check_definition(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:  # noqa: ARG001
    """The definition that is loaded has the shape that the workflow was started with, and knows its node."""
    if facts.fingerprint != definition.fingerprint:
        return Refusal(
            Verdict.WORKFLOW_MIGRATION_REQUIRED,
            f"started with fingerprint {facts.fingerprint}, version {definition.version} is now {definition.fingerprint}",
        )
    if state.node not in definition.nodes:
        return Refusal(Verdict.WORKFLOW_MIGRATION_REQUIRED, f"node {state.node} is not in version {definition.version}")
    return None


def check_candidate(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:  # noqa: ARG001
    """The candidate that would be executed exists and still hashes to its recorded digest."""
    approval = _approval(definition, node)
    if approval is None:
        return None
    candidate = candidate_of(state, approval.candidate)
    if candidate is None:
        return Refusal(Verdict.CANDIDATE_INVALID, f"{approval.candidate} has produced no candidate")
    body = {"choice": candidate["choice"], "value": candidate["value"]}
    if canonical.digest(body, "candidate") != candidate["digest"]:
        return Refusal(Verdict.CANDIDATE_INVALID, "the candidate does not hash to its recorded digest")
    return None


def check_approval(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:
    """A live approval binds exactly this candidate and intent version, and is not used up by another visit."""
    approval = _approval(definition, node)
    if approval is None:
        return None
    fact = facts.approvals.get(approval.name)
    if fact is None:
        return Refusal(Verdict.APPROVAL_REQUIRED, "nobody was asked")
    own = state.activity is not None and fact.used_by == state.activity.seq and fact.used_by is not None
    candidate = candidate_of(state, approval.candidate) or {}
    if fact.status == "consumed" and not own:
        return Refusal(Verdict.APPROVAL_REQUIRED, "the approval is used up")
    if fact.status not in ("approved", "consumed"):
        return Refusal(Verdict.APPROVAL_REQUIRED, f"the request is {fact.status}")
    if fact.digest != candidate.get("digest"):
        return Refusal(Verdict.APPROVAL_REQUIRED, "approved was another candidate")
    if fact.intent_version != state.intent_version:
        return Refusal(Verdict.APPROVAL_REQUIRED, "approved under another intent version")
    if fact.expired and not own:
        return Refusal(Verdict.APPROVAL_REQUIRED, "the approval has expired")
    return None


CHECKS: tuple[Check, ...] = (check_intent, check_definition, check_candidate, check_approval)


def check(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:
    """The first refusal, or None for ALLOWED. `node` is the one to be entered; None asks the base checks only."""
    for one in CHECKS:
        if refusal := one(definition, node, state, facts):
            return refusal
    return None


def _approval(definition: Definition, node: Node | None) -> Approval | None:
    if node is None or node.gate is None or not node.gate.approved_by:
        return None
    found = definition.nodes.get(node.gate.approved_by)
    return found if isinstance(found, Approval) else None
