"""What is recorded of a request, in the form that the judge takes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from approvals.core.binding import RequestFacts, Taken
from approvals.core.seats import gone
from approvals.models.wording import asked_in_words
from approvals.services import people
from approvals.store import requests as store
from approvals.store import reviews
from flows.core import canonical, payload
from flows.core.errors import PayloadError


def request_facts(request_id: int, using: str) -> RequestFacts | None:
    """The facts of a request at this moment; None if there is none."""
    row = store.facts(request_id, using)
    return None if row is None else judged(request_id, row, using)


def judged(request_id: int, row: store.Recorded, using: str) -> RequestFacts:
    """The same of a request that has been read."""
    taken = reviews.taken(request_id, using)
    persons = people.persons([row.requester, *(user for one in taken for user in (one.by, one.for_user))], using)
    return RequestFacts(
        status=row.status,
        whom=asked_in_words(row.steps, row.step, row.audiences),
        answers=tuple(row.answers),
        self_approval=row.self_approval,
        requester=_person(row.requester, row.requester_label, persons),
        digest=row.digest,
        sound_digest=digest_of(row.candidate),
        intent_version=row.intent_version,
        intent_version_now=row.intent_version_now,
        intent_status=row.intent_status,
        workflow_status=row.workflow_status,
        epoch=row.epoch,
        epoch_now=row.epoch_now,
        waiting=row.waiting,
        expired=row.expired,
        taken=tuple(
            Taken(one.by, one.label, one.verdict, one.digest, _counted(one, persons), said(payload.decode(one.values)))
            for one in taken
        ),
        kind=row.kind,
        step=row.step,
    )


def said(values: Any) -> str:
    """What a form was filled in with, as a digest: the same file twice is the same, wherever it lies. "" for an answer without a form, and for
    one whose values were erased.
    """
    if not isinstance(values, Mapping):
        return ""
    plain = {
        name: {key: part for key, part in value.items() if key != "path"} if isinstance(value, Mapping) else value
        for name, value in values.items()
    }
    return canonical.digest(plain, "the answer")


def _counted(one: reviews.TakenRow, persons: Mapping[Any, Hashable]) -> frozenset[Hashable]:
    whom = _person(one.by, one.label, persons), _person(one.for_user, one.for_label, persons)
    return frozenset(person for person in whom if person is not None)


def _person(user: Any, label: str, persons: Mapping[Any, Hashable]) -> Hashable:
    """The person behind an account, which may have been deleted since; None: there never was one."""
    return persons[user] if user in persons else gone(label) if label else None


def digest_of(stored: object) -> str | None:
    """The digest of the frozen candidate, or form, computed anew as the gate does before the effect; None if it has none."""
    try:
        candidate = payload.decode(stored)
        body = {"choice": candidate["choice"], "value": candidate["value"]}
        return canonical.digest(body, "the candidate")
    except (PayloadError, KeyError, TypeError):
        return None


def proposed(stored: object) -> dict[str, Any]:
    """Choice and value of a stored candidate, to be shown. What is none (somebody wrote to the table) is a value as it stands there."""
    found = decoded(stored)
    if isinstance(found, Mapping) and "value" in found and isinstance(found.get("choice"), str):
        return {"choice": found["choice"], "value": found["value"]}
    return {"choice": "", "value": found}


def decoded(stored: object) -> Any:
    """The value behind a stored one, to be shown; what cannot be read is shown as it stands there."""
    try:
        return payload.decode(stored)
    except PayloadError:
        return stored
