"""Checks of what the node is bound to: the exact candidate, its approval, its verification, the commitments that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flows.core import canonical
from flows.core.errors import PayloadError
from flows.core.gate.check import Asked, Check, Known, Refusal
from flows.core.nodes import candidate_of
from flows.core.nodes.activity import Activity
from flows.core.nodes.approval import Approval
from flows.core.nodes.pipeline import Pipeline
from flows.core.state import ApprovalFact, Look, VerificationFact
from flows.core.verdicts import Verdict


def _candidate(asked: Asked) -> Known | None:
    name = candidate_node(asked)
    if name is None:
        return None
    approval = _approval_node(asked)
    candidate = approval.about(asked.state) if approval is not None else candidate_of(asked.state, name)
    if candidate is None:
        return {"node": name, "recorded": None, "computed": None}
    return {"node": name, "recorded": candidate["digest"], "computed": _digest_of(candidate)}


def _digest_of(candidate: Mapping[str, Any]) -> str | None:
    """The digest of what is there; None: it was altered into what is no candidate."""
    try:
        return canonical.digest({"choice": candidate["choice"], "value": candidate["value"]}, "candidate")
    except (PayloadError, KeyError, TypeError):
        return None


def check_candidate(known: Known) -> Refusal | None:
    """The candidate that would be executed exists and still hashes to its recorded digest."""
    if known["recorded"] is None:
        return Refusal(Verdict.CANDIDATE_INVALID, f"{known['node']} has produced no candidate")
    if known["recorded"] != known["computed"]:
        return Refusal(Verdict.CANDIDATE_INVALID, "the candidate does not hash to its recorded digest")
    return None


def _approval(asked: Asked) -> Known | None:
    approval = _approval_node(asked)
    if approval is None:
        return None
    fact = asked.facts.approvals.get(approval.name)
    if fact is None:
        return {"status": None}
    candidate = approval.about(asked.state) or {}
    known: dict[str, Any] = {
        "status": fact.status,
        "own": _used_by_this_visit(asked, fact),
        "expired": fact.expired,
        "digest": fact.digest,
        "candidate": candidate.get("digest"),
        "under": fact.intent_version,
        "bound": asked.state.intent_version,
    }
    return known if fact.sound else {**known, "unsound": True}  # no other's facts look different than before


def check_approval(known: Known) -> Refusal | None:
    """A live approval binds exactly this candidate and intent version, and is not used up by another visit.

    It is still what people approved: the candidate that is recorded with it is what the code is given.
    """
    reason = ""
    if known["status"] is None:
        reason = "nobody was asked"
    elif known["status"] == "consumed" and not known["own"]:
        reason = "the approval is used up"
    elif known["status"] not in ("approved", "consumed"):
        reason = f"the request is {known['status']}"
    elif known["digest"] != known["candidate"]:
        reason = "approved was another candidate"
    elif known["under"] != known["bound"]:
        reason = "approved under another intent version"
    elif known["expired"] and not known["own"]:
        reason = "the approval has expired"
    if reason:
        return Refusal(Verdict.APPROVAL_REQUIRED, reason)
    if known.get("unsound"):
        return Refusal(Verdict.CANDIDATE_INVALID, "what is recorded as approved does not hash to its recorded digest")
    return None


def _verification(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or not gate.verified_by:
        return None
    found: dict[str, Any] = {}
    for name in gate.verified_by:
        verifier = asked.definition.nodes.get(name)
        of = verifier.verifies if isinstance(verifier, Activity) else ""
        fact = look.verifications.get(name)
        candidate = candidate_of(asked.state, of) or {}
        result = None if fact is None else {"digest": fact.digest, "revision": fact.revision, "passed": fact.passed}
        found[name] = {
            "of": of,
            "candidate": candidate.get("digest"),
            "revision": int(candidate.get("revision") or 1),
            "result": result,
            "moved": _moved(fact, look, gate.probes),
        }
    return found


def _moved(fact: VerificationFact | None, look: Look, names: Iterable[str]) -> list[list[str]]:
    """What the verifier saw at another version than what is stood on now: (name, its version, that version)."""
    versions = fact.versions if fact is not None else {}
    now = {name: look.baseline[name].version for name in names if name in versions and name in look.baseline}
    return [[name, versions[name], version] for name, version in sorted(now.items()) if versions[name] != version]


def check_verification(known: Known) -> Refusal | None:
    """Each verifier's newest result is about exactly the current candidate, in the state that is stood on now, and it passed.

    What a model says of itself counts for nothing.
    """
    for name, one in known.items():
        result = one["result"]
        if result is None:
            return Refusal(Verdict.VERIFICATION_REQUIRED, f"{name} has verified nothing yet")
        if (result["digest"], result["revision"]) != (one["candidate"], one["revision"]):
            return Refusal(Verdict.VERIFICATION_REQUIRED, f"{name} has verified another candidate of {one['of']}")
        if not result["passed"]:
            return Refusal(Verdict.VERIFICATION_REQUIRED, f"the candidate of {one['of']} did not pass {name}")
        for what, then, now in one["moved"]:
            return Refusal(Verdict.VERIFICATION_REQUIRED, f"{name} saw {what} at {then}; since then it was looked at at {now}")
    return None


def _commitments(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or not gate.commitments:
        return None
    return {name: look.commitments.get(name) for name in gate.commitments}


def check_commitments(known: Known) -> Refusal | None:
    """Each commitment that the node stands on is active, and not over its deadline."""
    for name, status in known.items():
        if status != "active":
            return Refusal(Verdict.COMMITMENT_UNSOUND, f"the commitment {name} is {status or 'not there'}")
    return None


def candidate_node(asked: Asked) -> str | None:
    """The node whose candidate would be carried out: what the approval is about, or else what was verified."""
    if (approval := _approval_node(asked)) is not None:
        return approval.candidate
    for name in asked.gate.verified_by if asked.gate is not None else ():
        verifier = asked.definition.nodes.get(name)
        if isinstance(verifier, Activity) and verifier.verifies:
            return verifier.verifies
    return None


def _approval_node(asked: Asked) -> Approval | None:
    gate = asked.gate
    if gate is None or not gate.approved_by:
        return None
    found = asked.definition.nodes.get(gate.approved_by)
    return found if isinstance(found, Approval) else None


def _used_by_this_visit(asked: Asked, fact: ApprovalFact) -> bool:
    """Whether the approval was used up by the open activity, or by an earlier step of the same visit of a pipeline."""
    activity, used_by = asked.state.activity, fact.used_by
    if activity is None or used_by is None:
        return False
    if isinstance(asked.node, Pipeline) and fact.used_at == (activity.node, activity.visit):
        return True
    steps = [step.name for step in asked.node.steps] if isinstance(asked.node, Pipeline) else []
    before = steps.index(activity.step) if activity.step in steps else 0
    return activity.seq - before <= used_by <= activity.seq


CHECKS = (
    Check("candidate", _candidate, check_candidate),
    Check("approval", _approval, check_approval),
    Check("verification", _verification, check_verification),
    Check("commitments", _commitments, check_commitments),
)
