"""Job: something is started that goes on outside for long; its event, or a question asked from time to time, says how it ended.

    enter ──► start (effect) ──► wait ──┬── event ─────────────────────────► choices, then
                                  ▲     ├── poll timer ──► answer ── value ─► choices, then
                                  │     │                    └── Pending ─┐
                                  └─────┼──────────────────────────────────┘
                                        └── its time is over ──► the deadline's policy (JOB_EXPIRED)
    start, waits and answers are one visit. What is still owed (`cancel=`) is a commitment of kind `job`, begun with the start, fulfilled by
    the answer, released on the way to any other end.
Guards: those of every arrow of an owner. Race: event against poll. The event wakes the wait, or, where the poll runs by then, it is early for
the next wait; whichever answer is committed first ends the node, and an event that nobody takes any more has its place in the inbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from flows.core import payload
from flows.core.commitments import BEGINS, Commits
from flows.core.effects import Effect, Function, Servicing
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Open, Park, Rest, Suspend
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import deadline_target, expire, limits
from flows.core.nodes.pipeline import Pipeline, Step
from flows.core.nodes.waits import UNDECLARED_CHOICE
from flows.core.policies import Deadline
from flows.core.protocol import Outcome
from flows.core.state import Completed, State, Trigger, WaitState

JOB_EXPIRED = "JOB_EXPIRED"
#: The kind of its wait, and of its commitment.
EXTERNAL_JOB, JOB = "external_job", "job"
#: Its two steps, under which their results stand in the node's.
START, ANSWER = "start", "answer"
#: What an answer of a poll is called in the record that says "not yet": how many there were in this visit.
PENDING = "pending"
#: Each poll that says so makes the next one later by this factor, up to so long (or `every`, where that is longer).
SLOWER, SLOWEST = 1.5, timedelta(minutes=15)
#: When it is asked about first.
AFTER = timedelta(minutes=1)
#: What of an Activity says nothing about a Job.
NOT_OF_JOBS = ("commits", "fulfils", "verifies", "optional", "effects", "do")


@dataclass(frozen=True, slots=True)
class Pending:
    """What `poll=` returns while the job goes on."""


def polls(wait_kind: str, move: Move) -> bool:
    """Whether this move asks about the job for which a wait of that kind stands: nothing has expired."""
    return wait_kind == EXTERNAL_JOB and isinstance(move, Open) and move.step == ANSWER


@dataclass(frozen=True)
class Job(Pipeline):
    """Start a job outside, then wait for its event, or ask about it, durably.

    Args:
        start: a function of the attempt that starts it, an effect with the operation id; asked for twice, the provider must start one.
        event, key: the type and key of the event that ends it, as of `Wait`; key is text or a pure function of the state, whose
            `results[NAME]["start"]["answer"]` is what `start` returned.
        poll: a function of the attempt that asks about it: `Pending()`, or the answer. every: how long after the start it asks first.
        cancel: a function of the operation (or a `Servicing`) that gives the job back; `operation.of.evidence` is what `start` returned.
        deadline: how long it may take, from the end of `start`, and what then.
        read: a pure function of the state with `state.event`, whose "payload" is the event's, or what `poll` returned; default: that itself.
        choices: value → node; or `then` alone. options: `retry`, `timeout`, `queue`, `effect`, … of an Activity, for both functions.
    The node's result is `{"start": {"answer", "until"}, "answer": {"value", "event", "payload"}}`.
    """

    kind: ClassVar[str] = EXTERNAL_JOB

    start: Function = ""
    event: str = ""
    key: Callable[[State], str] | str = ""
    poll: Function | None = None
    every: timedelta = AFTER
    cancel: Function | Servicing | None = None
    deadline: Deadline | None = None
    read: Callable[[State], Any] | None = None
    choices: Mapping[str, str] = field(default_factory=dict)

    def __init__(
        self,
        start: Function,
        *,
        event: str = "",
        key: Callable[[State], str] | str = "",
        poll: Function | None = None,
        every: timedelta = AFTER,
        cancel: Function | Servicing | None = None,
        deadline: Deadline | None = None,
        read: Callable[[State], Any] | None = None,
        choices: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if odd := sorted(set(options) & set(NOT_OF_JOBS)):
            raise DefinitionError(
                f"Job takes no {odd[0]}=: it has start=, poll= and cancel=. Put that into an Activity of its own."
            )
        self.__post_options__(options)
        own = {
            "start": start,
            "event": event,
            "key": key,
            "poll": poll,
            "every": every,
            "cancel": cancel,
            "deadline": deadline,
            "read": read,
            "choices": {} if choices is None else choices,
        }
        steps = (Step(START, start, self.timeout), *((Step(ANSWER, poll, self.timeout),) if poll is not None else ()))
        for name, value in {**own, "steps": steps, "kind": EXTERNAL_JOB}.items():  # the options bring the kind of an Activity
            object.__setattr__(self, name, value)

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        if self.cancel is not None:
            object.__setattr__(self, "commits", Commits(self.name, release=self.cancel, kind=JOB))

    @property
    def own_effect(self) -> Effect | None:
        return self.effect or BEGINS

    def effect_at(self, step: str) -> Effect | None:
        return self.own_effect if step == START else None

    def fulfilled(self, state: State, trigger: Trigger, *, answered: bool) -> str:
        """The commitment that ends well with this decision; `answered`: it closes the wait with the event. "": none."""
        activity = state.activity
        by_poll = (
            isinstance(trigger, Completed)
            and activity is not None
            and activity.step == ANSWER
            and PENDING not in _mapping(trigger.result)
        )
        by_event = answered and state.wait is not None and state.wait.kind == EXTERNAL_JOB
        return self.name if self.cancel is not None and (by_poll or by_event) else ""

    def accept(self, result: Any, state: State) -> Any:
        record = _mapping(state.results.get(self.name))
        if state.activity is None or state.activity.step == START:
            until = self._ends(state)
            return {"answer": result, "until": until.isoformat() if until is not None else None}
        if isinstance(result, Pending):
            return {PENDING: int(_mapping(record.get(ANSWER)).get(PENDING, 0)) + 1}
        return self._answer(state, None, result)

    def _ends(self, state: State) -> datetime | None:
        """When its time is over, if it has begun now."""
        found = limits(self.deadline, state)
        moment: datetime | None = found.get("deadline_at")
        return moment or (state.now + found["deadline"] if "deadline" in found else None)

    def completed(self, state: State, result: Any) -> Move:
        step = state.activity.step if state.activity is not None else START
        before = {} if step == START else _mapping(state.results.get(self.name))
        results = {**state.results, self.name: {**before, step: result}}
        if step == START or PENDING in _mapping(result):
            return self.waiting(replace(state, results=MappingProxyType(results)))
        return self._led(_mapping(result).get("value"))

    def waiting(self, state: State) -> Move:
        """Wait for the job that was started, of which `state.results` tells."""
        record = _mapping(state.results.get(self.name))
        until = _until(record)
        over = until is not None and until <= state.now
        if over and self.deadline is not None and self.deadline.moves:
            return expire(self.deadline, self.name, JOB_EXPIRED)
        lasts = {"deadline_at": until, "on_expiry": self.deadline.word} if until and self.deadline and not over else {}
        asks = {"wakes_at": state.now + self._pause(record)} if self.poll is not None else {}
        return Park(self.name, EXTERNAL_JOB, **self._channel(state), **asks, **lasts, same_visit=True)  # type: ignore[arg-type]

    def _channel(self, state: State) -> dict[str, Any]:
        if not self.event:
            return {"reason": f"waiting for the job of {self.name}"}
        key = self.key(state) if callable(self.key) else self.key
        if not payload.is_name(key):
            raise DefinitionError(
                f"The key of job {self.name} must be text that is not empty, of at most {payload.MAX_NAME} characters, got {key!r:.80}."
            )
        return {"reason": f"waiting for {self.event} {key}", "event_type": self.event, "keys": (key,)}

    def _pause(self, record: Mapping[str, Any]) -> timedelta:
        asked = min(int(_mapping(record.get(ANSWER)).get(PENDING, 0)), 50)
        longest = max(SLOWEST, self.every)
        return timedelta(seconds=min(self.every.total_seconds() * SLOWER**asked, longest.total_seconds()))

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if state.activity is None and wait is not None and wait.kind == EXTERNAL_JOB:
            return self._woken(state, wait)
        return super().resume(state, trigger)

    def _woken(self, state: State, wait: WaitState) -> Move:
        if wait.evidence is not None:
            return self._led(self._answered(state, wait.evidence)["value"])
        if not wait.due:
            return Rest()
        until = _until(_mapping(state.results.get(self.name)))
        over = until is not None and until <= state.now
        if self.deadline is not None and self.deadline.moves and (over or self.poll is None):
            return expire(self.deadline, self.name, JOB_EXPIRED)
        return Open(self.name, ANSWER) if self.poll is not None else Rest()

    def taken_up(self, state: State) -> Move:
        return super().taken_up(state) if state.activity is not None else self.enter(state)

    def result(self, state: State) -> Any:
        """The node's result, from the evidence."""
        evidence = state.wait.evidence if state.wait is not None else None
        if evidence is None:
            return None
        return {**_mapping(state.results.get(self.name)), ANSWER: self._answered(state, evidence)}

    def _answered(self, state: State, evidence: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer(state, evidence.get("id"), evidence.get("payload"))

    def _answer(self, state: State, event: Any, said: Any) -> dict[str, Any]:
        seen = replace(state, event={"id": event, "payload": said})
        return {"value": self.read(seen) if self.read is not None else said, "event": event, "payload": said}

    def _led(self, value: Any) -> Move:
        """Where the answer leads. An undeclared value needs a person; it is never guessed at."""
        if not self.choices:
            return Goto(self.then)
        target = self.choices.get(value) if isinstance(value, str) else None
        if target is None:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the answer of the job is undeclared")
        return Goto(target)

    def targets(self) -> Iterator[tuple[str, str]]:
        for choice, target in self.choices.items():
            yield choice, need_text(target, "choices=")
        if self.then or not self.choices:
            yield "", need_text(self.then, "then=")
        yield from deadline_target(self.deadline)
        yield from self._after_patience()
        yield from Node.targets(self)

    def functions(self) -> Iterator[tuple[str, Function | None]]:
        yield START, self.start
        if self.poll is not None:
            yield "poll", self.poll
        if callable(self.key):
            yield "key", self.key
        if self.read is not None:
            yield "read", self.read

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "event": self.event, "cancel": self.cancel is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _until(record: Mapping[str, Any]) -> datetime | None:
    said = _mapping(record.get(START)).get("until")
    return datetime.fromisoformat(said) if isinstance(said, str) else None
