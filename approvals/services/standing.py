"""What stands on record about a call of a guarded tool that is going to be made: what people have said of it, or that they must be asked.

Reads, and notes for the end of the turn; nothing is used up here, and nothing is in flight (`guard` does both).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from approvals.core.status import RequestStatus
from approvals.core.tools import (
    MAX_REQUESTS,
    OutsideAttempt,
    Tool,
    ToolAskedTooOften,
    ToolChangesRequested,
    ToolDenied,
    ToolExpired,
    ToolRefused,
)
from approvals.store import calls as store
from flows.conf import conf
from flows.core import payload
from flows.core.errors import ApprovalPending, DefinitionError
from flows.services import calling
from flows.services.authored import from_anywhere
from flows.services.calling import Calling, making

_REFUSALS: dict[str, type[ToolRefused]] = {
    RequestStatus.DENIED: ToolDenied,
    RequestStatus.CHANGES_REQUESTED: ToolChangesRequested,
    RequestStatus.SUPERSEDED: ToolChangesRequested,
}


@from_anywhere
def answers(calls: Sequence[tuple[Tool, Mapping[str, Any]]]) -> list[ToolRefused | None]:
    """What people have said about calls that the attempt is about to make, in this order: None for one that is allowed, or that was made.

    A call that was refused is not made, and counts as made where equal ones are told apart.

    Raises:
        ApprovalPending: about some of them people are asked when the turn ends, all at once. What else `allowed` raises before a call.
    """
    said: list[ToolRefused | None] = []
    pending: list[BaseException] = []
    ahead: Counter[str] = Counter()
    for tool, kwargs in calls:
        now = calling_of(tool)
        candidate = tool.candidate((), kwargs)
        digest = candidate["digest"]
        number = now.so_far(digest) + ahead[digest] + 1
        try:
            found = store.find(now.workflow_id, now.activity_seq, digest, number, now.using)
            if found is None or asks_anew(tool, found, now):
                pending.append(pending_of(tool, candidate, number, now))
                said.append(None)
            else:
                said.append(refused(tool, found))
        finally:
            now.tidy()
        if said[-1] is None:
            ahead[digest] += 1
        else:
            now.number(digest)
    if pending:
        raise next((one for one in pending if isinstance(one, ApprovalPending)), pending[0])
    return said


def calling_of(tool: Tool) -> Calling:
    """The attempt in which the call is made.

    Raises:
        OutsideAttempt: none runs. DefinitionError: it is called where it cannot be: in a transaction, in a node that is one effect, by another
        guarded tool.
    """
    now = calling.now()
    if now is None:
        raise OutsideAttempt(tool.rule.name)
    if making.get() is not None:
        raise DefinitionError(
            f"{tool.rule.name} is called by another guarded tool, which would be in doubt while people think: call both from the activity."
        )
    now.must_stand_alone(tool.rule.name)
    return now


def asks_anew(tool: Tool, found: store.Found, now: Calling) -> bool:
    """Whether nothing of this request stands, so that people must be asked (again)."""
    others = (found.ladder, found.self_approval) != (tool.rule.ladder_digest, tool.rule.self_approval)
    if found.status == RequestStatus.APPROVED and others:
        return True  # a deploy since then wants other people to say yes
    if found.status in (RequestStatus.REVOKED, RequestStatus.CANCELLED, RequestStatus.INVALIDATED):
        return True
    if found.status == RequestStatus.PENDING and not found.late:
        return True
    if found.status in (RequestStatus.APPROVED, RequestStatus.EXPIRED) and found.late and found.answer:
        return True  # approved, and not used in its time
    refusal = _refusal(found)
    return refusal is not None and now.last_error == refusal.code


def _refusal(found: store.Found) -> type[ToolRefused] | None:
    if not found.answer and found.late:
        return ToolExpired
    return _REFUSALS.get(found.status)


def refused(tool: Tool, found: store.Found) -> ToolRefused | None:
    """That people did not allow the call, as it is told to who made it; None: nothing of it says so."""
    refusal = _refusal(found)
    return refusal(tool.rule.name, found.comment, found.id) if refusal is not None else None


def pending_of(tool: Tool, candidate: Mapping[str, Any], number: int, now: Calling) -> BaseException:
    """Note what people are to be asked, for the end of the turn."""
    payload.text(candidate["value"], f"a call of {tool.rule.name}", min(conf.MAX_INPUT_BYTES, conf.MAX_RESULT_BYTES))
    asked = store.count(now.workflow_id, now.activity_seq, now.using)
    with now.lock:
        if asked + len(now.wanted) >= MAX_REQUESTS:
            return ToolAskedTooOften(tool.rule.name)
        now.want({"tool": tool.rule.name, "number": number, "candidate": dict(candidate), **tool.rule.asks(now.state)})
    return ApprovalPending(f"{tool.rule.name} waits for people to answer")
