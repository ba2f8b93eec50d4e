"""Every mistake of G5 and some more: each id is found where the mistake is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.definition import Definition, Flow
from flows.core.errors import StateConflict
from flows.core.lint import CATALOGUE, PREFIX, RULES
from flows.core.nodes import (
    COMPLETE,
    FAILED,
    Activity,
    Approval,
    Branch,
    Decision,
    End,
    Escalation,
    Pipeline,
    Reviewers,
    Sleep,
    Step,
    Wait,
)
from flows.core.nodes.base import Node
from flows.core.policies import CANCEL, ESCALATE, FAIL, Checkpoint, Deadline, Retry, Visits
from flows.core.requirements import Gate
from flows.core.spans import hours, minutes, seconds
from flows.core.verdicts import Verdict
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("G5")

#: Those of the files beside this one.
NAMES = {"E039"}
EFFECTS = {"E033", "E034", "E035", "E036", "E037", "E038", "W001", "W002"}
BUDGETS = {"E061"}
VERSIONS = {"E045", "E046", "E047"}
DEADLINES = {"E051", "E052", "E053", "E054", "E087"}
ASKS = {"E079"}
SCHEDULES = {"E084", "E085", "E086", "W004"}
GATES = {"E071", "E072", "E073", "E074", "E075", "E076", "E080", "W003"}
AGENTS = {"E131", "E132", "W131"}
CHILDREN = {"E091", "E093", "E094", "E096", "E097", "E098"}
JOBS = {"E095", "W006"}
OBJECTIVES = {"W007"}
CAPACITY = {"E088", "E089", "E090", "W005"}
EVENTS = {"E081", "E082", "E083"}
ELSEWHERE = (
    AGENTS
    | ASKS
    | BUDGETS
    | CAPACITY
    | CHILDREN
    | DEADLINES
    | EFFECTS
    | EVENTS
    | GATES
    | JOBS
    | NAMES
    | OBJECTIVES
    | SCHEDULES
    | VERSIONS
)

DUE = Deadline(hours=1, then=ESCALATE)
DONE = {"done": End(COMPLETE)}


async def later(attempt: Any) -> None:
    """Work may be async."""


def two(first: Any, second: Any) -> None:
    """Nothing calls a function with two arguments."""


def key(state: Any) -> str:
    return "k"


def named(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


def sound(**changes: Any) -> Definition:
    """A flow with one node of each kind and nothing wrong."""
    nodes: dict[str, Any] = {
        "propose": Decision(work, choices={"patch": "check", "give_up": "gave_up"}, visits=Visits(5, then="gave_up")),
        "check": Pipeline(Step("a", later), Step("b", work, timeout=minutes(1)), on={StateConflict: "propose"}, then="ci"),
        "ci": Wait("ci.finished", key=key, choices={"ok": "size", "bad": "propose"}, deadline=DUE),
        "size": Branch(key, choices={"big": "nap", "small": "ask"}),
        "nap": Sleep(hours(1), then="ask"),
        "ask": Approval(candidate="propose", role="r", approved="merge", changes="propose", denied="gave_up", expires=DUE),
        "merge": Activity(
            "app.activities.merge",
            gate=Gate(approved_by="ask"),
            retry=Retry(max_attempts=5),
            on={Verdict.REVALIDATION_REQUIRED: "check"},
            then="done",
        ),
        "done": End(COMPLETE, result=key),
        "gave_up": End(FAILED),
    }
    meta = {"version": 2, "deadline": Deadline(days=2, then=ESCALATE), "checkpoint": Checkpoint(validate=key)}
    return declare(meta, **{**nodes, **changes})


def ids(definition: Definition) -> list[str]:
    return [one.id.removeprefix(PREFIX) for one in lint.problems(definition)]


class Broken(Node):
    """A node of a later kind that raises whatever happens to it."""

    kind = "broken"

    def targets(self) -> Any:
        raise RuntimeError("cannot say")


def declare_nothing() -> Definition:
    class Nothing(Flow):
        pass

    return Nothing.definition


def one(node: Any, **more: Any) -> Definition:
    """A flow of this node, an End, and whatever else."""
    return declare(first=node, **more, **DONE)


def activity(do: Any = work, **options: Any) -> Definition:
    return one(Activity(do, **{"then": "done", **options}))


def event(event: Any = "e", **options: Any) -> Definition:
    return one(Wait(event, **{"key": "k", "then": "done", "deadline": DUE, **options}))


def approval(**options: Any) -> Approval:
    given = {"candidate": "propose", "role": "r", "approved": "merge", "denied": "gave_up", "expires": DUE}
    return Approval(**{**given, **options})


def shared() -> Definition:
    end = End(COMPLETE)
    return declare(first=Decision(work, choices={"a": "done", "b": "other"}), done=end, other=end)


def rounds(check: Any, **options: Any) -> Definition:
    return declare(first=Activity(work, then="check", **options), check=check, **DONE)


def branches(second: dict[str, str]) -> Definition:
    first = Branch(key, choices={"a": "second", "b": "done"})
    return declare(first=first, second=Branch(key, choices=second), **DONE)


def failing_candidate(target: str) -> Definition:
    """Whether an error of `propose` leads to the approval of what it has not proposed."""
    propose = Decision(work, choices={"patch": "ask"}, on={ValueError: target})
    return declare(propose=propose, ask=approval(approved="done"), gave_up=End(FAILED), **DONE)


AGAIN = Decision(work, choices={"no": "first", "yes": "done"})
ERRORS = {StateConflict: "done"}

#: Each mistake: its id, how its message begins, and part of its hint.
WRONG: list[tuple[str, Callable[[], Definition], str, str]] = [
    ("E001", declare_nothing, "The flow has no nodes.", "attributes of the class"),
    (
        "E002",
        lambda: declare(first=Activity(work, then="first", visits=Visits(1, "first"))),
        "The flow has no End",
        "End(COMPLETE)",
    ),
    ("E003", lambda: declare({"name": "Not Kebab"}), "The name 'Not Kebab' is not kebab-case.", "'upgrade-library'"),
    ("E003", lambda: declare({"name": "two--hyphens"}), "The name 'two--hyphens' is not", ""),
    ("E003", lambda: declare({"name": None}), "The name None is not kebab-case.", ""),
    ("E004", lambda: declare({"version": 0}), "The version 0 is not a whole number from 1.", "1, 2, 3"),
    ("E004", lambda: declare({"version": "2"}), "The version '2' is not", ""),
    ("E004", lambda: declare({"version": True}), "The version True is not", ""),
    ("E005", lambda: declare({"deadlines": DUE}), "Meta.deadlines is not an option", "Did you mean 'deadline'?"),
    (
        "E005",
        lambda: declare({"colour": 1}),
        "Meta.colour is not an option",
        "Options are abstract, admission, budget, checkpoint,",
    ),
    ("E006", lambda: activity(then="dnoe"), "Node 'first' leads to 'dnoe', which is not a node", "Did you mean 'done'?"),
    (
        "E006",
        lambda: event(deadline=Deadline(hours=1, then="escalate")),
        "Node 'first' (deadline) leads to 'escalate'",
        "ESCALATE is imported",
    ),
    ("E006", lambda: activity(on={StateConflict: None}), "Node 'first' (StateConflict) leads to 'None'", ""),
    (
        "E006",
        lambda: activity(gate=Gate(approved_by="xyz")),
        "Node 'first' (approval required) leads to 'xyz'",
        "Nodes are first, done.",
    ),
    ("E006", lambda: declare({"deadline": Deadline(days=1, then="late")}), "Meta.deadline leads to 'late'", ""),
    (
        "E007",
        lambda: one(Activity(work, then="done"), lost=Activity(work, then="done")),
        "Node 'lost' cannot be reached.",
        "The start is 'first'",
    ),
    (
        "E008",
        lambda: one(Decision(work, choices={"a": "done", "b": "trap"}), trap=Activity(work, then="trap")),
        "Node 'trap' has no way to an End.",
        "one of done",
    ),
    ("E009", lambda: event(deadline=None), "Node 'first' may wait for ever", "deadline=Deadline(hours=24, then=ESCALATE)"),
    ("E009", lambda: sound(ask=approval(expires=None)), "Node 'ask' may wait for ever", "expires=Deadline"),
    ("E010", lambda: activity(then=""), "Node 'first' does not say what comes next.", 'then="done"'),
    ("E010", lambda: activity(then=None), "Node 'first' does not say what comes next.", ""),
    ("E010", lambda: one(Sleep(hours(1))), "Node 'first' does not say what comes next.", ""),
    ("E010", lambda: one(Pipeline(Step("a", work))), "Node 'first' does not say what comes next.", ""),
    ("E011", lambda: one(Decision(work)), "Node 'first' has no choices.", "choices={"),
    ("E011", lambda: one(Branch(key)), "Node 'first' has no choices.", ""),
    ("E011", lambda: one(Decision(work, choices={"a": "done", "b": None})), "Node 'first': the choice 'b' leads to None.", ""),
    ("E011", lambda: one(Branch(key, choices={True: "done"})), "Node 'first': the choice True leads to 'done'.", ""),
    ("E011", lambda: event(then=""), "Node 'first' leads nowhere when its event arrives.", "then="),
    (
        "E012",
        lambda: rounds(AGAIN),
        "The nodes first, check lead round in a cycle without a limit on visits.",
        "Nodes with a limit: none.",
    ),
    ("E013", lambda: declare(start=Activity(work, then="done"), **DONE), "Node 'start' has a reserved name.", "Flow.start"),
    ("E013", lambda: declare(definition=Activity(work, then="done"), **DONE), "Node 'definition' has a reserved name.", ""),
    (
        "E014",
        lambda: branches({"a": "first", "b": "done"}),
        "The nodes first, second lead round in a cycle without a step",
        "activity",
    ),
    (
        "E015",
        lambda: one(Branch(key, choices={"a": "done"}, visits=Visits(3, "done"))),
        "Node 'first' leaves no trace",
        "visits=",
    ),
    (
        "E016",
        lambda: one(
            Activity(work, then="act"), act=Activity(work, gate=Gate(approved_by="first"), then="done", visits=Visits(2, "done"))
        ),
        "Node 'act': approved_by='first' is not an Approval.",
        "Name the Approval",
    ),
    *(
        (
            "E017",
            lambda name=name: sound(ask=approval(candidate=name)),
            f"Node 'ask': candidate={name!r} is not a node with a result.",
            "",
        )
        for name in ("nothing", "size", "nap", "done", "ask")
    ),
    ("E018", lambda: failing_candidate("ask"), "Node 'ask' can be reached before 'propose' has a result", "not by an error"),
    ("E019", lambda: activity(on={"StateConflict": "done"}), "Node 'first': on= has the key 'StateConflict'.", "Verdict"),
    ("E019", lambda: activity(on={int: "done"}), "Node 'first': on= has the key <class 'int'>.", ""),
    ("E019", lambda: activity(on={StateConflict(): "done"}), "Node 'first': on= has the key StateConflict(", ""),
    ("E020", lambda: activity(None), "Node 'first', do: None is not a function.", "without calling it"),
    ("E020", lambda: activity("work"), "Node 'first', do: 'work' is not a dotted path.", "app.activities.function"),
    ("E020", lambda: one(Branch(3, choices={"a": "done"})), "Node 'first', choose: 3 is not a function.", ""),
    (
        "E020",
        lambda: one(Pipeline(Step("a", work), Step("b", None), then="done")),
        "Node 'first', b: None is not a function.",
        "",
    ),
    (
        "E021",
        lambda: one(Branch(later, choices={"a": "done"})),
        "Node 'first', choose: later must be a plain function.",
        "Activity",
    ),
    ("E021", lambda: declare(done=End(COMPLETE, result="a.b")), "Node 'done', result: a.b must be a plain function.", ""),
    ("E021", lambda: declare({"checkpoint": Checkpoint(validate=later)}), "Meta.checkpoint, validate: later must be", ""),
    (
        "E022",
        lambda: activity(two),
        "Node 'first', do: two cannot be called so: missing a required argument: 'second'.",
        "one argument",
    ),
    ("E022", lambda: one(Sleep(until=lambda: None, then="done")), "Node 'first', until: ", ""),
    ("E024", lambda: activity(queue=""), "Node 'first' has an empty queue.", 'queue="agents"'),
    ("E025", lambda: activity(timeout=seconds(0)), "Node 'first': timeout is 0:00:00, which is not positive.", "minutes(10)"),
    (
        "E025",
        lambda: one(Pipeline(Step("a", work, timeout=seconds(-1)), then="done")),
        "Node 'first': the timeout of step 'a' is",
        "",
    ),
    ("E025", lambda: one(Sleep(seconds(-1), then="done")), "Node 'first': the span is", ""),
    ("E027", lambda: event(deadline=hours(2)), "Node 'first': deadline is datetime.timedelta", "Write deadline=Deadline(hours=2"),
    ("E027", lambda: activity(timeout=60), "Node 'first': timeout is 60, which is an int.", "Write timeout=minutes(10)."),
    ("E027", lambda: activity(visits=3), "Node 'first': visits is 3, which is an int.", ""),
    ("E027", lambda: activity(gate="ask"), "Node 'first': gate is 'ask', which is a str.", ""),
    ("E027", lambda: activity(gate=Gate(approved_by=3)), "Node 'first': approved_by is 3, which is an int.", ""),
    ("E027", lambda: activity(retry=3), "Node 'first': retry is 3, which is an int.", ""),
    ("E027", lambda: activity(on=[StateConflict]), "Node 'first': on is [", "on={StateConflict"),
    ("E027", lambda: one(Decision(work, choices=["done"])), "Node 'first': choices is ['done']", ""),
    ("E078", lambda: sound(ask=approval(role="")), "Node 'ask' asks nobody.", "Django group"),
    ("E078", lambda: sound(ask=approval(role="", steps=[Reviewers()])), "Node 'ask' asks nobody.", "steps="),
    ("E078", lambda: sound(ask=approval(steps=[Reviewers("b")])), "Node 'ask' has steps= beside role", "alone"),
    ("E078", lambda: sound(ask=approval(role="", steps=["b"])), "Node 'ask' has 'b' in steps=.", "Reviewers"),
    ("E078", lambda: sound(ask=approval(need=0)), "Node 'ask' cannot ask: Reviewers(need=0)", "role="),
    (
        "E078",
        lambda: sound(ask=approval(permission="release")),
        "Node 'ask' cannot ask: Reviewers(permission='release'): a permission is written",
        "role=",
    ),
    ("E078", lambda: sound(ask=approval(reminders=[hours(0)])), "Node 'ask' has a reminder", "hours(4)"),
    ("E078", lambda: sound(ask=approval(reminders=[4])), "Node 'ask' has 4 in reminders=.", "hours(4)"),
    ("E078", lambda: sound(ask=approval(reminders=[hours(1)] * 21)), "Node 'ask' has 21 entries", "20"),
    ("E027", lambda: sound(ask=approval(escalation=Escalation("m", hours=1))), "Node 'ask': escalation is", "Escalation("),
    ("E027", lambda: declare({"deadline": hours(3)}), "Meta.deadline is datetime.timedelta", ""),
    ("E027", lambda: declare({"checkpoint": key}), "Meta.checkpoint is <function key", ""),
    ("E027", lambda: one(Pipeline(Step("a", work, timeout=5), then="done")), "Node 'first': the timeout of step 'a' is 5", ""),
    ("E028", shared, "Node 'other' is the same object as node 'done'.", "a node of its own"),
    (
        "E029",
        lambda: sound(nap=Sleep(hours(1), then="ask", gate=Gate(approved_by="ask"))),
        "Node 'nap' asks for an approval",
        "activity",
    ),
    ("E030", lambda: event(choices={"a": "done"}), "Node 'first' has then= beside choices=.", "one of the two"),
    ("E030", lambda: activity(on={Verdict.ALLOWED: "done"}), "Node 'first': on= has ALLOWED", ""),
    ("E030", lambda: activity(on={Verdict.INTENT_SUPERSEDED: "done"}), "Node 'first': on= has INTENT_SUPERSEDED", ""),
    ("E030", lambda: one(Sleep(hours(1), then="done", on=ERRORS)), "Node 'first' runs no activity, so StateConflict", ""),
    ("E031", lambda: event(""), "Node 'first' waits for an event without a type.", "ci.finished"),
    ("E031", lambda: event(key=""), "Node 'first' waits for an event without a key.", "key="),
    (
        "E032",
        lambda: activity(on={named("Gone"): "done", named("Gone"): "done"}),
        "Node 'first': on= has two classes named Gone.",
        "rename",
    ),
    ("E099", lambda: one(Broken()), "Node 'first' cannot say where it leads: cannot say", "options of this node"),
]

#: What is close to the mistake of that id and is none.
RIGHT: list[tuple[str, Callable[[], Definition]]] = [
    ("E001", lambda: declare(done=End(COMPLETE))),
    ("E002", lambda: declare(done=End(FAILED))),
    ("E003", lambda: declare({"name": "is-kebab-2"})),
    ("E004", lambda: declare({"version": 12})),
    ("E005", lambda: declare({"verbose_name": "A name", "deadline": DUE})),
    ("E006", lambda: event(deadline=Deadline(hours=1, then="done"))),
    (
        "E007",
        lambda: declare({"deadline": Deadline(days=1, then="late")}, first=Activity(work, then="done"), late=End(FAILED), **DONE),
    ),
    ("E008", lambda: one(Decision(work, choices={"a": "done", "b": "more"}), more=Activity(work, then="done"))),
    ("E009", lambda: event(deadline=Deadline(hours=1, then=FAIL))),
    ("E009", lambda: sound(ask=approval(expires=Deadline(hours=1, then=CANCEL)))),
    ("E010", lambda: one(Sleep(hours(1), then="done"))),
    ("E011", lambda: event(choices={"ok": "done"}, then="")),
    ("E012", lambda: rounds(AGAIN, visits=Visits(3, "done"))),
    ("E013", lambda: declare(begin=Activity(work, then="done"), **DONE)),
    ("E014", lambda: branches({"b": "done"})),
    ("E015", lambda: activity(visits=Visits(3, "done"))),
    ("E016", sound),
    ("E017", lambda: sound(ask=approval(candidate="ci"))),
    ("E018", lambda: failing_candidate("gave_up")),
    ("E019", lambda: activity(on={StateConflict: "done", Verdict.REVALIDATION_REQUIRED: "done"})),
    ("E020", lambda: activity("app.activities.work")),
    ("E021", lambda: activity(later)),
    ("E022", lambda: activity(lambda attempt, extra=1: None)),
    ("E022", lambda: one(Decision(work, choices={"a": "done"}, schema=dict))),
    ("E024", lambda: activity(queue="slow")),
    ("E025", lambda: one(Sleep(seconds(1), then="done"))),
    ("E027", lambda: activity(timeout=minutes(1), visits=None, gate=None, retry=Retry())),
    ("E028", lambda: one(Decision(work, choices={"a": "done", "b": "other"}), other=End(COMPLETE))),
    ("E029", sound),
    ("E030", lambda: activity(on=ERRORS)),
    ("E031", lambda: event(key=key)),
    ("E032", lambda: activity(on={named("Gone"): "done", named("Lost"): "done"})),
    ("E099", declare),
    ("E078", lambda: sound(ask=approval(role="", pool="p", reminders=[hours(1)], escalation=[Escalation("m", hours=2)]))),
    ("E078", lambda: sound(ask=approval(role="", steps=[Reviewers("a", need=2), Reviewers(permission="a.b", when=key)]))),
]


def test_a_sound_flow_has_no_problems() -> None:
    assert lint.problems(sound()) == []
    assert lint.problems(declare()) == []


@pytest.mark.parametrize(("code", "make", "message", "hint"), WRONG, ids=[f"{case[0]}-{n}" for n, case in enumerate(WRONG)])
def test_each_mistake_is_found_once_with_its_way_out(code: str, make: Callable[[], Definition], message: str, hint: str) -> None:
    found = [one for one in lint.problems(make()) if one.id == PREFIX + code]
    assert len(found) == 1, lint.problems(make())
    assert found[0].message.startswith(message)
    assert hint in found[0].hint
    assert found[0].severity == "error"


@pytest.mark.parametrize(("code", "make"), RIGHT, ids=[f"{case[0]}-{n}" for n, case in enumerate(RIGHT)])
def test_what_is_close_to_a_mistake_and_none_is_not_reported(code: str, make: Callable[[], Definition]) -> None:
    assert ids(make()) == []


def test_every_id_has_a_case_of_each_kind_or_needs_more_than_the_flow_itself() -> None:
    assert (
        {case[0] for case in WRONG}
        == {case[0] for case in RIGHT}
        == set(CATALOGUE) - {"E023", "E026", "E040", "E077"} - ELSEWHERE
    )


def test_every_problem_names_its_flow_its_node_and_a_hint() -> None:
    for _, make, _, _ in WRONG:
        for found in lint.problems(make()):
            assert found.where.endswith((".Sample", ".Nothing"))
            assert found.hint
            assert found.node == "" or f"'{found.node}'" in found.message


def test_one_wrong_route_does_not_make_half_a_flow_unreachable() -> None:
    assert ids(declare(first=Activity(work, then="secnd"), second=Activity(work, then="done"), **DONE)) == ["E006"]


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, object(), {"a": object()}, {("a",): ["b"]}, work, StateConflict])
def test_whatever_stands_in_an_option_is_reported_and_never_a_traceback(value: Any) -> None:
    def each(make: Callable[..., Any], given: dict[str, Any], *options: str) -> list[Any]:
        return [make(**{**given, option: value}) for option in (*given, *options)]

    routes = {"approved": "done", "denied": "done"}
    nodes: list[Any] = [
        *each(Activity, {"do": work, "then": "done"}, "timeout", "retry", "queue", "on", "visits", "gate", "placement"),
        *each(Decision, {"do": work, "choices": {"a": "done"}}, "schema"),
        *each(Branch, {"choose": key, "choices": {"a": "done"}}, "on", "gate"),
        *each(Wait, {"event": "e", "key": "k", "deadline": DUE, "then": "done"}, "choices", "read"),
        *each(Approval, {"candidate": "first", "role": "r", "expires": DUE, **routes}, "changes", "self_approval", "visits"),
        Pipeline(Step("a", value), then="done"),
        End(COMPLETE, result=value),
    ]
    for node in nodes:
        for meta in ({}, {"deadline": value}, {"checkpoint": value}, {"name": value}, {"version": value}):
            for one in lint.problems(declare(meta, first=node, **DONE)):
                assert not one.message.startswith("The flow cannot be checked"), (node, meta, one)


def test_a_rule_that_fails_is_a_problem_and_the_other_rules_still_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(view: Any) -> Any:
        raise KeyError("oops")
        yield

    monkeypatch.setattr(lint, "RULES", (failing, *RULES))
    found = lint.problems(declare({"version": 0}))
    assert [one.id.removeprefix(PREFIX) for one in found] == ["E099", "E004"]
    assert found[0].message == "The flow cannot be checked (failing): KeyError: 'oops'"
