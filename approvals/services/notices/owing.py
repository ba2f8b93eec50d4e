"""What has happened to a request, noted in the transaction in which it does. Every plane of requests calls these; nobody is told here.

A question that is opened by other code than `ApprovalPlane` (a form, a tool) needs `asked`; whatever ends questions, `withdrawn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from approvals.core.notices import NoticeKind
from approvals.store import notices as store
from flows.conf import conf


def asked(request_id: int, step: int, using: str) -> None:
    """A step of the question has begun: its people are asked."""
    _owe(request_id, NoticeKind.ASKED, step, using)


def reminded(request_id: int, number: int, using: str) -> None:
    """The moment of a reminder has come, counted from 1."""
    _owe(request_id, NoticeKind.REMINDER, number, using)


def escalated(request_id: int, number: int, using: str) -> None:
    """The people of this place in the escalation, counted from 1, may answer too."""
    _owe(request_id, NoticeKind.ESCALATED, number, using)


def assigned(request_id: int, user: Any, using: str) -> None:
    """Somebody marked this user (a key) as the one who looks at it."""
    if conf.NOTICE_CHANNELS:
        store.owe_assigned(request_id, user, using)


def decided(request_id: int, using: str) -> None:
    """The answer that ends it was given."""
    _owe(request_id, NoticeKind.DECIDED, 0, using)


def revoked(request_id: int, using: str) -> None:
    """An approval was taken back."""
    _owe(request_id, NoticeKind.REVOKED, 0, using)


def withdrawn(ids: Sequence[int], using: str) -> None:
    """These requests have moved on; of those that ended without an answer, or whose approval is good no longer, people are told."""
    store.owe_withdrawn(ids, using)


def _owe(request_id: int, kind: NoticeKind, number: int, using: str) -> None:
    if conf.NOTICE_CHANNELS:
        store.owe(request_id, kind, number, using)
