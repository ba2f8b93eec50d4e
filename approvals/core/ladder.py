"""The ladder of a request as it stands: which step is asked, which is done, which is still to come, and whom it was escalated to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from approvals.core.status import RequestStatus
from flows.core.nodes.audience import in_words


class RungState(StrEnum):
    """Where a step is. stopped: it was being asked when the request ended; unreached: it never was."""

    DONE = "done"
    NOW = "now"
    LATER = "later"
    STOPPED = "stopped"
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True)
class Rung:
    """One step. `name`: what its author calls it; `whom`: who is asked, in words; `given` of `need` have approved."""

    name: str
    whom: str
    need: int
    given: int
    state: RungState


@dataclass(frozen=True, slots=True)
class Call:
    """One member of the escalation: who may answer too, so many seconds after the question; `came`: they may already."""

    whom: str
    after: int
    came: bool


def rungs(steps: Sequence[Mapping[str, Any]], *, step: int, given: int, status: str, answer: str) -> list[Rung]:
    """The steps in order.

    Args:
        step, given: the one that is asked (or was, when it ended), and how many have approved in it. answer: what was answered, if it was.
    """
    found = []
    for number, one in enumerate(steps):
        state = _state(number - step, status, answer)
        count = {RungState.DONE: one["need"], RungState.NOW: given, RungState.STOPPED: given}.get(state, 0)
        found.append(Rung(str(one["name"]), in_words(one["audience"]), int(one["need"]), int(count), state))
    return found


def calls(escalation: Sequence[Mapping[str, Any]], escalated: int) -> list[Call]:
    """The escalation in order; `escalated` of it have come."""
    return [Call(in_words(one["audience"]), int(one["after"]), came=number < escalated) for number, one in enumerate(escalation)]


def _state(beyond: int, status: str, answer: str) -> RungState:
    pending = status == RequestStatus.PENDING
    if beyond < 0 or (beyond == 0 and answer == "approved"):
        return RungState.DONE
    if beyond == 0:
        return RungState.NOW if pending else RungState.STOPPED
    return RungState.LATER if pending else RungState.UNREACHED
