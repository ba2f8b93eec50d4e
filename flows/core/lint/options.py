"""Rules about the options of one node: types, functions, times, and what every wait must have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from flows.core.admission import Admission
from flows.core.budget import Budget, Spend
from flows.core.events import StartedBy
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Activity, Approval, Ask, Job, Pipeline, Wait
from flows.core.nodes.activity import qualified
from flows.core.objectives import Objectives
from flows.core.policies import Checkpoint, Deadline, Retry, Visits
from flows.core.protocol import Outcome
from flows.core.releases import OnRelease
from flows.core.requirements import Gate
from flows.core.spans import LONGEST
from flows.core.typed import NONE, kind_of
from flows.core.verdicts import Verdict

#: Option → (what it must be, how it is written).
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "visits": ((Visits, NONE), 'visits=Visits(5, then="gave_up")'),
    "gate": ((Gate, NONE), 'gate=Gate(approved_by="ask")'),
    "on": ((Mapping,), 'on={StateConflict: "propose"}'),
    "retry": ((Retry,), "retry=Retry(max_attempts=5)"),
    "timeout": ((timedelta,), "timeout=minutes(10)"),
    "queue": ((str,), 'queue="agents"'),
    "placement": ((str,), 'placement="gpu"'),
    "fulfils": ((str,), 'fulfils="window"'),
    "spends": ((Spend, NONE), "spends=Spend(model_tokens=8000, model_calls=1)"),
    "optional": ((bool,), "optional=True"),
    "patience": ((Deadline, NONE), "patience=Deadline(hours=2, then=ESCALATE)"),
    "deadline": ((Deadline, NONE), "deadline=Deadline(hours=2, then=ESCALATE)"),
    "expires": ((Deadline, NONE), "expires=Deadline(hours=24, then=ESCALATE)"),
    "choices": ((Mapping,), 'choices={"patch": "test"}'),
    "every": ((timedelta,), "every=minutes(1)"),
    "span": ((timedelta, NONE), "Sleep(hours(3), then=…)"),
    "candidate": ((str,), 'candidate="propose"'),
    "role": ((str,), 'role="release-manager"'),
    "pool": ((str,), 'pool="release managers"'),
    "permission": ((str,), 'permission="shop.release"'),
    "need": ((int,), "need=2"),
    "subset": ((str,), 'subset="files"'),
    "bulk": ((bool,), "bulk=True"),
    "self_approval": ((bool,), "self_approval=True"),
    "self_answer": ((bool,), "self_answer=False"),
    "route_by": ((str,), 'route_by="decision"'),
    "steps": ((list, tuple), 'steps=[Reviewers("developers", need=2), Reviewers("lawyers")]'),
    "reminders": ((list, tuple), "reminders=[hours(4), hours(20)]"),
    "escalation": ((list, tuple), 'escalation=[Escalation("managers", hours=8)]'),
    "outcome": ((Outcome,), "End(COMPLETE)"),
}

META_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "deadline": ((Deadline, NONE), "deadline = Deadline(days=2, then=ESCALATE)"),
    "checkpoint": ((Checkpoint,), "checkpoint = Checkpoint(validate=function)"),
    "budget": ((Budget, NONE), "budget = Budget(model_calls=40)"),
    "policy": ((str,), 'policy = "changes"'),
    "admission": ((Admission, NONE), "admission = Admission(total=100)"),
    "objectives": ((Objectives, NONE), "objectives = Objectives(complete_within=hours(4))"),
    "started_by": ((StartedBy, NONE), 'started_by = StartedBy("order.created", key=function, user="ops")'),
    "on_release": ((OnRelease,), 'on_release = MIGRATE, or RESUME_PINNED, HUMAN, CANCEL, restart_from("node")'),
}

#: Option that must not be empty → (code, what is wrong, the way out).
EMPTY = {
    "queue": ("E024", "has an empty queue.", 'Leave queue= away, or name one: queue="agents".'),
}

PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")

#: Functions without which the node cannot do anything.
NEEDED = frozenset({"do", "choose"})


def has_types(view: View) -> Iterator[Problem]:
    """Each option is of the type that the engine relies on."""
    for name, node in view.nodes.items():
        for option, (types, example) in TYPES.items():
            value = view.option(name, option)
            if hasattr(node, option) and not isinstance(value, types):
                message = f"Node {name!r}: {option} is {value!r:.60}, which is {kind_of(value)}."
                yield view.problem("E027", message, f"Write {example}.", name)
        for option, (code, what, hint) in EMPTY.items():
            if view.option(name, option) == "":
                yield view.problem(code, f"Node {name!r} {what}", hint, name)
        approved_by: Any = getattr(view.option(name, "gate"), "approved_by", None)
        if not isinstance(approved_by, str | NONE):
            message = f"Node {name!r}: approved_by is {approved_by!r:.60}, which is {kind_of(approved_by)}."
            yield view.problem("E027", message, 'Name the approval node as text: Gate(approved_by="ask").', name)


def has_meta_types(view: View) -> Iterator[Problem]:
    """The policies in `class Meta` are policies."""
    for option, (types, example) in META_TYPES.items():
        value: Any = getattr(view.definition, option)
        if not isinstance(value, types):
            message = f"Meta.{option} is {value!r:.60}, which is {kind_of(value)}."
            yield view.problem("E027", message, f"Write {example}.")


def waits_end(view: View) -> Iterator[Problem]:
    """Every wait has an end, and is a wait for something that can be named."""
    for name, node in view.nodes.items():
        for kind, option in ((Wait, "deadline"), (Approval, "expires"), (Ask, "deadline")):
            if isinstance(node, kind) and view.option(name, option) is None:
                hint = f"Add {option}=Deadline(hours=24, then=ESCALATE); then= may also be a node, CANCEL or FAIL."
                yield view.problem("E009", f"Node {name!r} may wait for ever: it has no deadline.", hint, name)
        if isinstance(node, Wait) and not (view.option(name, "any") or view.option(name, "all")):
            event, key = view.option(name, "event"), view.option(name, "key")
            if not isinstance(event, str) or not event:
                hint = 'Name the type of the event: Wait("ci.finished", key=…).'
                yield view.problem("E031", f"Node {name!r} waits for an event without a type.", hint, name)
            if not key or not (isinstance(key, str) or callable(key)):
                hint = "Add key=, a text or a pure function of the state: it says whose event is meant."
                yield view.problem("E031", f"Node {name!r} waits for an event without a key.", hint, name)


def times_are_positive(view: View) -> Iterator[Problem]:
    """There is time for an attempt to run, and a sleep ends in the future."""
    for name, node in view.nodes.items():
        spans = [("timeout", view.option(name, "timeout")), ("the span", view.option(name, "span"))]
        spans += [("every", view.option(name, "every"))]
        for step in node.steps if isinstance(node, Pipeline) else ():
            what, span = f"the timeout of step {step.name!r}", _any(step.timeout)
            spans.append((what, span))
            if not isinstance(span, timedelta):
                message = f"Node {name!r}: {what} is {span!r:.60}, which is {kind_of(span)}."
                yield view.problem("E027", message, "Write timeout=minutes(10).", name)
        for what, span in spans:
            if isinstance(span, timedelta) and not timedelta(0) < span <= LONGEST:
                hint = "Give a positive span, of a hundred years at most: minutes(10)."
                wrong = "not positive" if span <= timedelta(0) else "too long"
                yield view.problem("E025", f"Node {name!r}: {what} is {span}, which is {wrong}.", hint, name)


def causes_are_classes(view: View) -> Iterator[Problem]:
    """The keys of `on=` are error classes, told apart by their names, or verdicts."""
    for name in view.nodes:
        on = view.option(name, "on")
        seen: set[str] = set()
        for cause in on if isinstance(on, Mapping) else ():
            if isinstance(cause, Verdict):
                continue
            if not (isinstance(cause, type) and issubclass(cause, BaseException)):
                hint = "Use an exception class (StateConflict) or a Verdict (Verdict.REVALIDATION_REQUIRED)."
                yield view.problem("E019", f"Node {name!r}: on= has the key {cause!r:.60}.", hint, name)
                continue
            if cause.__name__ in seen:
                hint = "The record knows an error by its class name: rename one, or route their common base."
                yield view.problem("E032", f"Node {name!r}: on= has two classes named {cause.__name__}.", hint, name)
            seen.add(cause.__name__)


def has_functions(view: View) -> Iterator[Problem]:
    """Functions can be called with the one argument they get; only work may be given by its path or be async."""
    for name, node in view.nodes.items():
        for option, function in node.functions():
            works = isinstance(node, Activity) and (option == "do" or isinstance(node, Pipeline)) and not _is_pure(node, option)
            if function is not None or option in NEEDED or isinstance(node, Pipeline):
                yield from function_problems(view, f"Node {name!r}, {option}", function, name, works=works)
    validate = getattr(view.definition.checkpoint, "validate", None)
    if validate is not None:
        yield from function_problems(view, "Meta.checkpoint, validate", validate, "", works=False)


def _is_pure(node: object, option: str) -> bool:
    return isinstance(node, Job) and option in ("key", "read")


def function_problems(view: View, what: str, function: Any, node: str, *, works: bool) -> Iterator[Problem]:
    """What is wrong with one function of an author. `works`: it may do I/O, so it may be async, or given by its path."""
    if isinstance(function, str) and works:
        if not PATH.fullmatch(function):
            hint = 'A function is given itself, or by its path: "app.activities.function".'
            yield view.problem("E020", f"{what}: {function!r} is not a dotted path.", hint, node)
    elif isinstance(function, str) or (inspect.iscoroutinefunction(function) and not works):
        hint = "Give a plain function that looks at its argument and returns a value; work belongs in an Activity."
        yield view.problem("E021", f"{what}: {qualified(function)} must be a plain function.", hint, node)
    elif not callable(function):
        hint = "Give a function (without calling it), or for work its dotted path."
        yield view.problem("E020", f"{what}: {function!r:.60} is not a function.", hint, node)
    elif (fault := _unfit(function)) is not None:
        hint = "It gets one argument: the attempt (work), the state (a pure function), or the value (a schema)."
        yield view.problem("E022", f"{what}: {qualified(function)} cannot be called so: {fault}.", hint, node)


def _unfit(function: Any) -> str | None:
    try:
        inspect.signature(function).bind(object())
    except TypeError as fault:
        return str(fault)
    except ValueError:
        return None  # a builtin does not tell its signature
    return None


def _any(value: Any) -> Any:
    """A declared type does not bind an author: what was written may be anything."""
    return value
