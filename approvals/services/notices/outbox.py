"""The outbox of what people are told of requests: an event becomes a row for each person and channel; each is judged anew, then sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min

from approvals.core.binding import may_answer
from approvals.core.notices import DIGEST, OPEN, Moot, NoticeKind
from approvals.core.status import RequestStatus
from approvals.models import Notice
from approvals.services import people
from approvals.services.channels.base import Configured, configured
from approvals.services.facts import request_facts
from approvals.services.notices import recipients
from approvals.services.notices.message import note_of
from flows.conf import conf
from flows.models.notice import OWED
from flows.services import identify
from flows.services.clock import now
from flows.services.outbox import Outbox
from flows.store.sql import committing


class RequestOutbox(Outbox):
    """Notices of requests."""

    model = Notice
    related = ("request__workflow__intent", "user")

    def bundles(self, rows: Sequence[Notice]) -> Sequence[Sequence[Notice]]:
        """What waited for each other goes to a person in one message."""
        if conf.NOTICE_DIGEST_SECONDS is None:
            return super().bundles(rows)
        found: dict[Any, list[Notice]] = {}
        for row in rows:
            found.setdefault((row.channel, row.user_id) if _gathers(row) else row.pk, []).append(row)
        return list(found.values())

    def moot(self, row: Notice, using: str) -> str:
        """The request as it is now, the person as they are now."""
        if why := _closed(row, using):
            return why
        if not row.channel:
            return ""
        channel = configured().get(row.channel)
        if channel is None or not channel.takes(row.kind):
            return Moot.CHANNEL_GONE
        if row.user_label:
            return _no_longer_for(row, using) or ("" if channel.channel.reaches(row.user) else Moot.NO_ADDRESS)
        return Moot.NEVER_TOLD if row.kind == NoticeKind.WITHDRAWN and not _was_told(row, using) else ""

    def send(self, rows: Sequence[Notice], using: str) -> int:
        """An event is written out for those whom it concerns; everything else goes out by its channel, as one message."""
        if not rows[0].channel:
            for row in rows:
                expand(row, using)
            return 0
        configured()[rows[0].channel].channel.send([note_of(row) for row in rows])
        return 1


def expand(event: Notice, using: str) -> None:
    """Write a row for each person and each channel that an event concerns. Twice is once: whoever was told is not told again."""
    channels = [one for one in configured().values() if one.takes(event.kind)]
    personal = [one for one in channels if one.channel.personal]
    users = recipients.of(event, using) if personal else []
    moment = now(using)
    rows = [_row(event, one, moment) for one in channels if not one.channel.personal]
    rows += [_row(event, one, moment, user, _gathered(event, one, user, moment, using)) for one in personal for user in users]
    with committing("tell people", using):
        Notice.objects.using(using).bulk_create(rows, ignore_conflicts=True)


def _row(event: Notice, channel: Configured, moment: datetime, user: Any = None, due: datetime | None = None) -> Notice:
    return Notice(
        request_id=event.request_id,
        channel=channel.name,
        user_id=None if user is None else user.pk,
        user_label="" if user is None else identify.label(user) or str(user.pk),
        kind=event.kind,
        number=event.number,
        created_at=moment,
        due_at=due,
    )


def _gathers(row: Notice) -> bool:
    return bool(row.user_label) and row.kind in DIGEST


def _gathered(event: Notice, channel: Configured, user: Any, moment: datetime, using: str) -> datetime | None:
    """Until when a notice waits for others of that person: with those that wait already, and never past half of the time to answer."""
    window = conf.NOTICE_DIGEST_SECONDS
    if window is None or event.kind not in DIGEST:
        return None
    waiting = Notice.objects.using(using).filter(OWED, channel=channel.name, user_id=user.pk, kind__in=sorted(DIGEST), tries=0)
    together = waiting.filter(due_at__gt=moment).aggregate(first=Min("due_at"))["first"]
    ends = together or moment + timedelta(seconds=float(window))
    expires = event.request.expires_at
    return min(ends, moment + max(expires - moment, timedelta()) / 2) if expires is not None else ends


# ---------------------------------------------------------------------- judging


def _closed(row: Notice, using: str) -> str:
    """Whether what a notice tells of an open question is so no longer."""
    request = row.request
    if row.kind not in OPEN:
        return ""
    if request.status != RequestStatus.PENDING or (request.expires_at is not None and request.expires_at <= now(using)):
        return Moot.CLOSED
    if row.kind == NoticeKind.ASKED and row.number != request.step:
        return Moot.OVERTAKEN
    if row.kind == NoticeKind.ASSIGNED:
        later = Notice.objects.using(using).filter(request=request, kind=row.kind, channel="", number__gt=row.number)
        other = row.user_id is not None and row.user_id != request.claimed_by_id
        return Moot.OVERTAKEN if other or later.exists() else ""
    return ""


def _no_longer_for(row: Notice, using: str) -> str:
    """Why a person need not hear of it any more: the account, the right, an answer of theirs meanwhile."""
    user, request = row.user, row.request
    if user is None:
        return Moot.ACCOUNT_GONE
    if not user.is_active:
        return Moot.USER_INACTIVE
    accountable = user.pk == request.requester_id
    if row.kind in OPEN and not (accountable and row.kind == NoticeKind.ESCALATED):
        known = request_facts(request.pk, using)
        refusal = None if known is None else may_answer(known, people.facts(user, request))
        return refusal.code.value if refusal is not None else ""
    if not accountable and not any(people.has_permission(user, one, request) for one in (people.ANSWER, people.VIEW)):
        return Moot.NOT_PERMITTED
    return Moot.NEVER_TOLD if row.kind == NoticeKind.WITHDRAWN and not _was_told(row, using) else ""


def _was_told(row: Notice, using: str) -> bool:
    """Whether this person, or this channel, may have heard of the question."""
    return recipients.told(row.request_id, using).filter(channel=row.channel, user=row.user).exists()
