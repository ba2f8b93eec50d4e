"""Several events that one wait needs: any of them, all, or so many.

A node says which (`On`); entering it makes parts of them, one for each event that is meant. One event fills one part of a wait, the lowest
number: two parts of one channel mean two events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.events import ENDED
from flows.core.moves import Part
from flows.core.state import State

#: So many events one wait may need: all their channels are locked at once.
MAX_PARTS = 100
#: So many of them are named where it is said what a wait is for.
SHOWN = 3


@dataclass(frozen=True)
class On:
    """One of the events that a wait needs, or one for each key of a list.

    Args:
        event: the event type. key: text, a list of texts, or a pure function of the state that gives one of the two.
        name: what it is called in `state.events` and in the node's value; default: the event type. Of a list, each is called "NAME:KEY".
    """

    event: str
    key: Callable[[State], str | Sequence[str]] | str | Sequence[str] = ""
    name: str = ""

    @classmethod
    def ended(cls, child: str, *, name: str = "") -> On:
        """The end of the child that the node of that name has started without waiting for it."""
        return cls(ENDED, key=ChildOf(child), name=name or child)

    @property
    def called(self) -> str:
        """Its name."""
        return self.name or self.event

    def parts(self, state: State, node: str) -> Iterator[Part]:
        """What it stands for in this run.

        Raises:
            DefinitionError: what gives its keys gives none.
        """
        found: Any = self.key(state) if callable(self.key) else self.key
        listed = isinstance(found, list | tuple)
        for key in found if listed else (found,):
            if not payload.is_name(key):
                raise DefinitionError(
                    f"A key of {self.called} at wait {node} must be text that is not empty, of at most {payload.MAX_NAME} characters, "
                    f"got {key!r:.80}."
                )
            yield Part(f"{self.called}:{key}" if listed else self.called, self.event, key)


@dataclass(frozen=True)
class ChildOf:
    """The key of a child's end: its id, which is in the result of the node that has started it."""

    node: str

    def __call__(self, state: State) -> str:
        result: Any = state.results.get(self.node)
        found = result.get("id") if isinstance(result, Mapping) else result
        if not isinstance(found, str):
            raise DefinitionError(f"Node {self.node!r} has started no child whose end could be waited for.")
        return found


def parts_of(events: Sequence[On], state: State, node: str) -> tuple[Part, ...]:
    """The parts of a wait, in the order in which they are written.

    Raises:
        DefinitionError: there are none, too many, or a key is none.
    """
    found: list[Part] = []
    names: dict[str, int] = {}
    for one in events:
        for part in one.parts(state, node):
            names[part.name] = names.get(part.name, 0) + 1
            again = names[part.name]
            found.append(part._replace(name=f"{part.name}#{again}") if again > 1 else part)
            if len(found) > MAX_PARTS:
                raise DefinitionError(f"Wait {node} would need more than {MAX_PARTS} events; wait for them in turns.")
    if not found:
        raise DefinitionError(f"Wait {node} is for no event: what gives its keys gives an empty list.")
    return tuple(found)


def in_words(parts: Sequence[Part], need: int) -> str:
    """What a wait for them is for."""
    shown = ", ".join(f"{part.event_type} {part.key}" for part in parts[:SHOWN])
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    many = "all" if need == len(parts) else "any" if need == 1 else str(need)
    return f"waiting for {many} of {shown}{more}" if len(parts) > 1 else f"waiting for {shown}"


def events_of(evidence: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The events of the evidence, in the order in which they came."""
    found = evidence.get("events")
    return tuple(found) if isinstance(found, list | tuple) else ()


def without_payloads(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the record says of them beside what they said."""
    return [{name: value for name, value in one.items() if name != "payload"} for one in events]
