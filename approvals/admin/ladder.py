"""The words about people: the ladder with who approved in whose name, whom it was escalated to, who looks at it, what was checked by machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from approvals.core.ladder import Call, Rung, RungState
from approvals.core.status import REVOKE, RequestStatus
from approvals.models import Request, Review
from approvals.models.wording import audience_in_words, step_in_words
from approvals.services.packet import Packet
from flows.admin import rendering
from flows.models import Verification


def context(packet: Packet) -> dict[str, Any]:
    """What the templates print of it."""
    request = packet.request
    pending = request.status == RequestStatus.PENDING
    looked = bool(request.claimed_label) and pending
    return {
        "rungs": [_rung(number, rung, packet) for number, rung in enumerate(packet.rungs)],
        "calls": [
            _call(call, one, request) for call, one in zip(packet.calls, request.escalation, strict=True) if call.came or pending
        ],
        "looked_at_by": rendering.inline(request.claimed_label) if looked else "",
        "looked_at_since": request.claimed_at if looked else None,
        "acts": packet.acts,
        "looking": pending and (looked or packet.acts.claim or packet.acts.release or packet.acts.assign),
        "checks": [_check(one) for one in packet.checks],
    }


def review(row: Review, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One thing that somebody said. `steps`: of the request; the name of the step is said where there are several."""
    said = {
        "approve": _("approve"),
        "changes": _("request changes"),
        "deny": _("deny"),
        "narrow": _("keep a part"),
        REVOKE: _("took the approval back"),
    }
    step = step_in_words(steps[row.step]) if len(steps) > 1 and row.step < len(steps) else ""
    return {
        "row": row,
        "said": said.get(row.verdict, row.verdict),
        "by": rendering.inline(row.by_label),
        "for": rendering.inline(row.for_label) if row.for_label else "",
        "step": rendering.inline(step) if step else "",
        "comment": rendering.block(row.comment) if row.comment else "",
    }


def _rung(number: int, rung: Rung, packet: Packet) -> dict[str, Any]:
    words = {
        RungState.DONE: pgettext("step", "done"),
        RungState.NOW: pgettext("step", "asked now"),
        RungState.LATER: pgettext("step", "asked later"),
        RungState.STOPPED: pgettext("step", "ended here"),
        RungState.UNREACHED: pgettext("step", "not reached"),
    }
    count = ngettext("%(given)s of %(need)s approval", "%(given)s of %(need)s approvals", rung.need)
    step = packet.request.steps[number]
    return {
        "name": rendering.inline(step_in_words(step)),
        "whom": rendering.inline(audience_in_words(step["audience"])) if rung.whom != rung.name else "",
        "state": rung.state.value,
        "chip": rendering.chip(_CHIPS[rung.state], words[rung.state]),
        "count": count % {"given": rung.given, "need": rung.need},
        "by": [_approval(row) for row in packet.approvals if row.step == number],
    }


_CHIPS = {
    RungState.DONE: "approved",
    RungState.NOW: "pending",
    RungState.LATER: "later",
    RungState.STOPPED: "stopped",
    RungState.UNREACHED: "unreached",
}


def _approval(row: Review) -> dict[str, SafeString | str]:
    return {"by": rendering.inline(row.by_label), "for": rendering.inline(row.for_label) if row.for_label else ""}


def _call(call: Call, one: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """When it comes counts from the question."""
    return {
        "whom": rendering.inline(audience_in_words(one["audience"])),
        "came": call.came,
        "at": request.asked_at + timedelta(seconds=call.after),
    }


def _check(one: Verification) -> dict[str, Any]:
    passed, failed = _("passed"), _("did not pass")
    return {
        "node": rendering.inline(one.node),
        "chip": rendering.chip("accepted", passed) if one.passed else rendering.chip("refused", failed),
        "code": "" if one.passed else rendering.inline(one.code),
        "at": one.at,
        "versions": [
            (rendering.inline(name), rendering.inline(str(version)))
            for name, version in sorted((one.state_versions or {}).items())
        ],
    }
