"""Human waiting, measured: who is waited for, how long, and how much of a workflow's life that is (F5, Q1).

Two clocks, apart from each other. People are waited for from the moment a step is asked until the answer that ends it; work is the time of
attempts. Neither contains the other: a workflow that waits for an answer computes nothing. Everything is read from what is recorded anyway, and
business time counts (`flows_now()`).

An audience that names several things ("role and permission") counts under each of them. Whoever is asked through an escalation is asked from
its moment on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from approvals.store import waiting as store
from approvals.store.waiting import Answering, Backlog, Life, Lives, Waited
from flows.core.misuse import UsageError
from flows.core.spans import in_utc
from flows.services import identify
from flows.services.clock import now

#: So many audiences, people and flows at most are listed; those with the most that is open come first.
MAX_ROWS = 500
#: So many workflows at most are asked about at once.
MAX_WORKFLOWS = 1000
SOON = timedelta(hours=1)


class BadPeriod(UsageError):
    """No period that could be looked at."""

    code = "BAD_PERIOD"

    def __init__(self, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the period shows: by audience, by person who answered, by flow."""

    since: datetime
    until: datetime
    audiences: list[Waited]
    people: list[Answering]
    flows: list[Lives]


def waiting(*, since: datetime | None = None, until: datetime | None = None, using: str | None = None) -> Waiting:
    """How long people were waited for.

    Args:
        since, until: moments with a time zone; by default the last seven days until now. What is open is what is open now, whenever it was
            asked.
    Raises:
        BadPeriod: it ends before it begins, or a moment has no time zone.
    """
    alias = identify.alias(using)
    end = in_utc(until or now(alias))
    begin = in_utc(since or (end - timedelta(days=7) if end is not None else end))
    if begin is None or end is None:
        raise BadPeriod("A period begins and ends at moments with a time zone: pass aware datetimes.")
    if begin >= end:
        raise BadPeriod(f"The period ends ({end:%Y-%m-%d %H:%M}) before it begins ({begin:%Y-%m-%d %H:%M}).")
    return Waiting(
        begin,
        end,
        store.audiences(begin, end, MAX_ROWS, alias),
        store.people(begin, end, MAX_ROWS, alias),
        store.flows(begin, end, MAX_ROWS, alias),
    )


def backlog(*, soon: timedelta = SOON, using: str | None = None) -> list[Backlog]:
    """What waits for each role, pool, permission and person now; and how many of these requests expire `soon`. For alerts."""
    return store.backlog(soon.total_seconds(), identify.alias(using))


def lives(workflows: Iterable[Any], *, using: str | None = None) -> list[Life]:
    """How much of the life of these workflows people were waited for, and how much was work; those that do not exist are missing.

    Raises:
        UnknownWorkflow: something else is passed. BadPeriod: more than `MAX_WORKFLOWS` of them.
    """
    ids = [identify.workflow_id(one) for one in workflows]
    if len(ids) > MAX_WORKFLOWS:
        raise BadPeriod(f"Ask about at most {MAX_WORKFLOWS:,} workflows at once.")
    return store.lives(ids, identify.alias(using))
