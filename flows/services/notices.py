"""Notices to accountable users: a workflow ended badly or needs a person. Its goal, names, ids and safe codes only; nothing that a model wrote.

Sent at least once, given up after days (`flows.services.outbox`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.mail import send_mail
from django.utils.translation import gettext as _

from flows import registry
from flows.conf import conf
from flows.core import visible
from flows.core.protocol import WaitStatus
from flows.models import Notice, Wait
from flows.services import way_on
from flows.services.clock import now
from flows.services.outbox import BATCH, Outbox
from flows.services.way_out import BUDGET_SOFT, admin_path, over_soft, way_out

#: So much of a goal is told.
MAX_GOAL = 300


def owe(workflow_id: UUID, user_id: Any, outcome: str, code: str, using: str) -> None:
    """Owe a notice, in the transaction of what it tells of. (Arrows out of running write theirs themselves.)"""
    Notice.objects.using(using).create(
        workflow_id=workflow_id, user_id=user_id, outcome=outcome, code=code, created_at=now(using), tries=0
    )


def send_owed(using: str, limit: int = BATCH) -> int:
    """Send what is due of every outbox, each row claimed before it is sent; how many messages went out."""
    return sum(outbox.send_owed(using, limit) for outbox in registry.outboxes())


class NoticeOutbox(Outbox):
    """The notices of this module."""

    model = Notice
    related = ("workflow__intent", "user")

    def send(self, rows: Sequence[Notice], using: str) -> int:
        for row in rows:
            _send(row, using)
        return len(rows)


def _send(notice: Notice, using: str) -> None:
    address = getattr(notice.user, "email", "") if notice.user else ""
    if not address:
        return
    workflow = notice.workflow
    soft = notice.code == BUDGET_SOFT
    subject = _("%(flow)s %(key)s: %(outcome)s") % {
        "flow": workflow.flow_name,
        "key": workflow.key or workflow.pk,
        "outcome": " ".join([BUDGET_SOFT, *(one.kind for one in over_soft(notice, using))]) if soft else notice.outcome,
    }
    told = {
        "id": workflow.pk,
        "node": workflow.node,
        "code": notice.code or "–",
        "outcome": workflow.outcome or workflow.status if soft else notice.outcome,
    }
    waits = Wait.objects.using(using).filter(workflow_id=workflow.pk, status=WaitStatus.OPEN)
    parts = [
        _("Workflow %(id)s is at %(node)s with outcome %(outcome)s and code %(code)s.") % told,
        _("Goal: %(goal)s") % {"goal": visible.plain(" ".join(workflow.intent.goal.split())[:MAX_GOAL])},
        _("Decision: %(needed)s") % {"needed": visible.plain(way_on.needed(workflow, list(waits), using).says)},
        _("In the admin: %(path)s") % {"path": admin_path("workflow", workflow.pk)},
        _("In a terminal: %(command)s") % {"command": f"python manage.py flows show {workflow.pk}"},
    ]
    body = "\n\n".join(part for part in ("\n".join(parts), way_out(notice, using)) if part)
    send_mail(" ".join(subject.split()), body, conf.NOTICE_FROM, [address])
