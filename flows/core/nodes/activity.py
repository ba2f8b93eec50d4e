"""Activity and Decision: a node whose work is done by one disposable attempt after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

from flows.core import canonical
from flows.core.budget import Spend
from flows.core.capacity import DEPENDENCY, DEPENDENCY_HEALTH, Dependency, Limit, names, of_node
from flows.core.commitments import BEGINS, Commits
from flows.core.effects import Effect, Function, tool_effect
from flows.core.errors import Failure, InvalidCandidate, PayloadError, Route, classify
from flows.core.moves import Finish, Goto, Move, Open, Park, Reconcile, RetryLater, Run, Suspend
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import of_beside
from flows.core.policies import ESCALATE, Deadline, Retry
from flows.core.protocol import CAPACITY, SELF_CLOSING, TOOL_APPROVAL, Outcome, Status
from flows.core.retry import delay_before, may_retry
from flows.core.state import Completed, Facts, Failed, Lacking, Pending, State, Trigger

RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
#: The wait between two attempts of one activity.
RETRY_WINDOW = "retry_window"
WORKER_LOST = "WORKER_LOST"

#: Where a failure without a route of its own ends.
_SUSPENDED = {Route.POLICY: Outcome.POLICY_BLOCKED}


def qualified(function: Function) -> str:
    """The name of an author function for the fingerprint and for messages."""
    return function if isinstance(function, str) else getattr(function, "__qualname__", repr(function))


@dataclass(frozen=True)
class Activity(Node):
    """The logical work of a node; `do` is called with one attempt at a time, outside any transaction.

    Args:
        do: a function (or its dotted path, or an async function) that takes the attempt and returns a JSON value, its result.
        then: the next node. on: other nodes by error class or gate verdict.
        timeout: how long one attempt may run; it is interrupted in a prefork worker. Default ten minutes.
        retry: when the same operation is tried again. queue: the Celery queue; placement: a worker label that must be offered.
        effect: that `do` changes the outside world, in one call. effects: the same for several calls, by the name that `do` gives to each
        (`with attempt.effect(NAME, request=…)`).
        commits: the commitment (or several) that the activity begins; without an `effect`, it is taken for one that may be asked for twice.
        fulfils: the name of a commitment that its good result ends.
        verifies: the node whose current candidate it verifies: a good result is recorded as a passed verification of exactly that candidate,
        VerificationFailed as one that did not pass; anything else verifies nothing.
        spends: what one attempt may use at most, `Spend(model_tokens=8000, model_calls=1)`: it is set aside in the budgets before it begins.
        optional: the flow can do without it: under overload, or after a deadline with DEGRADE, it is dropped, and the flow goes on with `then`.
        needs: the dependencies without which it does not begin (`Dependency`, by name). limits: what else is counted (`Limit`, by name).
        patience: how long it waits for them in all, from the moment it was opened, and what happens then; default a day, then a person.
        None: it does not wait, and CapacityUnavailable without a route is a person's business at once.
    """

    kind: ClassVar[str] = "activity"

    do: Function
    then: str = field(kw_only=True, default="")
    timeout: timedelta = field(kw_only=True, default=timedelta(minutes=10))
    retry: Retry = field(kw_only=True, default=Retry())
    queue: str = field(kw_only=True, default="agents")
    placement: str = field(kw_only=True, default="")
    effect: Effect | None = field(kw_only=True, default=None)
    effects: Mapping[str, Effect] = field(kw_only=True, default_factory=dict)
    commits: Commits | tuple[Commits, ...] = field(kw_only=True, default=())
    fulfils: str = field(kw_only=True, default="")
    verifies: str = field(kw_only=True, default="")
    spends: Spend | None = field(kw_only=True, default=None)
    optional: bool = field(kw_only=True, default=False)
    needs: Any = field(kw_only=True, default=())
    limits: Any = field(kw_only=True, default=())
    patience: Deadline | None = field(kw_only=True, default=Deadline(days=1, then=ESCALATE))

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the dependencies that it needs."""
        return names("Activity(needs=…)", self.needs, Dependency) if self.needs else ()

    @property
    def limited(self) -> tuple[str, ...]:
        """The names of the limits that it counts in."""
        return names("Activity(limits=…)", self.limits, Limit) if self.limits else ()

    @property
    def holds(self) -> bool:
        """Whether its attempts hold something that is scarce."""
        return bool(self.needs or self.limits)

    def dropped(self, facts: Facts) -> Move | None:
        return Goto(self.then) if self.optional and (facts.degraded or self.queue in facts.overloaded) else None

    @property
    def commitments(self) -> tuple[Commits, ...]:
        """What it begins to owe."""
        return (self.commits,) if isinstance(self.commits, Commits) else tuple(self.commits)

    @property
    def own_effect(self) -> Effect | None:
        """The effect that its one call is, declared or implied by a commitment."""
        return self.effect or (BEGINS if self.commits else None)

    def effect_at(self, step: str) -> Effect | None:
        """The effect that the one call of this step is."""
        return self.own_effect

    def effect_named(self, name: str) -> Effect | None:
        """The effect of that name; "" is the node's own. A guarded tool brings its own, wherever it is called."""
        return (self.effects.get(name) or tool_effect(name)) if name else self.own_effect

    def all_effects(self) -> Iterator[Effect]:
        yield from self.effects.values()
        if self.own_effect is not None:
            yield self.own_effect

    def enter(self, state: State) -> Move:
        return Open(self.name)

    def resume(self, state: State, trigger: Trigger) -> Move:
        if isinstance(trigger, Completed):
            return self.completed(state, trigger.result)
        if isinstance(trigger, Failed):
            return Reconcile(trigger.failure.code) if trigger.doubtful else self.failed(state, trigger.failure)
        if isinstance(trigger, Pending):
            return self.asks(trigger)
        return self.lacks(trigger) if isinstance(trigger, Lacking) else self.taken_up(state)

    def asks(self, trigger: Pending) -> Move:
        """People are asked about calls of tools; then this activity is run again."""
        tools = ", ".join(sorted({str(call["tool"]) for call in trigger.calls}))
        reason = f"waiting for people to answer about {tools}"
        return Park(self.name, TOOL_APPROVAL, reason[:500], detail={"calls": trigger.calls}, beside=True)

    def lacks(self, trigger: Lacking) -> Move:
        """What it needs is not to be had now; when it is, this activity is run."""
        return Park(
            self.name,
            trigger.kind,
            trigger.reason,
            keys=(trigger.name,),
            deadline_at=trigger.until,
            on_expiry=trigger.on_expiry,
            beside=True,
        )

    def waits_for(self, state: State, failure: Failure, patience: Deadline) -> Move:
        """The attempt met a want of capacity: the dependency is told, and this activity is run again when it has some."""
        name = failure.dependency or next(iter(self.needed), of_node(state.flow, self.name))
        opened = state.activity.opened_at if state.activity else None
        return Park(
            self.name,
            DEPENDENCY_HEALTH,
            f"waiting for {name}"[:500],
            keys=(DEPENDENCY + name,),
            deadline=patience.after,
            deadline_at=opened + patience.after if opened is not None else None,
            on_expiry=patience.word,
            detail={"failed": failure.code, "dependency": name, "retry_after": failure.retry_after},
            beside=True,
        )

    def completed(self, state: State, result: Any) -> Move:
        """Where the flow goes after a good result."""
        return Goto(self.then)

    def taken_up(self, state: State) -> Move:
        """A worker has taken this activity up: run it, unless workers keep dying under it, or what stands beside it has not ended.

        (A migration makes what it carries over ready, so that the gate of the new version sees it.)
        """
        activity = state.activity
        if activity is None:
            return Open(self.name)
        wait = state.wait
        if wait is not None and wait.kind in SELF_CLOSING and not (wait.kind == RETRY_WINDOW and wait.due):
            return of_beside(wait, self.name, self.patience if wait.kind in CAPACITY else None)
        if activity.lost > self.retry.max_lost:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, WORKER_LOST, "workers keep dying under this activity")
        return Run()

    def failed(self, state: State, failure: Failure) -> Move:
        """Route, retry, or stop visibly: every path ends."""
        if failure.route is Route.STOP:
            return Finish(self.name, Status.SUPERSEDED, Outcome.SUPERSEDED, code=failure.code)
        routed = self.route_for_error(failure.classes)
        if not may_retry(self.retry, failure):
            if routed is None and failure.route is Route.CAPACITY and self.patience is not None:
                return self.waits_for(state, failure, self.patience)
            return Goto(routed) if routed else self.suspended(failure, failure.code)
        failures = (state.activity.failures if state.activity else 0) + 1
        if failures >= self.retry.max_attempts:
            return Goto(routed) if routed else self.suspended(failure, f"{RETRIES_EXHAUSTED}:{failure.code}")
        return RetryLater(delay_before(self.retry, failures, state.dice, failure.retry_after), failure.code)

    def suspended(self, failure: Failure, code: str) -> Move:
        """The visible human state of a failure that has no route."""
        outcome = _SUSPENDED.get(failure.route, Outcome.HUMAN_REQUIRED)
        return Suspend(self.name, outcome, code, "the activity failed and declares no other way")

    def accept(self, result: Any, state: State) -> Any:
        """The result to store for what the function returned; subclasses check it.

        Raises:
            ActivityError: the result is not acceptable.
        """
        return result

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "", need_text(self.then, "then=")
        yield from self._after_patience()
        yield from super().targets()

    def _after_patience(self) -> Iterator[tuple[str, str]]:
        patience = self.patience
        if isinstance(patience, Deadline) and (patience.target or patience.expiry is None):
            yield "patience", patience.target

    def functions(self) -> Iterator[tuple[str, Function | None]]:
        yield "do", self.do

    def shape(self) -> Mapping[str, Any]:
        effects = sorted([*self.effects, *([""] if self.effect else [])])
        owes = {
            "commits": sorted(one.name for one in self.commitments),
            "fulfils": self.fulfils,
            "effects": effects,
            "verifies": self.verifies,
        }
        return {**super().shape(), "do": qualified(self.do), **{name: value for name, value in owes.items() if value}}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a model proposed: one of the declared choices, the exact value, and evidence for it.

    The value is what gets approved and executed, bound by its digest; the evidence is only shown.
    """

    choice: str
    value: Any = None
    evidence: Any = None


@dataclass(frozen=True)
class Decision(Activity):
    """A probabilistic activity: it returns a Candidate whose choice is one of `choices`; code, not the model, names the next node.

    Args:
        choices: choice → node. schema: optional function(value) that raises InvalidCandidate (or returns False) on a malformed value.
        A malformed candidate is asked for again within `retry`, as a new attempt; then a person decides. (Not with
        `Retry(never_on=(InvalidCandidate,))`.)
    """

    kind: ClassVar[str] = "decision"

    choices: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    schema: Callable[[Any], Any] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if InvalidCandidate not in (*self.retry.retry_on, *self.retry.never_on):
            object.__setattr__(self, "retry", replace(self.retry, retry_on=(*self.retry.retry_on, InvalidCandidate)))

    def completed(self, state: State, result: Any) -> Move:
        choice = str(result.get("choice")) if isinstance(result, Mapping) else ""
        if choice not in self.choices:
            return self.failed(state, classify(InvalidCandidate()))
        return Goto(self.choices[choice])

    def accept(self, result: Any, state: State) -> Any:
        """The recorded artifact: choice, value, evidence, the digest of (choice, value), and its revision."""
        if not isinstance(result, Candidate):
            raise InvalidCandidate(f"{self.name} returned {type(result).__name__}; a Decision returns Candidate(choice, value).")
        if result.choice not in self.choices:
            raise InvalidCandidate(f"{self.name} chose {result.choice!r}; declared are {', '.join(sorted(self.choices))}.")
        if self.schema is not None and self.schema(result.value) is False:
            raise InvalidCandidate(f"{self.name} proposed a value that its schema refuses.")
        body = {"choice": result.choice, "value": result.value}
        try:
            bound = canonical.digest(body, f"the candidate of {self.name}")
        except PayloadError as error:
            raise InvalidCandidate(str(error)) from None
        revision = state.activity.visit if state.activity else 1
        return {**body, "evidence": result.evidence, "digest": bound, "revision": revision}

    def targets(self) -> Iterator[tuple[str, str]]:
        for choice, target in self.choices.items():
            yield choice, need_text(target, "choices=")
        yield from self._after_patience()
        yield from Node.targets(self)

    def functions(self) -> Iterator[tuple[str, Function | None]]:
        yield "do", self.do
        yield "schema", self.schema


def candidate_of(state: State, node: str) -> Mapping[str, Any] | None:
    """The candidate that a node produced, as it would be executed: a Decision's artifact, or any node's result with its digest."""
    result = state.results.get(node)
    if result is None:
        return None
    if isinstance(result, Mapping) and {"choice", "value", "digest"} <= set(result):
        return result
    return {
        "choice": "",
        "value": result,
        "evidence": None,
        "digest": canonical.digest({"choice": "", "value": result}, f"the result of {node}"),
        "revision": state.visits.get(node, 1),
    }
