"""What other code may call: answer a request for approval as a user of this project, take an approval back, say who looks at it, delegate; and
how long people are waited for.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async

from approvals.services.callers import Caller, Unauthenticated
from approvals.services.claiming import assign
from approvals.services.decide import Decided, NobodyAnswers, UnknownVerdict, decide
from approvals.services.delegating import BadDelegation, UnknownDelegation, delegate, end_delegation
from approvals.services.inbox import eligible
from approvals.services.locked import UnknownRequest
from approvals.services.taking_back import revoke
from approvals.services.waiting import BadPeriod, backlog, lives, waiting

aassign, adecide, adelegate = sync_to_async(assign), sync_to_async(decide), sync_to_async(delegate)
aend_delegation, arevoke = sync_to_async(end_delegation), sync_to_async(revoke)

__all__ = [
    "BadDelegation",
    "BadPeriod",
    "Caller",
    "Decided",
    "NobodyAnswers",
    "Unauthenticated",
    "UnknownDelegation",
    "UnknownRequest",
    "UnknownVerdict",
    "aassign",
    "adecide",
    "adelegate",
    "aend_delegation",
    "arevoke",
    "assign",
    "backlog",
    "decide",
    "delegate",
    "eligible",
    "end_delegation",
    "lives",
    "revoke",
    "waiting",
]
