"""What other code may call, as a user of this project: answer a request for approval, or what an Ask asks; take an approval back, say who looks
at a request, delegate.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async

from approvals.services.answering import Answered, answer
from approvals.services.claiming import assign
from approvals.services.decide import Decided, NobodyAnswers, UnknownVerdict, decide
from approvals.services.delegating import BadDelegation, UnknownDelegation, delegate, end_delegation
from approvals.services.inbox import eligible
from approvals.services.locked import UnknownRequest
from approvals.services.taking_back import revoke
from approvals.services.uploads import remove_unreferenced

aanswer = sync_to_async(answer)
aassign, adecide, adelegate = sync_to_async(assign), sync_to_async(decide), sync_to_async(delegate)
aend_delegation, arevoke = sync_to_async(end_delegation), sync_to_async(revoke)

__all__ = [
    "Answered",
    "BadDelegation",
    "Decided",
    "NobodyAnswers",
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
    "decide",
    "delegate",
    "eligible",
    "end_delegation",
    "remove_unreferenced",
    "revoke",
]
