"""Whether anybody can answer what is about to be asked. A request that nobody may answer is not made: the workflow would wait for ever (F5).

People come and go after that; who may answer is judged anew with every answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.seats import key, unfilled
from approvals.models.wording import audience_in_words, step_in_words
from approvals.services import people


def lacking(steps: Sequence[Mapping[str, Any]], requester: Any, using: str, *, self_approval: bool) -> str:
    """Which step of a ladder cannot be filled, in words; "": each has as many people as it needs, and nobody counts twice.

    Args:
        requester: the accountable user's key; they do not count unless `self_approval`.
    """
    barred = None if self_approval else people.persons([requester], using).get(requester)
    seats = sum(step["need"] for step in steps)  # more people than seats in one step make no difference
    able = [_persons(step["audience"], barred, seats, using) for step in steps]
    short = unfilled(able, [step["need"] for step in steps])
    if short is None:
        return ""
    step, alone = steps[short], len(able[short])
    told = {"number": short + 1, "name": _named(step), "need": step["need"], "found": alone, "right": people.ANSWER}
    if alone < step["need"]:
        said = (
            _(
                "nobody would be able to answer: step %(number)s asks %(name)s, %(need)s must answer, and %(found)s may (active, with the "
                "permission %(right)s, and not accountable for this workflow)"
            )
            % told
        )
        pool = step["audience"].get("pool")
        return (
            said if pool is None or people.is_pool(pool, using) else said + _("; there is no pool %(pool)s yet") % {"pool": pool}
        )
    return (
        _(
            "nobody would be able to answer all of it: step %(number)s asks %(name)s, and those who may answer there are needed in other steps; "
            "nobody counts twice"
        )
        % told
    )


def _named(step: Mapping[str, Any]) -> str:
    """What its author calls it, and whom it asks where that says something else."""
    named, asked = step_in_words(step), audience_in_words(step["audience"])
    return named if named == asked else f"{named} ({asked})"


def _persons(audience: Mapping[str, str], barred: Hashable, most: int, using: str) -> list[Hashable]:
    """So many different people of an audience, at most, who could answer."""
    found: dict[Hashable, None] = {}
    for user in people.asked([key(audience)], using):
        person = people.person_of(user)
        if person != barred:
            found.setdefault(person)
        if len(found) == most:
            break
    return list(found)
