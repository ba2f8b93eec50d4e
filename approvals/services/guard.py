"""One call of a guarded tool: is it allowed, must people be asked, or has it been made already?

    bind, digest ──► the newest request about this call
        none, taken back, withdrawn; approved, and not used in its time, or by others than would be asked now
                                                                   ──► people are asked when the turn ends: ApprovalPending
        pending                                                    ──► the same
        denied, changes asked for, nobody answered                 ──► ToolDenied, ToolChangesRequested, ToolExpired
        approved                                                   ──► used up and in flight, one commit ──► call ──► result, one commit
        used by this activity                                      ──► the recorded result; or the call, where it is known not to have happened
Guard of the use: approved, in its time, this digest, this activity running under this owner, the intent's version; and what is recorded hashes
to its digest, computed at that moment. A call of which nobody knows whether it happened is an effect in doubt, like any other (0003).

What people refused is raised by every later attempt too, until an attempt has ended with it and a person (or the node's `retry=`) has the
activity go on: then the call asks anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from approvals.core.status import RequestStatus
from approvals.core.tools import Tool, ToolApprovalUnsound, digest_of
from approvals.services import standing
from approvals.store import calls as store
from flows.core import payload
from flows.core.effects import TOOL
from flows.core.errors import DefinitionError, LostOwnership, PayloadError
from flows.services.authored import from_anywhere
from flows.services.calling import Calling, NotTaken, making
from flows.services.effects import Call

MAX_TRIES = 10


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that may be made now, exactly once; or one that has been made (`call.done`), whose recorded result stands for it."""

    calling: Calling
    call: Call
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def current_call() -> Call:
    """Inside a guarded tool: the call that is made, with `id`, the same over all attempts at it, and `headers`, to send to a provider.

    Raises:
        DefinitionError: no guarded tool runs here.
    """
    call = making.get()
    if call is None:
        raise DefinitionError("current_call() is asked outside of a guarded tool: only while one runs is there a call.")
    return call


@contextmanager
def made(tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[Call, Allowed]]:
    """The block in which a call is made that is allowed; what is known at its end is committed at once. Raises what `allowed` raises."""
    may = allowed(tool, args, kwargs)
    try:
        with may.calling.closing(may.call) as call, _being_made(call):
            yield call, may
    finally:
        may.calling.tidy()


@contextmanager
def made_unasked(tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Call]:
    """The block in which a call is made about which nobody is asked, and which happens once. Raises what `allowed` raises of that."""
    now, candidate, number = _asked_for(tool, args, kwargs)
    try:
        begun = now.begin(_operation(tool, candidate, number, now), candidate["value"], _nothing)
        with now.closing(begun) as call, _being_made(call):
            yield call
    finally:
        now.tidy()


@contextmanager
def _being_made(call: Call) -> Iterator[None]:
    token = making.set(call)
    try:
        yield
    finally:
        making.reset(token)


@from_anywhere
def allowed(tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Allowed:
    """Whether this call may be made now; where it may, it is in flight when this returns.

    Raises:
        ApprovalPending: people are asked when the turn ends. ToolRefused: they said no, or nothing. OutsideAttempt: no attempt runs here.
        PayloadError, TypeError: the arguments cannot be recorded, or do not fit. AmbiguousOutcome: nobody knows whether it was made before.
        DefinitionError: it is called where it cannot be: in a transaction, in a node that is one effect, by another guarded tool.
    """
    now, candidate, number = _asked_for(tool, args, kwargs)
    try:
        for _ in range(MAX_TRIES):
            found = store.find(now.workflow_id, now.activity_seq, candidate["digest"], number, now.using)
            if found is None or standing.asks_anew(tool, found, now):
                raise standing.pending_of(tool, candidate, number, now)
            if (no := standing.refused(tool, found)) is not None:
                raise no
            try:
                return _begun(tool, candidate, number, found, now)
            except NotTaken:  # revoked, or over, in this very moment: what it is now, the next look says
                continue
    finally:
        now.tidy()
    raise LostOwnership(f"the approval of {tool.rule.name} in workflow {now.workflow_id} changed {MAX_TRIES} times in one look")


def _asked_for(tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Calling, dict[str, Any], int]:
    """The attempt, the call as it is recorded, and which of several equal ones it is."""
    now = standing.calling_of(tool)
    candidate = tool.candidate(args, kwargs)
    return now, candidate, now.number(candidate["digest"])


def _begun(tool: Tool, candidate: Mapping[str, Any], number: int, found: store.Found, now: Calling) -> Allowed:
    """Use the approval up and put the call in flight. What this activity has used before is its own: no second use of it, and no second call."""
    recorded: list[Any] = [found.candidate]

    def use() -> None:
        if found.status == RequestStatus.CONSUMED and found.used_by == now.activity_seq:
            taken = found.candidate
        else:
            taken = store.use(found.id, candidate["digest"], now.using)
        if taken is None:
            raise NotTaken
        recorded[0] = _sound(tool, taken, candidate["digest"], found.id)

    call = now.begin(_operation(tool, candidate, number, now), candidate["value"], use)
    args, kwargs = ((), {}) if call.done else tool.arguments(recorded[0])
    return Allowed(now, call, args, kwargs)


def _operation(tool: Tool, candidate: Mapping[str, Any], number: int, now: Calling) -> str:
    """The name of the effect that this call is, among those of the activity."""
    return f"{TOOL}{tool.rule.name}:{now.activity_seq}:{candidate['digest'].removeprefix('sha256:')[:32]}:{number}"


def _nothing() -> None:
    """Nobody is asked, so nothing is used up."""


def _sound(tool: Tool, stored: Any, digest: str, request: int) -> Mapping[str, Any]:
    """The candidate as it is recorded, which is what was approved: its digest is computed anew, right before it is executed.

    Raises:
        ToolApprovalUnsound: somebody wrote to the table.
    """
    try:
        found: Mapping[str, Any] = payload.decode(stored)
        if digest_of(found) == digest:
            return found
    except (PayloadError, KeyError, TypeError):
        pass
    raise ToolApprovalUnsound(tool.rule.name, request=request)
