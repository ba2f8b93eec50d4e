"""Notices to accountable users: a workflow ended badly or needs a person. Its goal, names, ids and safe codes only; nothing that a model wrote.

Sent at least once, given up after days.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.core.mail import send_mail
from django.db.models import F, Q
from django.utils.translation import gettext as _

from flows.conf import conf
from flows.core import visible
from flows.core.protocol import WaitStatus
from flows.models import Notice, Wait
from flows.services import way_on
from flows.services.clock import now
from flows.services.way_out import BUDGET_SOFT, admin_path, over_soft, way_out
from flows.store.sql import committing

logger = logging.getLogger("outlast.notices")

#: Tries come 0 s, 3 s, 15 s, 1 min, 4 min, 17 min, 68 min, 4.5 h, 18 h and 3 days after the notice came to be owed.
MAX_TRIES = 10
#: So much of a goal is told.
MAX_GOAL = 300


def owe(workflow_id: UUID, user_id: Any, outcome: str, code: str, using: str) -> None:
    """Owe a notice, in the transaction of what it tells of. (Arrows out of running write theirs themselves.)"""
    Notice.objects.using(using).create(
        workflow_id=workflow_id, user_id=user_id, outcome=outcome, code=code, created_at=now(using), tries=0
    )


def send_owed(using: str, limit: int = 50) -> int:
    """Send notices that are owed, each claimed before it is sent; how many went out."""
    sent = 0
    for notice_id in _claim(using, limit):
        notice = Notice.objects.using(using).select_related("workflow__intent", "user").get(pk=notice_id)
        try:
            _send(notice, using)
        except Exception as error:  # noqa: BLE001 - a mail server may raise anything; the notice stays owed
            logger.warning("notice %s not sent: %s", notice_id, type(error).__name__)
            if notice.tries >= MAX_TRIES:
                Notice.objects.using(using).filter(pk=notice_id).update(gave_up_at=now(using))
            continue
        Notice.objects.using(using).filter(pk=notice_id).update(sent_at=now(using))
        sent += 1
    return sent


def _claim(using: str, limit: int) -> list[int]:
    """Count a try on notices that nobody else is sending; committed before anything is sent."""
    with committing("claim notices", using):
        owed = Notice.objects.using(using).select_for_update(skip_locked=True)
        ids = list(
            owed.filter(_is_due(using), sent_at=None, gave_up_at=None).order_by("created_at").values_list("pk", flat=True)[:limit]
        )
        Notice.objects.using(using).filter(pk__in=ids).update(tries=F("tries") + 1)
    return ids


def _is_due(using: str) -> Q:
    """Whose next try has come: a mail server may be away for hours."""
    moment = now(using)
    return reduce(or_, (Q(tries=done, created_at__lte=moment - timedelta(seconds=4**done - 1)) for done in range(MAX_TRIES)))


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
