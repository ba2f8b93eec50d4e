"""What people are told of a request, as words. Pure; who is told, and how, is in `approvals.services.notices`."""

from __future__ import annotations

from enum import StrEnum


class NoticeKind(StrEnum):
    """What a notice tells of; `number` tells those of one kind apart.

    asked (number: the step): your answer is needed. reminder, escalated (number: which): by their timers. assigned (number: how often):
    somebody marked you as the one who looks at it. decided: it was answered. revoked: an approval was taken back. withdrawn: no answer is
    needed any more, or the approval counts no longer.
    """

    ASKED = "asked"
    REMINDER = "reminder"
    ESCALATED = "escalated"
    ASSIGNED = "assigned"
    DECIDED = "decided"
    REVOKED = "revoked"
    WITHDRAWN = "withdrawn"


#: About a question that is open: nobody is told any more when it is closed. Whoever was told one of these is told when it is withdrawn.
OPEN = frozenset({NoticeKind.ASKED, NoticeKind.REMINDER, NoticeKind.ESCALATED, NoticeKind.ASSIGNED})

#: What may wait for others of one person, to go out with them in one message.
DIGEST = frozenset({NoticeKind.ASKED, NoticeKind.REMINDER})


class Moot(StrEnum):
    """Why a notice is not sent, beside the codes of a refused answer (`approvals.core.binding.Code`)."""

    CLOSED = "CLOSED"  # the question is not open any more
    OVERTAKEN = "OVERTAKEN"  # the next step has begun, or somebody else was marked
    ACCOUNT_GONE = "ACCOUNT_GONE"
    USER_INACTIVE = "USER_INACTIVE"
    NOT_PERMITTED = "NOT_PERMITTED"
    NEVER_TOLD = "NEVER_TOLD"  # of the question, so it is not withdrawn from them
    NO_ADDRESS = "NO_ADDRESS"
    CHANNEL_GONE = "CHANNEL_GONE"  # the setting has no such channel any more
