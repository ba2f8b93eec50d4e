"""Who sits where: a person's places in a question, and whether a ladder can be filled at all. Pure.

A place is a person in whose name an answer counts: the one who answers, or one who has delegated to them. Each counts once in a request,
whoever spoke for them. `person` tells people apart: two accounts of one human have the same (`approvals.services.people.person_of`). Of an
account that was deleted only its name is left: whoever has that name now is taken for the same person (`gone`).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Audience = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """In whose name somebody answers. `delegation`: by which one; None: in their own."""

    user: Any
    label: str
    person: Hashable
    delegation: int | None = None

    @property
    def persons(self) -> frozenset[Hashable]:
        """Who that is: the person, and whoever had an account of that name before."""
        return frozenset({self.person, gone(self.label)})


def gone(label: str) -> Hashable:
    """The person behind an account that was deleted: what is left of it is its name."""
    return ("gone", label)


def key(audience: Audience) -> str:
    """An audience as one text, to be compared and searched for."""
    return json.dumps(dict(audience), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def audience(text: str) -> dict[str, str]:
    """The audience behind a key."""
    found: dict[str, str] = json.loads(text)
    return found


def open_to(steps: Sequence[Mapping[str, Any]], step: int, escalation: Sequence[Mapping[str, Any]], escalated: int) -> list[str]:
    """The keys of those who may answer now: the people of the step, and those that it was escalated to."""
    now = [steps[step]["audience"], *(one["audience"] for one in escalation[:escalated])]
    return list(dict.fromkeys(key(one) for one in now))


def unfilled(steps: Sequence[Sequence[Hashable]], needs: Sequence[int]) -> int | None:
    """The first step that cannot be filled with people who count once in all of them; None: all can.

    Args:
        steps: who could answer each of them. needs: how many must.
    """
    taken: dict[Hashable, int] = {}
    seats = [number for number, need in enumerate(needs) for _ in range(need)]

    def sit(seat: int, seen: set[Hashable]) -> bool:
        for person in steps[seats[seat]]:
            if person in seen:
                continue
            seen.add(person)
            if person not in taken or sit(taken[person], seen):
                taken[person] = seat
                return True
        return False

    return next((seats[seat] for seat in range(len(seats)) if not sit(seat, set())), None)


def free(places: Iterable[Place], barred: Iterable[Hashable]) -> list[Place]:
    """The places that may still be used."""
    out = frozenset(barred)
    return [place for place in places if not place.persons & out]
