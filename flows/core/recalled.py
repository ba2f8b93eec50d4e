"""What the gate looked at, at an arrow of the log: the engine's facts, recalled.

judged again    intent, definition, candidate, approval, deadlines, visits: their facts are the workflow's own history. So is what an attempt
                saw of the outside, and what was verified: it is on record (`flows.core.looked`)
given           policy, release, budget, commitments, competence, authority, placement, and whether what was recorded as approved was
                still what people had approved: facts of other rows, or answers of providers, as they were then, which nobody keeps. The
                arrow's note says which of them refused; facts that refuse just that are made up for it, and the others hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flows.core import looked
from flows.core.course import Course
from flows.core.definition import Definition
from flows.core.history import Asked, Drift, Logged
from flows.core.nodes.activity import Activity
from flows.core.nodes.approval import Approval
from flows.core.protocol import IntentStatus
from flows.core.releases import RELEASE_CHANGED
from flows.core.state import ApprovalFact, Facts, Look, PolicyFact, ReleaseFact, State
from flows.core.verdicts import Verdict

#: What only an attempt that looked can have been refused for; a used up budget also refuses an approval.
LOOKED = frozenset(
    {
        Verdict.VERIFICATION_REQUIRED,
        Verdict.COMMITMENT_UNSOUND,
        Verdict.REVALIDATION_REQUIRED,
        Verdict.COMPETENCE_EXCEEDED,
        Verdict.AUTHORITY_DENIED,
        Verdict.PLACEMENT_DENIED,
    }
)


def facts(course: Course, t: Logged, definition: Definition, state: State, *, closing: bool, taken_up: bool = False) -> Facts:
    """The facts of the decision that made the arrow `t`; `taken_up`: of the one before it, that its attempt may run, which noted nothing."""
    note: Mapping[str, Any] = {} if taken_up else t.note
    verdict, reason = note.get("verdict"), str(note.get("reason", ""))
    dropped = [definition.nodes.get(name) for name in note.get("dropped", ())]
    return Facts(
        intent_version=t.intent_version + (verdict == Verdict.INTENT_SUPERSEDED),
        intent_status=IntentStatus.ACTIVE,
        fingerprint=definition.fingerprint,
        approvals={name: _approval(course, name, t, verdict, closing=closing) for name in definition.approvals},
        overloaded=frozenset(node.queue for node in dropped if isinstance(node, Activity)),
        degraded=course.degraded(t),
        policy=_policy(t) if verdict == Verdict.POLICY_BLOCKED else None,
        release=None if taken_up else _release(course, t, verdict, reason),
        reviews="" if taken_up else _reviews(course, t, definition, verdict, reason),
        look=None if taken_up else _look(course, t, definition, state, verdict, reason),
    )


def was_looked(course: Course, t: Logged, definition: Definition) -> bool:
    """Whether it was an attempt's look that refused at this arrow."""
    verdict = t.note.get("verdict")
    own = isinstance(definition.nodes.get(_refusing(course, t)), Activity)
    return t.trigger == "refused" and (verdict in LOOKED or (verdict == Verdict.BUDGET_EXHAUSTED and own))


def contradiction(course: Course, t: Logged) -> Drift | None:
    """The arrow and the verdict that was recorded with it must name the same; what is given must at least not contradict itself."""
    refused, verdict = looked.of_refusal(course, t), t.note.get("verdict")
    if refused is None:  # one at which no attempt had looked is its arrow
        return Drift(t.seq, f"verdict of {t.from_node}", None, verdict) if t.trigger == "refused" and verdict in LOOKED else None
    if verdict is None or refused.verdict == verdict:
        return None
    return Drift(t.seq, "verdict", verdict, refused.verdict)


def _refusing(course: Course, t: Logged) -> str:
    """The node whose gate refused at this arrow."""
    refused = looked.of_refusal(course, t)
    return refused.node if refused is not None else t.to_node


