"""All that a reviewer needs on one page, as data: what will happen, what changed since last time, the evidence, what silence means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, F, When

from approvals.core.binding import Refusal, may_answer, place_of
from approvals.core.diff import Diff, compare, text_of
from approvals.core.evidence import Row, apart, rows
from approvals.core.ladder import Call, Rung, calls, rungs
from approvals.core.narrow import members
from approvals.core.seats import Place
from approvals.core.status import ANSWERS
from approvals.models import Request, Review
from approvals.services import people
from approvals.services.acts import Acts, acts
from approvals.services.facts import decoded, proposed, request_facts
from flows import registry
from flows.core import redaction
from flows.core.definition import Definition
from flows.core.nodes import Approval
from flows.models import Verification
from flows.services import redacting
from flows.services.clock import now

MAX_REVIEWS = 50
MAX_EARLIER = 20


@dataclass(frozen=True, slots=True)
class Since:
    """An earlier candidate of the same question, and what is different now. `seen`: this reviewer answered that one.

    `others`: (request, revision) of the other earlier ones, newest first, for who remembers another one.
    """

    revision: int
    seen: bool
    diff: Diff
    reviews: Sequence[Review]
    others: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Packet:
    """One request as it is shown to one user.

    `routes`: verdict → the node it leads to, for the answers on offer. `opens`: the nodes whose gate asks for this approval.
    `words`: text in which the model speaks for itself, by its place; it is unverified and shown last. `checks`: what verifiers of the flow
    recorded about exactly this candidate. `approvals`: those that are counted, oldest first. `place`: in whose name an answer of this user
    would count; None: they may not answer. `proposed`, `told`: candidate and evidence as this user is shown them. `acts`: what else they may do.
    `parts`: the members of the list of which a part may be kept.
    """

    request: Request
    now: datetime
    sound: bool
    choice: str
    proposed: Any
    told: Any
    value: list[Row]
    evidence: list[Row]
    words: list[tuple[str, str]]
    since: Since | None
    routes: Mapping[str, str]
    opens: list[str]
    refusal: Refusal | None
    reviews: Sequence[Review]
    checks: Sequence[Verification]
    rungs: Sequence[Rung]
    calls: Sequence[Call]
    approvals: Sequence[Review]
    place: Place | None
    acts: Acts
    parts: Sequence[str]


def packet(request: Request, user: Any, using: str, *, since: int | None = None) -> Packet:
    """Collect what is shown of a request to a user; to nobody in particular where `user` is None.

    `since`: the earlier request to compare with; default: the last one that they answered.
    """
    hidden = redacting.hidden_from(user)
    candidate = _hidden(proposed(request.candidate), hidden)
    value, own = apart(candidate["value"])
    raw_evidence = redaction.hide("evidence", decoded(request.evidence), hidden)
    evidence, told = apart(raw_evidence)
    known = request_facts(request.pk, using)
    assert known is not None
    definition = registry.definition(request.workflow.flow_name, request.workflow.flow_version)
    person, moment = people.facts(user, request), now(using)
    refusal = may_answer(known, person)
    return Packet(
        request=request,
        now=moment,
        sound=known.sound_digest == request.digest,
        choice=candidate["choice"],
        proposed=candidate["value"],
        told=raw_evidence,
        value=rows(value) if value not in (None, {}) or not own else [],
        evidence=rows(evidence) if evidence not in (None, {}, []) else [],
        words=[*_words(request.candidate_node, own), *_words("evidence", told)],
        since=_since(request, user, candidate, since, using),
        routes=_routes(request, definition),
        opens=_opens(request, definition),
        refusal=refusal,
        reviews=reviews_of(request, using),
        checks=_checks(request, using),
        rungs=rungs(request.steps, step=request.step, given=request.given, status=request.status, answer=request.answer),
        calls=calls(request.escalation, request.escalated),
        approvals=_approvals(request, using),
        place=place_of(known, person) if refusal is None else None,
        acts=acts(request, user, moment, using, answers=refusal is None) if user is not None else Acts(),
        parts=[text_of(one) for one in members(candidate, request.subset)] if request.subset else [],
    )


def _hidden(candidate: dict[str, Any], hidden: Sequence[redaction.Path]) -> dict[str, Any]:
    return {**candidate, "value": redaction.hide("candidate", candidate["value"], hidden)}


def _words(place: str, words: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"{place}.{key}" if key else place, text) for key, text in words.items() if text]


def _since(request: Request, user: Any, candidate: Mapping[str, Any], chosen: int | None, using: str) -> Since | None:
    """The earlier candidate that was chosen, else the newest one that this user answered, else the newest one.

    "Answered" is what proves that somebody had it before their eyes: the answer names its digest. That a page was opened proves nothing.
    """
    earlier = (
        Request.objects.using(using).filter(workflow_id=request.workflow_id, node=request.node, pk__lt=request.pk).order_by("-pk")
    )
    # Calls of one turn stand side by side; what a tool was asked about in an earlier turn came before.
    earlier = earlier.filter(tool=request.tool)
    earlier = earlier.exclude(wait_id=request.wait_id) if request.tool else earlier
    answered = earlier.filter(reviews__by_id=user.pk if user is not None else None, reviews__digest=F("digest"))
    seen = answered.first() if user is not None else None
    other = (earlier.filter(pk=chosen).first() if chosen is not None else None) or seen or earlier.first()
    if other is None:
        return None
    diff = compare(_hidden(proposed(other.candidate), redacting.hidden_from(user)), candidate)
    knows = other == seen or (user is not None and answered.filter(pk=other.pk).exists())
    others = earlier.exclude(pk=other.pk).values_list("pk", "revision")[:MAX_EARLIER]
    return Since(other.revision, knows, diff, [r for r in reviews_of(other, using) if not r.refused], list(others))


def _routes(request: Request, definition: Definition | None) -> dict[str, str]:
    node = definition.nodes.get(request.node) if definition else None
    routes = (
        {"approved": node.approved, "changes": node.changes, "denied": node.denied, "narrowed": node.name}
        if isinstance(node, Approval)
        else {}
    )
    if request.tool:  # whatever is answered, the step that asked goes on, and is told
        routes = dict.fromkeys(ANSWERS.values(), request.node)
    return {verdict: routes.get(answer, "") for verdict, answer in ANSWERS.items() if answer in request.answers}


def _opens(request: Request, definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    return [node.name for node in definition.nodes.values() if node.gate and node.gate.approved_by == request.node]


def reviews_of(request: Request, using: str) -> list[Review]:
    """What people said, the newest first, at most `MAX_REVIEWS`; those that were refused give way, and hide none that was taken."""
    first = Case(When(refused="", then=0), default=1)
    found = Review.objects.using(using).filter(request_id=request.pk).order_by(first, "-pk")[:MAX_REVIEWS]
    return sorted(found, key=lambda review: review.pk, reverse=True)


def _approvals(request: Request, using: str) -> list[Review]:
    """Those that were taken, whatever was refused besides."""
    rows = Review.objects.using(using).filter(request_id=request.pk, refused="", verdict="approve")
    return list(rows.order_by("pk"))


def _checks(request: Request, using: str) -> list[Verification]:
    """What each verifier found last about exactly this candidate: the digest and the revision that the gate asks for too."""
    rows = Verification.objects.using(using).filter(
        workflow_id=request.workflow_id, candidate_node=request.candidate_node, digest=request.digest, revision=request.revision
    )
    return list(rows.order_by("node", "-pk").distinct("node"))
