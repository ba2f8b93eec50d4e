"""What becomes of the moments that have come: which are started, and which are passed over with what code. Pure.

    moment in a pause                        skipped PAUSED
    on time (not older than the grace)       pending
    older, EVERY                             pending; outside the window: skipped OUTSIDE_WINDOW; at most `cap` pending in one look
    older, NEWEST                            the last of all is pending (in the window), the others skipped MISSED
    older, SKIP                              skipped MISSED
    more than a look can take, and long ago  one row stands for all of them until a day ago: skipped OVER_CAP

A clock that jumps ahead is the same as nobody having looked. The mark only grows, so a clock that is set back plans nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flows.core.schedules.words import Missed, OccurrenceStatus
from flows.core.schedules.zones import Moment

#: So many moments are looked at in one look.
BATCH = 500
#: What is older than this, and more than a look can take, is not recorded one by one.
SINGLY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Catching:
    """How a schedule makes up for what was missed.

    Attributes:
        policy: of `Missed`. window: how old a missed one may be; None: as old as it is. cap: so many at most in one look.
        grace: how old an occurrence may be that is still on time. held_until: until then the schedule was paused.
    """

    policy: Missed
    window: timedelta | None
    cap: int
    grace: timedelta
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """One row to write. `passed_to`: it stands for all moments from its own to this one."""

    moment: Moment
    code: str = ""
    passed_to: datetime | None = None

    @property
    def status(self) -> OccurrenceStatus:
        """PENDING, or SKIPPED with its code."""
        return OccurrenceStatus.SKIPPED if self.code else OccurrenceStatus.PENDING


def judge(found: Sequence[Moment], now: datetime, how: Catching) -> tuple[list[Planned], datetime | None]:
    """What becomes of the moments until now, and the mark up to which all is said; None: nothing has come.

    Args:
        found: in order, those until `now`; more than `BATCH` of them say that there are more.
    """
    more = len(found) > BATCH
    planned: list[Planned] = []
    taken = 0
    for place, moment in enumerate(found[:BATCH]):
        code = _code(moment, found[place + 1] if place + 1 < len(found) else None, now, how)
        late = now - moment.at > how.grace
        if not code and late:
            if taken >= how.cap:
                return planned, planned[-1].moment.at
            taken += 1
        planned.append(Planned(moment, code))
    if more and found[BATCH].at <= (until := now - SINGLY):
        planned.append(Planned(found[BATCH], "OVER_CAP", until))
        return planned, until
    return planned, planned[-1].moment.at if planned else None


def _code(moment: Moment, following: Moment | None, now: datetime, how: Catching) -> str:
    if how.held_until is not None and moment.at <= how.held_until:
        return "PAUSED"
    if now - moment.at <= how.grace:
        return ""
    if how.policy is Missed.SKIP:
        return "MISSED"
    if how.window is not None and now - moment.at > how.window:
        return "OUTSIDE_WINDOW"
    return "MISSED" if how.policy is Missed.NEWEST and following is not None else ""
