"""Wait: a node at which nothing computes until something arrives or a deadline passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import qualified
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import WAIT_EXPIRED, deadline_target, expire, limits
from flows.core.policies import Deadline
from flows.core.protocol import Outcome
from flows.core.state import State, Trigger

UNDECLARED_CHOICE = "UNDECLARED_CHOICE"


@dataclass(frozen=True)
class Wait(Node):
    """Wait for an event of a type with a key; the event is evidence, `read` makes a value of it.

    Args:
        event: the event type, e.g. "ci.finished". key: text, or a pure function of the state that gives it.
        read: pure function of the state (with `state.event`) that gives the value to match against `choices`; default: the payload.
        choices: value → node; or `then` alone. deadline: how long, and what then; a wait without an end does not exist.
    The node's result is `{"value", "event", "payload"}`.
    """

    kind: ClassVar[str] = "event"

    event: str
    key: Callable[[State], str] | str = field(kw_only=True, default="")
    read: Callable[[State], Any] | None = field(kw_only=True, default=None)
    choices: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    then: str = field(kw_only=True, default="")
    deadline: Deadline | None = field(kw_only=True, default=None)

    def enter(self, state: State) -> Move:
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
        yield "read", self.read

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "event": self.event}


__all__ = ["WAIT_EXPIRED", "Deadline", "Wait", "qualified"]
