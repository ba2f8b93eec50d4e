"""People with addresses, what they were told, and a channel that remembers what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.core import mail

from approvals.models import Notice
from approvals.services.channels import Note
from approvals.services.notices.outbox import RequestOutbox, expand
from flows.services import notices
from tests.support.approving import World

SITE = "https://admin.example/admin"
FEED = {"BACKEND": "tests.support.noticing.Feed"}
MAIL = {"BACKEND": "approvals.services.channels.Mail"}

#: What every `Feed` was given, in order.
FED: list[Note] = []


class Feed:
    """For all, in memory."""

    personal = False

    def __init__(self, fault: str = "") -> None:
        if fault:
            raise ValueError(fault)

    def reaches(self, user: Any) -> bool:
        return True

    def send(self, notes: Sequence[Note]) -> None:
        FED.extend(notes)


class Broken(Feed):
    """It takes nothing."""

    def send(self, notes: Sequence[Note]) -> None:
        raise ConnectionRefusedError("a secret of the server")


class Dying(Feed):
    """The process ends while it sends."""

    alive = False

    def send(self, notes: Sequence[Note]) -> None:
        if not Dying.alive:
            raise SystemExit
        super().send(notes)


def with_addresses(world: World) -> None:
    """Everybody has one."""
    for user in get_user_model().objects.all():
        type(user).objects.filter(pk=user.pk).update(email=f"{user.username}@example.org")
        user.email = f"{user.username}@example.org"
    for name in ("robin", "rita", "ron", "vera", "otto", "sue"):
        getattr(world, name).refresh_from_db()


def send() -> list[tuple[str, str]]:
    """Send all that is due now; (who, first line) of the mails, in order of who."""
    before = len(mail.outbox)
    notices.send_owed("default", 500)
    return sorted((message.to[0].partition("@")[0], str(message.body).splitlines()[0]) for message in mail.outbox[before:])


def who() -> list[str]:
    """Send all that is due now; to whom."""
    return [name for name, _ in send()]


def write_out() -> None:
    """Write events out for people and channels, and send nothing yet."""
    for row in Notice.objects.filter(channel="", sent_at=None).select_related(*RequestOutbox.related):
        expand(row, "default")
        Notice.objects.filter(pk=row.pk).update(sent_at=row.created_at)


def fates(**wanted: Any) -> list[tuple[str, str, str]]:
    """(whom, kind, "sent", "owed" or why not) of the rows for people and channels."""
    rows = Notice.objects.filter(**wanted).exclude(channel="").order_by("pk")
    return [(row.user_label or row.channel, row.kind, _fate(row)) for row in rows]


def _fate(row: Notice) -> str:
    if row.sent_at:
        return "sent"
    return row.why if row.gave_up_at else "owed"
