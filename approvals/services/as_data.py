"""Requests and delegations as JSON values, for programs: the API and `--json` of the command.

What a model made (the candidate, the evidence, words, changes between two candidates) stands only in members whose names begin with
`unverified_`, as JSON values; it is text to be shown as text. A list names no digest: an answer needs it, and nobody answers what they have
not opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.binding import Refusal
from approvals.core.diff import Change
from approvals.core.status import ANSWER, NEEDS_COMMENT, RequestKind
from approvals.models import Delegation, Request, Review
from approvals.services.packet import Packet, Since
from flows.models import Verification


def moment(value: datetime | None) -> str | None:
    """A time as RFC 3339 writes it, in UTC."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")


def summary(request: Request) -> dict[str, Any]:
    """One line of the inbox; its workflow and intent are read already, and its candidate is not touched."""
    return {
        "id": request.pk,
        "kind": request.kind,
        "status": request.status,
        "node": request.node,
        "revision": request.revision,
        "goal": request.intent.goal,
        "workflow": _workflow(request),
        "asks": _asks(request),
        "accountable": request.requester_label or None,
        "bulk": request.bulk,
        "asked_at": moment(request.asked_at),
        "expires_at": moment(request.expires_at),
        "answer": request.answer or None,
        "answered_at": moment(request.answered_at),
        "looked_at_by": request.claimed_label or None,
    }


def detail(packet: Packet, *, filled_in: Mapping[str, Any] | None) -> dict[str, Any]:
    """All that a reviewer needs of one request, as it is for the user that the packet was made for.

    `filled_in`: what was answered to a form; its fields, and why it is asked, stand where a candidate's value stands.
    """
    request = packet.request
    return {
        **summary(request),
        "digest": request.digest,
        "candidate": {
            "from_node": request.candidate_node,
            "choice": packet.choice or None,
            "sound": packet.sound,
            "unverified_value": packet.proposed,
        },
        "checks": [_check(check) for check in packet.checks],
        "unverified_evidence": packet.told,
        "unverified_words": [{"place": place, "text": text} for place, text in packet.words],
        "since": _since(packet.since) if packet.since else None,
        "stands_on": dict(request.state_versions or {}),
        "policy_version": request.policy_version,
        "intent_version": request.intent_version,
        "ladder": _ladder(packet),
        "part_of": request.subset or None,
        "filled_in": dict(filled_in) if filled_in is not None else None,
        "answers": _answers(packet),
        "opens": list(packet.opens),
        "on_silence": _silence(request.on_expiry),
        "may_answer": may_answer(packet.refusal),
        "may": asdict(packet.acts),
        "reviews": [_review(review) for review in packet.reviews],
    }


def may_answer(refusal: Refusal | None) -> dict[str, Any]:
    """Whether somebody can be offered the form, and why not."""
    if refusal is None:
        return {"allowed": True, "code": None, "sentence": None}
    return {"allowed": False, "code": refusal.code.value, "sentence": _(refusal.template) % refusal.params}


def delegation(row: Delegation, now: datetime) -> dict[str, Any]:
    """One delegation, and how it stands at this moment."""
    over = row.revoked_at is not None or row.ends_at <= now
    return {
        "id": row.pk,
        "from": row.giver_label,
        "to": row.taker_label,
        "state": "ended" if over else "holds" if row.starts_at <= now else "to_come",
        "starts_at": moment(row.starts_at),
        "ends_at": moment(row.ends_at),
        "role": row.role or None,
        "pool": row.pool or None,
        "flow": row.flow or None,
        "reason": row.reason,
        "made_by": row.made_by_label,
        "made_at": moment(row.made_at),
        "revoked_at": moment(row.revoked_at),
        "revoked_by": row.revoked_by_label or None,
    }


def _workflow(request: Request) -> dict[str, Any]:
    run = request.workflow
    return {"id": str(run.pk), "flow": run.flow_name, "version": run.flow_version, "key": run.key, "subject": run.subject or None}


def _asks(request: Request) -> dict[str, Any]:
    step = request.steps[request.step]
    return {
        "step": request.step + 1,
        "of": len(request.steps),
        "whom": request.asked,
        "given": request.given,
        "need": step["need"],
    }


def _ladder(packet: Packet) -> dict[str, Any]:
    """Every step with who is asked, and how far it has come; and whom it goes to besides when time passes."""
    request = packet.request
    return {
        "steps": [
            {
                "name": rung.name,
                "audience": dict(step["audience"]),
                "need": rung.need,
                "approved_by": [review.by_label for review in packet.approvals if review.step == number],
                "state": rung.state.value,
            }
            for number, (step, rung) in enumerate(zip(request.steps, packet.rungs, strict=True))
        ],
        "escalation": [
            {"audience": dict(one["audience"]), "after_seconds": call.after, "asked": call.came}
            for one, call in zip(request.escalation, packet.calls, strict=True)
        ],
    }


def _check(check: Verification) -> dict[str, Any]:
    """What a verifier of the flow found of exactly this candidate."""
    return {"by_node": check.node, "passed": check.passed, "code": check.code or None, "at": moment(check.at)}


def _answers(packet: Packet) -> list[dict[str, Any]]:
    """The answers on offer; a candidate that does not hash to its digest can only be refused."""
    if packet.request.kind == RequestKind.ASK:
        return [{"verdict": ANSWER, "leads_to": None, "comment_needed": False}]
    return [
        {"verdict": verdict, "leads_to": node, "comment_needed": verdict in NEEDS_COMMENT}
        for verdict, node in packet.routes.items()
        if verdict not in ("approve", "narrow") or packet.sound
    ]


def _silence(on_expiry: str) -> dict[str, Any]:
    kind, _colon, node = on_expiry.partition(":")
    return {"then": kind or "stays_open", "node": node or None}


def _since(since: Since) -> dict[str, Any]:
    return {
        "revision": since.revision,
        "answered_by_you": since.seen,
        "unverified_changes": [_change(change) for change in since.diff.changes],
        "more": since.diff.more,
        "reviews": [_review(review) for review in since.reviews],
    }


def _change(change: Change) -> dict[str, Any]:
    lines: Sequence[Mapping[str, str]] = [{"sign": line.sign, "text": line.text} for line in change.lines]
    return {"path": change.path, "kind": change.kind, "before": change.before, "after": change.after, "lines": lines}


def _review(review: Review) -> dict[str, Any]:
    return {
        "verdict": review.verdict,
        "by": review.by_label,
        "in_the_name_of": review.for_label or None,
        "step": review.step + 1,
        "comment": review.comment,
        "refused": review.refused or None,
        "digest": review.digest,
        "at": moment(review.at),
    }
