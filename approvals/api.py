"""What other code may call: answer a request for approval as a user of this project."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from approvals.services.decide import Decided, NobodyAnswers, UnknownRequest, UnknownVerdict, decide
from approvals.services.inbox import eligible

adecide = sync_to_async(decide)

__all__ = ["Decided", "NobodyAnswers", "UnknownRequest", "UnknownVerdict", "adecide", "decide", "eligible"]
