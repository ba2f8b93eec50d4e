"""All that a reviewer needs on one page, as data: what will happen, what changed since last time, the evidence, what silence means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.core.binding import Refusal, may_answer
from approvals.core.diff import Diff, compare
from approvals.core.evidence import Row, apart, rows
from approvals.core.status import ANSWERS
from approvals.models import Request, Review
from approvals.services import people
from approvals.services.facts import request_facts
from flows import registry
from flows.core import payload
from flows.core.definition import Definition
from flows.core.nodes import Approval
from flows.services.clock import now

MAX_REVIEWS = 50


@dataclass(frozen=True, slots=True)
class Since:
    """An earlier candidate of the same question, and what is different now. `seen`: this reviewer answered that one."""

    revision: int
    seen: bool
    diff: Diff
    reviews: Sequence[Review]


@dataclass(frozen=True, slots=True)
class Packet:
    """One request as it is shown to one user.

    `routes`: verdict → the node it leads to, for the answers on offer. `opens`: the nodes whose gate asks for this approval.
    `words`: text in which the model speaks for itself, by its place; it is unverified and shown last.
    """

    request: Request
    now: datetime
    sound: bool
    choice: str
    value: list[Row]
    evidence: list[Row]
    words: list[tuple[str, str]]
    since: Since | None
    routes: Mapping[str, str]
    opens: list[str]
    refusal: Refusal | None
    reviews: Sequence[Review]


def packet(request: Request, user: Any, using: str) -> Packet:
    """Collect what is shown of a request to a user."""
    candidate = payload.decode(request.candidate)
    value, own = apart(candidate["value"])
    evidence, told = apart(payload.decode(request.evidence))
    known = request_facts(request.pk, using)
    assert known is not None
    definition = registry.definition(request.workflow.flow_name, request.workflow.flow_version)
    return Packet(
        request=request,
        now=now(using),
        sound=known.sound_digest == request.digest,
        choice=candidate["choice"],
        value=rows(value) if value not in (None, {}) or not own else [],
        evidence=rows(evidence) if evidence not in (None, {}, []) else [],
        words=[*_words(request.candidate_node, own), *_words("evidence", told)],
        since=_since(request, user, candidate, using),
        routes=_routes(request, definition),
        opens=_opens(request, definition),
        refusal=may_answer(known, people.facts(user, request)),
        reviews=_reviews(request, using),
    )


def _words(place: str, words: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"{place}.{key}" if key else place, text) for key, text in words.items() if text]


def _since(request: Request, user: Any, candidate: Mapping[str, Any], using: str) -> Since | None:
    """The newest earlier candidate that this user answered, else the newest earlier one."""
    earlier = (
        Request.objects.using(using).filter(workflow_id=request.workflow_id, node=request.node, pk__lt=request.pk).order_by("-pk")
    )
    # Calls of one turn stand side by side; what a tool was asked about in an earlier turn came before.
    earlier = earlier.filter(tool=request.tool)
    earlier = earlier.exclude(wait_id=request.wait_id) if request.tool else earlier
    seen = earlier.filter(reviews__by_id=user.pk).first()
    other = seen or earlier.first()
    if other is None:
        return None
    before = payload.decode(other.candidate)
    diff = compare(_body(before), _body(candidate))
    return Since(other.revision, seen is not None, diff, [r for r in _reviews(other, using) if not r.refused])


def _body(candidate: Mapping[str, Any]) -> dict[str, Any]:
    return {"choice": candidate["choice"], "value": candidate["value"]}


def _routes(request: Request, definition: Definition | None) -> dict[str, str]:
    node = definition.nodes.get(request.node) if definition else None
    routes = {"approved": node.approved, "changes": node.changes, "denied": node.denied} if isinstance(node, Approval) else {}
    if request.tool:  # whatever is answered, the step that asked goes on, and is told
        routes = dict.fromkeys(ANSWERS.values(), request.node)
    return {verdict: routes.get(answer, "") for verdict, answer in ANSWERS.items() if answer in request.answers}


def _opens(request: Request, definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    return [node.name for node in definition.nodes.values() if node.gate and node.gate.approved_by == request.node]


def _reviews(request: Request, using: str) -> list[Review]:
    return list(Review.objects.using(using).filter(request_id=request.pk).order_by("-pk")[:MAX_REVIEWS])
