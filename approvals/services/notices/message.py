"""What a notice says, from the rows of the moment at which it is sent. Names, ids, times and the goal; nothing that a model wrote."""

from __future__ import annotations

from approvals.core.notices import NoticeKind
from approvals.models import Notice
from approvals.services.channels import Note
from flows.core import visible
from flows.services.notices import MAX_GOAL
from flows.services.way_out import admin_path

#: So much of a name is told.
MAX_NAME = 200


def note_of(row: Notice) -> Note:
    """The note of a row that comes with its request, workflow, intent and user."""
    request, workflow = row.request, row.request.workflow
    person = f"-{row.user_id}" if row.user_label else ""
    return Note(
        id=f"{row.kind}-{request.pk}-{row.number}{person}",
        kind=NoticeKind(row.kind),
        number=row.number,
        at=row.created_at,
        request=request.pk,
        revision=request.revision,
        flow=_name(workflow.flow_name),
        key=_name(workflow.key or str(workflow.pk)),
        node=_name(request.node),
        workflow=str(workflow.pk),
        goal=visible.plain(" ".join(workflow.intent.goal.split())[:MAX_GOAL]),
        step=request.step + 1,
        steps=len(request.steps),
        whom=_name(request.asked),
        status=request.status,
        answer=request.answer,
        asked_at=request.asked_at,
        expires_at=request.expires_at,
        url=admin_path("request", request.pk, "decide", "outlast_approvals"),
        to=row.user,
        accountable=row.user_id is not None and row.user_id == request.requester_id,
    )


def _name(text: str) -> str:
    return visible.plain(text[:MAX_NAME])
