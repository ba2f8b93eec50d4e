"""Wait: a node at which nothing computes until something arrives or a deadline passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import qualified
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import WAIT_EXPIRED, deadline_target, expire, limits
from flows.core.nodes.several import On, events_of, in_words, parts_of, without_payloads
from flows.core.policies import Deadline
from flows.core.protocol import Outcome
from flows.core.state import State, Trigger

UNDECLARED_CHOICE = "UNDECLARED_CHOICE"


@dataclass(frozen=True)
class Wait(Node):
    """Wait for an event of a type with a key, or for several; events are evidence, `read` makes a value of them.

    Args:
        event: the event type, e.g. "ci.finished". key: text, or a pure function of the state that gives it.
        any, all: in place of these, several events (`On`): `need` of them, or all. need: how many of `any`.
        read: pure function of the state (with `state.event`, or `state.events` where there are several) that gives the value to match against
            `choices`; default: the payload, or the payloads by name.
        choices: value → node; or `then` alone. deadline: how long, and what then; a wait without an end does not exist.
    The node's result is `{"value", "event", "payload"}`; of several events it is `{"value", "events"}`, without their payloads.
    """

    kind: ClassVar[str] = "event"

    event: str = ""
    key: Callable[[State], str] | str = field(kw_only=True, default="")
    any: Sequence[On] = field(kw_only=True, default=())
    all: Sequence[On] = field(kw_only=True, default=())
    need: int = field(kw_only=True, default=1)
    read: Callable[[State], Any] | None = field(kw_only=True, default=None)
    choices: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    then: str = field(kw_only=True, default="")
    deadline: Deadline | None = field(kw_only=True, default=None)

    @property
    def several(self) -> tuple[On, ...]:
        """The events that it needs, where it is for several."""
        return (*self.any, *self.all)

    def enter(self, state: State) -> Move:
        if self.several:
            return self._enter_several(state)
        key = self.key(state) if callable(self.key) else self.key
        if not payload.is_name(key):
            raise DefinitionError(
                f"The key of wait {self.name} must be text that is not empty, of at most {payload.MAX_NAME} characters, got {key!r:.80}."
            )
        return Park(
            self.name,
            self.kind,
            f"waiting for {self.event} {key}",
            event_type=self.event,
            keys=(key,),
            **limits(self.deadline, state),
        )

    def _enter_several(self, state: State) -> Move:
        parts = parts_of(self.several, state, self.name)
        need = len(parts) if self.all else self.need
        if not 1 <= need <= len(parts):
            raise DefinitionError(f"Wait {self.name} needs {need} events, and there are {len(parts)} that may come.")
        return Park(
            self.name,
            self.kind,
            in_words(parts, need),
            parts=parts,
            need=need,
            **limits(self.deadline, state),
        )

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            return self.answered(state, wait.evidence)
        if wait.due and self.deadline is not None:
            return expire(self.deadline, self.name, WAIT_EXPIRED)
        return Rest()

    def result(self, state: State) -> Any:
        """The node's result, from the evidence."""
        evidence = state.wait.evidence if state.wait else None
        if evidence is None:
            return None
        if self.several:
            return {"value": self._value(state, evidence), "events": without_payloads(events_of(evidence))}
        return {"value": self._value(state, evidence), "event": evidence.get("id"), "payload": evidence.get("payload")}

    def answered(self, state: State, evidence: Mapping[str, Any]) -> Move:
        """Where the evidence leads. An undeclared value needs a person; it is never guessed at."""
        if not self.choices:
            return Goto(self.then)
        value = self._value(state, evidence)
        target = self.choices.get(value) if isinstance(value, str) else None
        if target is None:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the event says something undeclared")
        return Goto(target)

    def _value(self, state: State, evidence: Mapping[str, Any]) -> Any:
        if self.several:
            events = events_of(evidence)
            given = replace(state, events=events)
            return self.read(given) if self.read else {str(one.get("name")): one.get("payload") for one in events}
        seen = replace(state, event=evidence)
        return self.read(seen) if self.read else evidence.get("payload")

    def targets(self) -> Iterator[tuple[str, str]]:
        for choice, target in self.choices.items():
            yield choice, need_text(target, "choices=")
        if self.then or not self.choices:
            yield "", need_text(self.then, "then=")
        yield from deadline_target(self.deadline)
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "key", self.key if callable(self.key) else None
        for one in self.several:
            yield f"key of {one.called}", one.key if callable(one.key) else None
        yield "read", self.read

    def shape(self) -> Mapping[str, Any]:
        if self.several:
            parts = [[one.event, one.called] for one in self.several]
            return {**super().shape(), "events": parts, "need": "all" if self.all else self.need}
        return {**super().shape(), "event": self.event}


__all__ = ["WAIT_EXPIRED", "Deadline", "Wait", "qualified"]
