"""E-mail: plain text, one mail a notice or one for several questions; the mails about one request are one thread.

Templates, which a project may override: `outlast_approvals/mail/KIND.txt` and `KIND.subject.txt` (or `subject.txt` for all kinds), and the
same of `digest`. The subject is the same for every kind, because some mail programs tell threads apart by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from approvals.services.channels.base import Note
from flows.conf import conf

PLACE = "outlast_approvals/mail"


class Mail:
    """To the address of each person's account, by Django's own mail settings."""

    personal = True

    def reaches(self, user: Any) -> bool:
        """Whether the account has an address."""
        return bool(address_of(user))

    def send(self, notes: Sequence[Note]) -> None:
        """One mail to one person."""
        first, sender = notes[0], conf.NOTICE_FROM or settings.DEFAULT_FROM_EMAIL
        name = first.kind.value if len(notes) == 1 else "digest"
        context = {"note": first, "notes": notes, "linked": bool(conf.ADMIN_URL)}
        subject = render_to_string([f"{PLACE}/{name}.subject.txt", f"{PLACE}/subject.txt"], context)
        body = render_to_string(f"{PLACE}/{name}.txt", context)
        message = EmailMessage(
            subject=" ".join(subject.split()),
            body=re.sub(r"\n{3,}", "\n\n", body).strip() + "\n",
            from_email=sender,
            to=[address_of(first.to)],
            headers=_headers(notes, _domain(sender)),
        )
        message.send()


def address_of(user: Any) -> str:
    """The e-mail address of an account of any user model; empty without one."""
    model: Any = get_user_model()
    field = model.get_email_field_name() if hasattr(model, "get_email_field_name") else "email"
    return str(getattr(user, field, "") or "").strip()


def _headers(notes: Sequence[Note], domain: str) -> dict[str, str]:
    """The id is the same at every try, so that a mail that went out twice is known to mail programs as one."""
    threads = " ".join(f"<outlast.request.{request}@{domain}>" for request in dict.fromkeys(note.request for note in notes))
    headers = {"Message-ID": f"<outlast.notice.{notes[0].id}@{domain}>", "Auto-Submitted": "auto-generated"}
    return {**headers, "References": threads, **({"In-Reply-To": threads} if len(notes) == 1 else {})}


def _domain(sender: str) -> str:
    """Ours, whichever machine sends: that of the admin, else of the sender."""
    return urlsplit(conf.ADMIN_URL).hostname or parseaddr(sender)[1].rpartition("@")[2] or "outlast.invalid"
