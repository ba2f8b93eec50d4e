"""What the durable plane asks of the human plane for the waits beside activities: several requests behind one, each about one call of a tool.

Every call runs inside the arrow's own transaction, with the workflow's row locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.seats import open_to
from approvals.core.status import RequestStatus
from approvals.services import eligible, plane, turns
from approvals.services.notices import owing
from approvals.store import calls
from approvals.store import requests as store
from flows.conf import conf
from flows.core import payload
from flows.core.errors import HalfMove
from flows.core.history import Asked
from flows.core.moves import Park
from flows.core.nodes.base import Node
from flows.core.protocol import TimerKind
from flows.core.state import ApprovalFact
from flows.models import Workflow
from flows.registry import Opening
from flows.store import timers

#: Moments are named by request and number.
SEPARATOR = ":"


class ToolPlane:
    """The owner of waits of kind "tool_approval"."""

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        """Why nobody could answer about one of the calls; "": enough people can."""
        if not conf.REFUSE_UNANSWERABLE:
            return ""
        requester = Workflow.objects.using(using).values_list("user_id", flat=True).get(pk=workflow_id)
        for call in park.detail["calls"]:
            reason = eligible.lacking(call["steps"], requester, using, self_approval=bool(call["self_approval"]))
            if reason:
                return _("%(tool)s: %(reason)s") % {"tool": call["tool"], "reason": reason}
        return ""

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        """Nobody has answered before they are asked."""
        return None

    def opened(self, using: str, opening: Opening) -> None:
        """Write a request for each call."""
        for call in opening.park.detail["calls"]:
            producer = f"a call of {call['tool']}"
            frozen = {name: call["candidate"][name] for name in ("choice", "value", "digest")} | {"revision": call["number"]}
            question = calls.Question(
                workflow=opening.workflow_id,
                wait=opening.wait_id,
                visit=opening.visit,
                activity=opening.activity_seq or 0,
                tool=call["tool"],
                call=call["number"],
                digest=call["candidate"]["digest"],
                candidate=payload.encode(frozen, producer, conf.MAX_RESULT_BYTES * 2),
                steps=payload.text(call["steps"], producer),
                escalation=payload.text(call["escalation"], producer),
                ladder=call["ladder"],
                answers=call["answers"],
                self_approval=bool(call["self_approval"]),
                audiences=open_to(call["steps"], 0, call["escalation"], 0),
                expires=call["expires"],
            )
            request = calls.open_call(question, using)
            if request is None:
                raise HalfMove(f"wait {opening.wait_id} was opened and the request about {call['tool']} was not")
            timers.set_moments(opening.wait_id, _moments(request, call), using)
            owing.asked(request, 0, using)

    def due(self, using: str, moments: Sequence[tuple[int, str, str]]) -> None:
        """Let more people answer, and let go of what nobody answered in its time; the sweep holds the workflows."""
        named = [
            (kind, name.partition(SEPARATOR))
            for _wait, kind, name in moments
            if kind in (TimerKind.REMINDER, TimerKind.ESCALATION)
        ]
        plane.tell([(int(request), kind, int(number)) for kind, (request, _colon, number) in named], using)
        for wait in dict.fromkeys(wait for wait, kind, _name in moments if kind == TimerKind.REQUEST_EXPIRY):
            turns.time_is_over(wait, using)

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        """The activity goes elsewhere, or a person looks at it: what is still open is withdrawn."""
        owing.withdrawn([request for request, _status in store.close(wait_ids, how, using)], using)

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """Nothing: the plane of approval nodes ends all requests of a workflow, these too."""

    def asks_the_same(self, using: str, wait_id: int, park: Park) -> bool:
        """Never: what a tool would ask under another definition, only its code can say."""
        return False

    def migrated(self, using: str, workflow_id: Any, nodes: Mapping[str, Node], kept: int | None) -> int:
        """The activity is run again under the new definition, and asks anew; what it has executed stays executed."""
        retired = calls.retire(workflow_id, using)
        owing.withdrawn([request for request, _status in retired], using)
        return sum(status == RequestStatus.CANCELLED for _request, status in retired)

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        """No gate asks for the approval of a tool."""
        return {}

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        """Nothing: replay takes what tools asked as given."""
        return {}

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        """Only the call itself uses its approval up (`approvals.services.guard`)."""
        return False


def _moments(request: int, call: Mapping[str, Any]) -> list[tuple[str, str, timedelta]]:
    """When people are reminded, when it is escalated, and when its time is over."""

    def named(number: int) -> str:
        return f"{request}{SEPARATOR}{number}"

    reminders = [(TimerKind.REMINDER.value, named(n), timedelta(seconds=after)) for n, after in enumerate(call["reminders"], 1)]
    chain = [
        (TimerKind.ESCALATION.value, named(n), timedelta(seconds=one["after"])) for n, one in enumerate(call["escalation"], 1)
    ]
    return [*reminders, *chain, (TimerKind.REQUEST_EXPIRY.value, str(request), timedelta(seconds=call["expires"]))]
