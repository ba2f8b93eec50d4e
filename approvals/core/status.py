"""What a request may become. The same table is in the database (the move trigger) and checked against it by a test."""

from __future__ import annotations

from enum import StrEnum


class RequestKind(StrEnum):
    """What is asked for: an approval of one exact candidate, or what a form asks for."""

    APPROVAL = "approval"
    ASK = "ask"


class RequestStatus(StrEnum):
    """Where a request is.

    answered: somebody gave what an Ask asked for; it authorises nothing, and nothing uses it up.
    consumed: an approval that an effect has used up. revoked: one that a person took back before that. expired: nobody answered, or nobody used
    the approval, in its time. superseded: changes were asked for, or a part was kept, and a newer candidate is asked about. cancelled:
    withdrawn, because its workflow was cancelled, superseded or went elsewhere before an answer. invalidated: one that no longer counts,
    because a newer candidate was asked about or its workflow has ended.
    """

    PENDING = "pending"
    ANSWERED = "answered"
    APPROVED = "approved"
    DENIED = "denied"
    CHANGES_REQUESTED = "changes_requested"
    SUPERSEDED = "superseded"
    CONSUMED = "consumed"
    REVOKED = "revoked"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    INVALIDATED = "invalidated"


_CLOSED = frozenset({RequestStatus.EXPIRED, RequestStatus.INVALIDATED})

#: From each status, the statuses that one guarded statement may lead to. None is the opening.
MOVES: dict[RequestStatus | None, frozenset[RequestStatus]] = {
    None: frozenset({RequestStatus.PENDING}),
    RequestStatus.PENDING: frozenset(
        {
            RequestStatus.APPROVED,
            RequestStatus.DENIED,
            RequestStatus.CHANGES_REQUESTED,
            RequestStatus.SUPERSEDED,
            RequestStatus.CANCELLED,
            RequestStatus.ANSWERED,
        }
        | _CLOSED
    ),
    RequestStatus.ANSWERED: frozenset(),
    RequestStatus.APPROVED: frozenset({RequestStatus.CONSUMED, RequestStatus.REVOKED} | _CLOSED),
    RequestStatus.DENIED: frozenset(),
    RequestStatus.CHANGES_REQUESTED: frozenset({RequestStatus.SUPERSEDED}),
    RequestStatus.SUPERSEDED: frozenset(),
    RequestStatus.CONSUMED: frozenset(),
    RequestStatus.REVOKED: frozenset(),
    RequestStatus.EXPIRED: frozenset(),
    RequestStatus.CANCELLED: frozenset(),
    RequestStatus.INVALIDATED: frozenset(),
}

#: What a reviewer says of a candidate → the answer that the flow routes by.
ANSWERS: dict[str, str] = {"approve": "approved", "changes": "changes", "deny": "denied", "narrow": "narrowed"}

#: The same of everything that may be asked: to an Ask there is one answer, what is in it is another matter.
ANSWER = "answer"
VERDICTS: dict[str, str] = {**ANSWERS, ANSWER: "answered"}

#: The answer → the request's status after it.
STATUS_AFTER: dict[str, RequestStatus] = {
    "approved": RequestStatus.APPROVED,
    "changes": RequestStatus.CHANGES_REQUESTED,
    "denied": RequestStatus.DENIED,
    "narrowed": RequestStatus.SUPERSEDED,
    "answered": RequestStatus.ANSWERED,
}

#: What an approval may have become since, without anybody having answered otherwise.
AFTER_APPROVED = frozenset(
    {
        RequestStatus.APPROVED,
        RequestStatus.CONSUMED,
        RequestStatus.REVOKED,
        RequestStatus.EXPIRED,
        RequestStatus.INVALIDATED,
    }
)

#: Statuses in which a person's answer stands.
ANSWERED = frozenset(
    {
        RequestStatus.APPROVED,
        RequestStatus.CONSUMED,
        RequestStatus.DENIED,
        RequestStatus.CHANGES_REQUESTED,
        RequestStatus.SUPERSEDED,
        RequestStatus.ANSWERED,
    }
)

#: Answers that must say why: the next step reads it.
NEEDS_COMMENT = frozenset({"changes", "deny", "narrow"})

#: What a person takes back an approval with; kept as a review, but it answers nothing.
REVOKE = "revoke"


#: Where a request of a form may be. None of them lets anything be done.
OF_ASKS = frozenset(
    {
        RequestStatus.PENDING,
        RequestStatus.ANSWERED,
        RequestStatus.CANCELLED,
        RequestStatus.EXPIRED,
        RequestStatus.INVALIDATED,
    }
)


def is_legal(source: RequestStatus | None, target: RequestStatus) -> bool:
    """Whether a request may go from `source` to `target`."""
    return target in MOVES[source]
