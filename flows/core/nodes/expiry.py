"""What becomes of a node whose deadline has passed, by the policy that was declared, or recorded, for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flows.core import calendars
from flows.core.deadlines import recorded
from flows.core.moves import CancelSelf, Finish, Goto, Move, Rest, Suspend
from flows.core.policies import Deadline, Expiry
from flows.core.protocol import Outcome, Status
from flows.core.state import State, WaitState

WAIT_EXPIRED = "WAIT_EXPIRED"


def limits(deadline: Deadline | None, state: State) -> dict[str, Any]:
    """How long a wait may take that is opened now, as a Park says it: a span, or the moment at which its business time is over.

    Raises:
        DefinitionError: of business time, the calendar is not published, or is not open for so long.
    """
    if deadline is None:
        return {}
    moment = calendars.until(deadline, state.now, state.calendars)
    span = {"deadline": deadline.after} if moment is None else {"deadline_at": moment}
    return {**span, "on_expiry": deadline.word}


def expire(deadline: Deadline, node: str, code: str) -> Move:
    """The declared policy of a deadline that passed."""
    if deadline.target:
        return Goto(deadline.target, release=deadline.then is Expiry.RELEASE)
    match deadline.expiry:
        case Expiry.CANCEL:
            return CancelSelf(code)
        case Expiry.FAIL:
            return Finish(node, Status.FAILED, Outcome.FAILED, code=code)
        case Expiry.ESCALATE | Expiry.HUMAN as asking:
            tell = deadline.escalate_to if asking is Expiry.ESCALATE else None
            return Suspend(node, Outcome.HUMAN_REQUIRED, code, "its deadline has passed", tell=tell)
    return Rest()


def deadline_target(deadline: Deadline | None) -> Iterator[tuple[str, str]]:
    """The node of a deadline, if it names one."""
    if deadline is not None and (deadline.target or deadline.expiry is None):
        yield "deadline", deadline.target


def of_beside(wait: WaitState, node: str, declared: Deadline | None = None) -> Move:
    """Of a wait that is not the node's own and closes with what ends it: somebody has still to end it, unless its time is over.

    `declared`: what its node says of it; where that is the policy that the wait was opened with, it says whom to tell, too.
    """
    late = recorded(wait.on_expiry) if wait.due else None
    if declared is not None and wait.on_expiry == declared.word:
        late = declared if wait.due else None
    return expire(late, node, WAIT_EXPIRED) if late is not None else Rest()
