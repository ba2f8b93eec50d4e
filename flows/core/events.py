"""What is known of events beside their content: `About` says which run, generation, goal and wait one answers, as its sender knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.errors import PayloadError

#: The largest position in a stream that the record can hold; numbers of generations, goals and visits are smaller.
LARGEST = 2**63 - 1
LARGEST_SMALL = 2**31 - 1


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


def whole(value: Any, what: str, bound: int = LARGEST) -> None:
    """Refuse what is neither nothing nor a whole number from 0 to `bound`.

    Raises:
        PayloadError: names `what`.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= bound):
        raise PayloadError(what, f"must be a whole number from 0 to {bound:,}, got {value!r:.80}")


def _identity(given: Any) -> UUID | None:
    if given is None or isinstance(given, UUID):
        return given
    try:
        return UUID(str(given))
    except ValueError:
        raise PayloadError("workflow of About", f"must be the id of a run, got {given!r:.80}") from None