def _policy(t: Logged) -> PolicyFact:
    name, _, version = t.policy_version.rpartition("@")
    bound = int(version) if version.isdecimal() else 0
    return PolicyFact(name, bound, bound + 1, blocks=True)


def _release(course: Course, t: Logged, verdict: str | None, reason: str) -> ReleaseFact | None:
    """What the flow's policy made of the release that was current: as the arrow says, and the one before it that pinned the workflow."""
    pin = course.pin
    moved = pin.note.get("release", {}) if pin is not None else {}
    known = moved.get("from", course.pinned), moved.get("to", course.pinned)
    if verdict == Verdict.RELEASE_INCOMPATIBLE:
        return ReleaseFact(*known, refusal=reason or verdict)
    if t.trigger == "cancel":
        return ReleaseFact(*known, cancels=True) if t.note.get("reason") == RELEASE_CHANGED else None
    if pin is None or t.trigger in ("completed", "failed", "timed_out") or verdict in LOOKED:
        return None
    return ReleaseFact(*known, pins=known[1], restart=pin.note.get("restart", ""))


def _reviews(course: Course, t: Logged, definition: Definition, verdict: str | None, reason: str) -> str:
    """Why nobody could be asked any more. Where another gate had refused before, the arrow's code says it."""
    if verdict == Verdict.BUDGET_EXHAUSTED and isinstance(definition.nodes.get(_refusing(course, t)), Approval):
        return reason or verdict
    ended_so = t.error_code == Verdict.BUDGET_EXHAUSTED and isinstance(definition.nodes.get(t.to_node), Approval)
    return str(t.error_code) if ended_so else ""


def _look(course: Course, t: Logged, definition: Definition, state: State, verdict: str | None, reason: str) -> Look | None:
    """The look that refused, as far as it is on record, and where all else holds but what refused; None where no look refused."""
    node, judged = definition.nodes.get(state.node), looked.of_refusal(course, t)
    if node is None or judged is None or not was_looked(course, t, definition):
        return None
    found = looked.look(course, judged, definition, node)
    return replace(
        found,
        commitments={} if verdict == Verdict.COMMITMENT_UNSOUND else found.commitments,
        authority=dict.fromkeys(found.authority, reason if verdict == Verdict.AUTHORITY_DENIED else ""),
        competence=reason if verdict == Verdict.COMPETENCE_EXCEEDED else "",
        placement=reason if verdict == Verdict.PLACEMENT_DENIED else "",
        budget=reason if verdict == Verdict.BUDGET_EXHAUSTED else "",
    )


def _approval(course: Course, name: str, t: Logged, verdict: str | None, *, closing: bool) -> ApprovalFact | None:
    """What the human plane said then of the newest request of that node."""
    asked = next((one for one in reversed(course.asked()) if (one.node, one.kind) == (name, Approval.kind)), None)
    if asked is None:
        return None
    used = asked.used_by if asked.used_by is not None and asked.used_by <= course.opened else None
    visit = course.history.visits.get(used) if used is not None else None
    return ApprovalFact(
        request_id=asked.request_id,
        status="consumed" if used is not None else _status(course, asked, t, closing=closing),
        digest=asked.digest,
        intent_version=asked.intent_version,
        expired=asked.expires_at is not None and asked.expires_at <= t.at,
        used_by=used,
        used_at=None if visit is None else (visit.node, visit.visit),
        sound=verdict != Verdict.CANDIDATE_INVALID,  # the row as it was then is no more
    )


def _status(course: Course, asked: Asked, t: Logged, *, closing: bool) -> str:
    if asked.request_id in course.retired:
        return "invalidated"
    if asked.revoked_at is not None and asked.revoked_at <= t.at:
        return "revoked"
    wait = course.wait
    still_open = wait is not None and wait.id == asked.wait
    return asked.answered if asked.answered and (closing or course.heard or not still_open) else "pending"
