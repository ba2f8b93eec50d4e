"""Wait, Sleep and Approval: nodes at which nothing computes until something arrives or a deadline passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import CancelSelf, Finish, Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import candidate_of, qualified
from flows.core.nodes.base import Node, need_text
from flows.core.policies import Deadline, Expiry, Visits
from flows.core.protocol import Outcome, Status
from flows.core.state import State, Trigger

WAIT_EXPIRED = "WAIT_EXPIRED"
APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
CANDIDATE_MISSING = "CANDIDATE_MISSING"
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


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


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
        wakes_at = self.until(state) if self.until else state.now + (self.span or timedelta())
        if not _is_moment(wakes_at):
            raise DefinitionError(f"until= of sleep {self.name} must give a datetime with a time zone, got {wakes_at!r}.")
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


@dataclass(frozen=True)
class Approval(Node):
    """Ask people about one exact candidate. The answer is bound to the candidate's digest; expiry never approves.

    Args:
        candidate: the node whose candidate is asked about. role: the Django group whose members may answer.
        expires: how long the request lives, and what then.
        approved, changes, denied: the node for each answer; without `changes` reviewers cannot ask for changes.
        visits: how often may be asked in all; default ten times, then a person must look.
    The node's result is `{"answer", "comment", "by", "digest", "request"}`.
    """

    kind: ClassVar[str] = "approval"

    candidate: str = field(kw_only=True)
    role: str = field(kw_only=True)
    expires: Deadline | None = field(kw_only=True, default=None)
    approved: str = field(kw_only=True)
    denied: str = field(kw_only=True)
    changes: str = field(kw_only=True, default="")
    self_approval: bool = field(kw_only=True, default=False)
    visits: Visits | None = field(kw_only=True, default=None)

    def enter(self, state: State) -> Move:
        candidate = candidate_of(state, self.candidate)
        if candidate is None:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, CANDIDATE_MISSING, f"{self.candidate} has no result to ask about")
        return Park(
            self.name,
            self.kind,
            f"waiting for an answer of {self.role}",
            deadline=self.expires.after if self.expires else None,
            on_expiry=self.expires.word if self.expires else "",
            detail={"candidate": candidate, **self.question},
        )

    @property
    def question(self) -> Mapping[str, Any]:
        """What is asked of whom, but for the candidate."""
        return {
            "candidate_node": self.candidate,
            "role": self.role,
            "answers": [answer for answer in ("approved", "changes", "denied") if getattr(self, answer)],
            "self_approval": self.self_approval,
        }

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            target = {"approved": self.approved, "changes": self.changes, "denied": self.denied}.get(
                str(wait.evidence.get("answer"))
            )
            if not target:
                return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the answer is not a declared one")
            return Goto(target)
        if wait.due and self.expires is not None:
            return expire(self.expires, self.name, APPROVAL_EXPIRED)
        return Rest()

    def result(self, state: State) -> Any:
        """The node's result: who answered what about which digest."""
        return dict(state.wait.evidence) if state.wait and state.wait.evidence is not None else None

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "approved", need_text(self.approved, "approved=")
        yield "denied", need_text(self.denied, "denied=")
        if self.changes:
            yield "changes", self.changes
        yield from deadline_target(self.expires)
        yield from super().targets()

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "candidate": self.candidate, "role": self.role}


__all__ = ["Approval", "Deadline", "Sleep", "Wait", "expire", "qualified"]
