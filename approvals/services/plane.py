"""What the durable plane asks of the human plane: open the request behind a wait, close it, tell the gate, use an approval up; and remind
people, or let more of them answer, when its time has come.

Every call runs inside the arrow's own transaction, with the workflow's row locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from approvals.core.seats import open_to
from approvals.core.status import STATUS_AFTER, RequestStatus
from approvals.services import eligible
from approvals.services.facts import decoded, digest_of
from approvals.services.locked import locked
from approvals.services.notices import owing
from approvals.store import requests as store
from flows.conf import conf
from flows.core import payload
from flows.core.errors import HalfMove
from flows.core.history import Asked
from flows.core.moves import Park
from flows.core.nodes.approval import Approval
from flows.core.nodes.base import Node
from flows.core.protocol import TimerKind
from flows.core.state import ApprovalFact
from flows.models import Workflow
from flows.registry import Opening
from flows.store import timers

#: While a request is one of these, its candidate is given to code: it has to be what people approved.
GIVEN = frozenset({RequestStatus.APPROVED, RequestStatus.CONSUMED})


class ApprovalPlane:
    """The owner of waits of the kinds "approval" and "ask": both put a question to people, and only an approval is told to a gate."""

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        """Why nobody could answer this question; "": enough people can."""
        if not conf.REFUSE_UNANSWERABLE:
            return ""
        requester = Workflow.objects.using(using).values_list("user_id", flat=True).get(pk=workflow_id)
        return eligible.lacking(park.detail["steps"], requester, using, self_approval=bool(park.detail["self_approval"]))

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        """Nobody has answered before they are asked."""
        return None

    def opened(self, using: str, opening: Opening) -> None:
        """Write the request; an older one of the same node counts no longer."""
        detail, node = opening.park.detail, opening.park.node
        candidate = detail["candidate"]
        producer = f"the candidate of {detail['candidate_node']}"
        frozen = {name: candidate[name] for name in ("choice", "value", "digest", "revision")}
        evidence = candidate.get("evidence")
        owing.withdrawn(store.replace(opening.workflow_id, node, using), using)
        question = store.Question(
            wait=opening.wait_id,
            steps=payload.text(detail["steps"], f"the steps of {node}"),
            escalation=payload.text(detail["escalation"], f"the escalation of {node}"),
            ladder=detail["ladder"],
            bulk=bool(detail["bulk"]),
            subset=detail["subset"],
            audiences=open_to(detail["steps"], 0, detail["escalation"], 0),
            answers=list(detail["answers"]),
            self_approval=bool(detail["self_approval"]),
            candidate_node=detail["candidate_node"],
            candidate=payload.encode(frozen, producer, conf.MAX_RESULT_BYTES * 2),
            evidence=None if evidence is None else payload.encode(evidence, producer, conf.MAX_RESULT_BYTES * 2),
            digest=candidate["digest"],
            revision=candidate["revision"],
            on_expiry=opening.park.on_expiry,
        )
        request_id = store.open_request(question, using)
        if request_id is None:
            raise HalfMove(f"wait {opening.wait_id} was opened and its approval request was not")
        owing.asked(request_id, 0, using)
        timers.set_moments(opening.wait_id, _moments(detail), using)

    def due(self, using: str, moments: Sequence[tuple[int, str, str]]) -> None:
        """Remind those who are asked; let the next of the escalation answer too. The sweep holds the workflows.

        Of several that have come at once (nobody looked at the clock for a while) the last one counts; in an escalation it brings all before it.
        """
        requests = store.behind([*{wait for wait, _kind, _name in moments}], using)
        tell([(requests[wait], kind, int(name)) for wait, kind, name in moments if wait in requests], using)

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        """Close what is still open behind these waits."""
        owing.withdrawn([request_id for request_id, _ in store.close(wait_ids, how, using)], using)

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """Withdraw what is still open, and let no approval outlive the run that it was for."""
        owing.withdrawn(store.end(workflow_ids, using), using)

    def asks_the_same(self, using: str, wait_id: int, park: Park) -> bool:
        """The same people, the same answers, exactly the same candidate, and the same end if nobody answers: a request never changes."""
        asked = store.asked(wait_id, using)
        if asked is None or not _same(asked, park.detail):
            return False
        ends_alike = asked.status != RequestStatus.PENDING or asked.on_expiry == park.on_expiry
        return ends_alike and asked.digest == park.detail["candidate"]["digest"]

    def migrated(self, using: str, workflow_id: Any, nodes: Mapping[str, Node], kept: int | None) -> int:
        """An open question goes over with its wait. An approval that nobody used does, if the same people would be asked about the same node."""
        gone = [asked for asked in store.live(workflow_id, using) if not _goes_over(asked, nodes.get(asked.node), kept)]
        owing.withdrawn(store.retire([asked.id for asked in gone], using), using)
        return sum(asked.status == RequestStatus.PENDING for asked in gone)

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        """The newest request for approval of each node; None where nobody was asked for one yet."""
        found: dict[str, ApprovalFact | None] = dict.fromkeys(nodes)
        for row in store.newest(workflow_id, nodes, using):
            sound = row.status not in GIVEN or digest_of(row.candidate) == row.digest
            candidate = decoded(row.candidate) if sound else {}
            found[row.node] = ApprovalFact(
                request_id=str(row.id),
                status=row.status,
                digest=row.digest,
                intent_version=row.intent_version,
                candidate=candidate if isinstance(candidate, Mapping) else {},
                sound=sound,
                expired=row.expired,
                used_by=row.used_by,
                used_at=(row.used_node, row.used_visit) if row.used_node is not None and row.used_visit is not None else None,
            )
        return found

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        """All requests of these workflows; what an answer made of a request is told apart from what became of the request later."""
        found: dict[Any, list[Asked]] = {}
        for row in store.of_workflows(workflow_ids, using):
            answered = STATUS_AFTER[row.answer].value if row.answer else ""
            question = row.candidate_node, row.ladder, tuple(row.answers), row.self_approval
            bound = row.digest, row.intent_version
            asked = Asked(
                row.wait, row.node, str(row.id), *bound, answered, row.expires_at, row.used_by, question, row.revoked_at, row.kind
            )
            found.setdefault(row.workflow, []).append(asked)
        return found

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        """Use the approval up for this activity, in its time and once; the same activity again is the same use."""
        return store.use(int(request_id), activity_seq, using)


def tell(moments: Sequence[tuple[int, str, int]], using: str) -> None:
    """What moments that concern people do to their requests: (request, kind, number) of each, in any order."""
    last: dict[tuple[int, str], int] = {}
    for request_id, kind, number in moments:
        last[request_id, kind] = max(last.get((request_id, kind), 0), number)
    for (request_id, kind), number in sorted(last.items()):  # by request, and an escalation before a reminder
        if kind == TimerKind.ESCALATION:
            _escalate(request_id, number, using)
        if kind == TimerKind.REMINDER:
            owing.reminded(request_id, number, using)


def _escalate(request_id: int, number: int, using: str) -> None:
    row = locked(request_id, using)
    audiences = open_to(row.steps, row.step, row.escalation, number)
    if store.escalate(row.pk, escalated=number, step=row.step, audiences=audiences, using=using):
        for each in range(row.escalated + 1, number + 1):
            owing.escalated(row.pk, each, using)


def _moments(detail: Mapping[str, Any]) -> list[tuple[str, str, timedelta]]:
    """When people are reminded, and when it is escalated to others: by number, from 1."""
    reminders = [(TimerKind.REMINDER.value, str(n), timedelta(seconds=after)) for n, after in enumerate(detail["reminders"], 1)]
    chain = detail["escalation"]
    return reminders + [(TimerKind.ESCALATION.value, str(n), timedelta(seconds=one["after"])) for n, one in enumerate(chain, 1)]


def _goes_over(asked: store.Asked, node: Node | None, kept: int | None) -> bool:
    if asked.status == RequestStatus.PENDING:
        return asked.wait_id == kept
    return isinstance(node, Approval) and _same(asked, node.question)


def _same(asked: store.Asked, question: Mapping[str, Any]) -> bool:
    """Whether a node would ask the same people, about the same node's candidate, for the same answers."""
    return (asked.candidate_node, asked.ladder, asked.answers, asked.self_approval) == (
        question["candidate_node"],
        question["ladder"],
        list(question["answers"]),
        bool(question["self_approval"]),
    )
