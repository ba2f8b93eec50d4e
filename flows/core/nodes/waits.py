"""Wait and Sleep: nodes at which nothing computes until something arrives or a deadline passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import CancelSelf, Finish, Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import qualified
from flows.core.nodes.base import Node, need_text
from flows.core.policies import Deadline, Expiry
from flows.core.protocol import Outcome, Status
from flows.core.spans import in_utc
from flows.core.state import State, Trigger

WAIT_EXPIRED = "WAIT_EXPIRED"
UNDECLARED_CHOICE = "UNDECLARED_CHOICE"


def expire(deadline: Deadline, node: str, code: str) -> Move:
    """The declared policy of a deadline that passed."""
    if deadline.target:
        return Goto(deadline.target, release=deadline.then is Expiry.RELEASE)
    match deadline.expiry:
        case Expiry.CANCEL:
            return CancelSelf(code)
        case Expiry.FAIL:
            return Finish(node, Status.FAILED, Outcome.FAILED, code=code)
        case Expiry.ESCALATE | Expiry.HUMAN as asking:
            tell = deadline.escalate_to if asking is Expiry.ESCALATE else None
            return Suspend(node, Outcome.HUMAN_REQUIRED, code, "its deadline has passed", tell=tell)
    return Rest()


def deadline_target(deadline: Deadline | None) -> Iterator[tuple[str, str]]:
    """The node of a deadline, if it names one."""
    if deadline is not None and (deadline.target or deadline.expiry is None):
        yield "deadline", deadline.target


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
            deadline=self.deadline.after if self.deadline else None,
            on_expiry=self.deadline.word if self.deadline else "",
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


@dataclass(frozen=True)
class Sleep(Node):
    """Wait until a moment; then the gate, then `then`. Waking authorises nothing.

    Args:
        span: how long, or `until=` a pure function of the state that gives an aware datetime.
    """

    kind: ClassVar[str] = "timer"

    span: timedelta | None = None
    until: Callable[[State], datetime] | None = field(kw_only=True, default=None)
    then: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        if (self.span is None) == (self.until is None):
            raise DefinitionError("Sleep takes either a span or until=.")

    def enter(self, state: State) -> Move:
        given = self.until(state) if self.until else state.now + (self.span or timedelta())
        wakes_at = in_utc(given)
        if wakes_at is None:
            raise DefinitionError(f"until= of sleep {self.name} must give a datetime with a time zone, got {given!r}.")
        return Park(self.name, self.kind, "sleeping", wakes_at=wakes_at)

    def resume(self, state: State, trigger: Trigger) -> Move:
        if state.wait is None:
            return self.enter(state)
        return Goto(self.then) if state.wait.due else Rest()

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "", need_text(self.then, "then=")
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "until", self.until


__all__ = ["Deadline", "Sleep", "Wait", "expire", "qualified"]
