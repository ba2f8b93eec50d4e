"""What other code may call, as a user of this project: answer a request for approval, or what an Ask asks; take an approval back, say who looks
at a request, delegate; what a channel of notices is; and how long people are waited for.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from approvals.core.binding import Shown
from approvals.core.narrow import BadPart
from approvals.services import inbox
from approvals.services.answering import Answered, answer
from approvals.services.callers import Caller, Unauthenticated
from approvals.services.channels import Channel, Note
from approvals.services.claiming import assign
from approvals.services.decide import Decided, NobodyAnswers, UnknownVerdict, decide
from approvals.services.delegating import BadDelegation, UnknownDelegation, delegate, end_delegation
from approvals.services.inbox import eligible
from approvals.services.locked import UnknownRequest
from approvals.services.taking_back import revoke
from approvals.services.uploads import remove_unreferenced
from approvals.services.waiting import BadPeriod, backlog, lives, waiting
from flows.services import identify


def waiting_for(user: Any) -> int:
    """How many requests wait for this user, for a badge; it stops counting at 100."""
    return inbox.waiting(user, identify.alias(None))


aanswer = sync_to_async(answer)
aassign, adecide, adelegate = sync_to_async(assign), sync_to_async(decide), sync_to_async(delegate)
aend_delegation, arevoke = sync_to_async(end_delegation), sync_to_async(revoke)

__all__ = [
    "Answered",
    "BadDelegation",
    "BadPart",
    "BadPeriod",
    "Caller",
    "Channel",
    "Decided",
    "NobodyAnswers",
    "Note",
    "Shown",
    "Unauthenticated",
    "UnknownDelegation",
    "UnknownRequest",
    "UnknownVerdict",
    "aanswer",
    "aassign",
    "adecide",
    "adelegate",
    "aend_delegation",
    "answer",
    "arevoke",
    "assign",
    "backlog",
    "decide",
    "delegate",
    "eligible",
    "end_delegation",
    "lives",
    "remove_unreferenced",
    "revoke",
    "waiting",
    "waiting_for",
]
