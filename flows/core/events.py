"""What is known of events beside their content: what one answers, in which order a type comes, and what it begins.

About       which run, generation, goal and wait an event answers, as its sender knows it
EventType   what is declared of a type: where its position stands, and what its order means
StartedBy   that an event begins a run of a flow, for whom, and under which key
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from flows.core.declared import Declared
from flows.core.errors import PayloadError
from flows.core.spans import minutes

#: The largest position in a stream that the record can hold; numbers of generations and goals are smaller.
LARGEST = 2**63 - 1
LARGEST_SMALL = 2**31 - 1

#: The type of the event that says that a child has ended; its key is the child's id.
ENDED = "workflow.ended"


@dataclass(frozen=True, slots=True)
class About:
    """What an event is about, as far as its sender knows. Whatever is given must agree with the wait that takes the event.

    Attributes:
        workflow: the run, its id as a UUID or as text. epoch: its generation. intent: the version of the goal that it works for.
        wait: the number of the wait that is answered.
    Raises:
        PayloadError: something of it is not of that form.
    """

    workflow: UUID | None = None
    epoch: int | None = None
    intent: int | None = None
    wait: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workflow", _identity(self.workflow))
        for name, bound in (("epoch", LARGEST_SMALL), ("intent", LARGEST_SMALL), ("wait", LARGEST)):
            whole(getattr(self, name), f"{name} of About", bound)
        if self.workflow is None and (self.epoch, self.intent) != (None, None):
            raise PayloadError("About", "names an epoch or an intent version without the run whose it is: add workflow=")

    def __bool__(self) -> bool:
        return self.workflow is not None or self.wait is not None


class Order(StrEnum):
    """What the positions of a type mean. ANY: nothing. IN_ORDER: each waits for the one before it. NEWEST: an older one counts no more."""

    ANY = "any"
    IN_ORDER = "in order"
    NEWEST = "newest"


@dataclass(frozen=True)
class EventType(Declared):
    """What is declared of a type of events; it stands in `flows.py` beside the flows.

    Args:
        name: the type. order: where an event's position stands: a path into its payload ("seq", "order.seq"), or a pure function of the
            payload; None: only `signal(position=)` gives it, which goes first in any case. policy: what positions mean.
        first: the position that a stream (type and key) begins with. gap: how long later ones wait for one that is missing. Both for
            IN_ORDER only.
    """

    kind: ClassVar[str] = "event type"

    order: str | Callable[[Mapping[str, Any]], int] | None = field(kw_only=True, default=None)
    policy: Order = field(kw_only=True, default=Order.ANY)
    first: int = field(kw_only=True, default=1)
    gap: timedelta = field(kw_only=True, default=minutes(10))

    @property
    def ordered(self) -> bool:
        """Whether positions mean anything."""
        return self.policy is not Order.ANY

    def position(self, payload: Mapping[str, Any]) -> int:
        """The position of an event with this payload, that says none beside it.

        Raises:
            PayloadError: it has none.
        """
        what = f"the position of an event {self.name}"
        if self.order is None:
            raise PayloadError(what, "is missing: give position=, for the type is declared to come in order")
        try:
            found = self.order(payload) if callable(self.order) else _at(payload, self.order)
        except Exception as error:
            raise PayloadError(what, f"cannot be read from its payload: {type(error).__name__}: {error}"[:300]) from error
        if found is None:
            raise PayloadError(what, f"is missing: nothing stands at {self.order!r:.80} of its payload")
        whole(found, what)
        return int(found)


@dataclass(frozen=True, slots=True)
class StartedBy:
    """In `class Meta`: an event of this type begins a run. It is nobody's wait, and says nothing about whose it is.

    Args:
        event: the type. user: for whom the runs work: the name of a user, or a user. They must be active, and their rights are asked anew.
        key: a pure function of the event that gives the key of its run: two events that give the same one begin one run.
        input: a pure function of the event that gives the input of its run; None: the payload.
    An event is `{"id", "type", "key", "payload"}`.
    """

    event: str
    key: Callable[[Mapping[str, Any]], str]
    user: Any
    input: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


def whole(value: Any, what: str, bound: int = LARGEST) -> None:
    """Refuse what is neither nothing nor a whole number from 0 to `bound`.

    Raises:
        PayloadError: names `what`.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= bound):
        raise PayloadError(what, f"must be a whole number from 0 to {bound:,}, got {value!r:.80}")


def _at(payload: Mapping[str, Any], path: str) -> Any:
    found: Any = payload
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _identity(given: Any) -> UUID | None:
    if given is None or isinstance(given, UUID):
        return given
    try:
        return UUID(str(given))
    except ValueError:
        raise PayloadError("workflow of About", f"must be the id of a run, got {given!r:.80}") from None
