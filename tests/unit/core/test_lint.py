"""Every mistake of G5 and some more: each id is found where the mistake is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from flows.core import lint
from flows.core.definition import DECLARED, Definition, Flow
from flows.core.errors import StateConflict
from flows.core.lint import CATALOGUE, PREFIX, RULES
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Branch, Decision, End, Pipeline, Sleep, Step, Wait
from flows.core.nodes.base import Node
from flows.core.policies import CANCEL, ESCALATE, FAIL, Checkpoint, Deadline, Gate, Retry, Visits, hours, minutes, seconds
from flows.core.verdicts import Verdict
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("G5")

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


@dataclass(frozen=True)
class Case:
    """A mistake, and the same flow without it."""

    code: str
    wrong: Callable[[], Definition]
    right: Callable[[], Definition]
    message: str
    hint: str = ""


class Broken(Node):
    """A node of a later kind that raises whatever happens to it."""

    kind = "broken"

    def targets(self) -> Any:
        raise RuntimeError("cannot say")


def visits_of_a_branch(*, limit: bool) -> Definition:
    return declare(
        first=Activity(work, then="pick", visits=Visits(3, then="done")),
        pick=Branch(key, choices={"again": "first", "on": "done"}, **({"visits": Visits(3, then="done")} if limit else {})),
        **DONE,
    )


CASES = [
    Case("E001", lambda: declare_nothing(), lambda: declare(), "The flow has no nodes.", "attributes of the class"),
    Case(
        "E002",
        lambda: declare(first=Activity(work, then="second"), second=Activity(work, then="first", visits=Visits(1, "first"))),
        lambda: declare(),
        "The flow has no End, so no run of it could end.",
        "done = End(COMPLETE)",
    ),
    Case("E003", lambda: declare({"name": "Not Kebab"}), lambda: declare({"name": "is-kebab-2"}), "The name 'Not Kebab' is not"),
    Case("E003", lambda: declare({"name": None}), lambda: declare(), "The name None is not kebab-case."),
    Case("E004", lambda: declare({"version": 0}), lambda: declare({"version": 1}), "The version 0 is not a whole number from 1."),
    Case("E004", lambda: declare({"version": "2"}), lambda: declare({"version": 2}), "The version '2' is not"),
    Case("E004", lambda: declare({"version": True}), lambda: declare(), "The version True is not"),
    Case(
        "E005",
        lambda: declare({"deadlines": DUE}),
        lambda: declare({"deadline": DUE}),
        "Meta.deadlines is not an option of a flow.",
        "Did you mean 'deadline'?",
    ),
    Case("E005", lambda: declare({"colour": 1}), lambda: declare(), "Meta.colour is not", "Options are abstract, checkpoint,"),
    Case(
        "E006",
        lambda: declare(first=Activity(work, then="dnoe"), **DONE),
        lambda: declare(first=Activity(work, then="done"), **DONE),
        "Node 'first' leads to 'dnoe', which is not a node of this flow.",
        "Did you mean 'done'?",
    ),
    Case(
        "E006",
        lambda: declare(first=Wait("e", key="k", then="done", deadline=Deadline(hours=1, then="escalate")), **DONE),
        lambda: declare(first=Wait("e", key="k", then="done", deadline=Deadline(hours=1, then=ESCALATE)), **DONE),
        "Node 'first' (deadline) leads to 'escalate'",
        "The policy ESCALATE is imported from flows and written without quotes.",
    ),
    Case(
        "E006",
        lambda: declare(first=Activity(work, then="done", on={StateConflict: None}), **DONE),
        lambda: declare(first=Activity(work, then="done", on={StateConflict: "done"}), **DONE),
        "Node 'first' (StateConflict) leads to 'None'",
        "Nodes are first, done.",
    ),
    Case(
        "E006",
        lambda: declare(first=Activity(work, then="done", gate=Gate(approved_by="nobody")), **DONE),
        lambda: sound(),
        "Node 'first' (approval required) leads to 'nobody'",
    ),
    Case(
        "E006",
        lambda: declare({"deadline": Deadline(days=1, then="late")}),
        lambda: declare({"deadline": Deadline(days=1, then="done")}),
        "Meta.deadline leads to 'late'",
    ),
    Case(
        "E007",
        lambda: declare(first=Activity(work, then="done"), lost=Activity(work, then="done"), **DONE),
        lambda: declare({"deadline": Deadline(days=1, then="lost")}, first=Activity(work, then="done"), lost=Activity(work, then="done"), **DONE),
        "Node 'lost' cannot be reached.",
        "The start is 'first'",
    ),
    Case(
        "E008",
        lambda: declare(first=Decision(work, choices={"a": "done", "b": "trap"}), trap=Activity(work, then="trap"), **DONE),
        lambda: declare(first=Decision(work, choices={"a": "done", "b": "trap"}), trap=Activity(work, then="done"), **DONE),
        "Node 'trap' has no way to an End.",
        "one of done",
    ),
    Case(
        "E009",
        lambda: declare(first=Wait("e", key="k", then="done"), **DONE),
        lambda: declare(first=Wait("e", key="k", then="done", deadline=Deadline(hours=1, then=FAIL)), **DONE),
        "Node 'first' may wait for ever: it has no deadline.",
        "deadline=Deadline(hours=24, then=ESCALATE)",
    ),
    Case(
        "E009",
        lambda: sound(ask=Approval(candidate="propose", role="r", approved="merge", denied="gave_up")),
        lambda: sound(ask=Approval(candidate="propose", role="r", approved="merge", denied="gave_up", expires=Deadline(hours=1, then=CANCEL))),
        "Node 'ask' may wait for ever",
        "expires=Deadline",
    ),
    Case("E010", lambda: declare(first=Activity(work), **DONE), lambda: declare(), "Node 'first' does not say what comes next."),
    Case("E010", lambda: declare(first=Sleep(hours(1)), **DONE), lambda: declare(first=Sleep(hours(1), then="done"), **DONE), "Node 'first' does"),
    Case("E010", lambda: declare(first=Pipeline(Step("a", work)), **DONE), lambda: sound(), "Node 'first' does not say what comes next."),
    Case("E011", lambda: declare(first=Decision(work), **DONE), lambda: sound(), "Node 'first' has no choices."),
    Case("E011", lambda: declare(first=Branch(key), **DONE), lambda: sound(), "Node 'first' has no choices."),
    Case(
        "E011",
        lambda: declare(first=Decision(work, choices={"a": "done", "b": None}), **DONE),
        lambda: declare(first=Decision(work, choices={"a": "done"}), **DONE),
        "Node 'first': the choice 'b' leads to None.",
    ),
    Case(
        "E011",
        lambda: declare(first=Branch(key, choices={True: "done"}), **DONE),
        lambda: declare(first=Branch(key, choices={"true": "done"}), **DONE),
        "Node 'first': the choice True leads to 'done'.",
    ),
    Case(
        "E011",
        lambda: declare(first=Wait("e", key="k", deadline=DUE), **DONE),
        lambda: declare(first=Wait("e", key="k", deadline=DUE, then="done"), **DONE),
        "Node 'first' leads nowhere when its event arrives.",
    ),
    Case(
        "E012",
        lambda: declare(first=Activity(work, then="check"), check=Decision(work, choices={"no": "first", "yes": "done"}), **DONE),
        lambda: declare(
            first=Activity(work, then="check", visits=Visits(3, then="done")),
            check=Decision(work, choices={"no": "first", "yes": "done"}),
            **DONE,
        ),
        "The nodes first, check lead round in a cycle without a limit on visits.",
        "Nodes with a limit: none.",
    ),
    Case("E013", lambda: declare(start=Activity(work, then="done"), **DONE), lambda: declare(begin=Activity(work, then="done"), **DONE), "Node 'start' has"),
    Case(
        "E014",
        lambda: declare(first=Branch(key, choices={"a": "second", "b": "done"}), second=Branch(key, choices={"a": "first", "b": "done"}), **DONE),
        lambda: declare(first=Branch(key, choices={"a": "second", "b": "done"}), second=Branch(key, choices={"b": "done"}), **DONE),
        "The nodes first, second lead round in a cycle without a step that is recorded.",
    ),
    Case("E015", lambda: visits_of_a_branch(limit=True), lambda: visits_of_a_branch(limit=False), "Node 'pick' leaves no trace"),
    Case(
        "E016",
        lambda: declare(first=Activity(work, then="second"), second=Activity(work, gate=Gate(approved_by="first"), then="done", visits=Visits(2, "done")), **DONE),
        lambda: sound(),
        "Node 'second': approved_by='first' is not an Approval.",
    ),
    *(
        Case(
            "E017",
            lambda name=name: sound(ask=Approval(candidate=name, role="r", approved="merge", denied="gave_up", expires=DUE)),
            lambda: sound(ask=Approval(candidate="ci", role="r", approved="merge", denied="gave_up", expires=DUE)),
            f"Node 'ask': candidate={name!r} is not a node with a result.",
        )
        for name in ("nothing", "size", "nap", "done", "ask")
    ),
    Case(
        "E018",
        lambda: sound(ci=Wait("e", key="k", then="size", deadline=DUE), propose=Decision(work, choices={"patch": "check"}, on={ValueError: "ask"})),
        lambda: sound(ci=Wait("e", key="k", then="size", deadline=DUE), propose=Decision(work, choices={"patch": "ask", "x": "check"}, on={ValueError: "gave_up"})),
        "Node 'ask' can be reached before 'propose' has a result to ask about.",
    ),
    Case(
        "E019",
        lambda: declare(first=Activity(work, then="done", on={"StateConflict": "done"}), **DONE),
        lambda: declare(first=Activity(work, then="done", on={StateConflict: "done"}), **DONE),
        "Node 'first': on= has the key 'StateConflict'.",
    ),
    Case("E019", lambda: declare(first=Activity(work, then="done", on={int: "done"}), **DONE), lambda: declare(), "Node 'first': on= has the key <class 'int'>."),
    Case("E020", lambda: declare(first=Activity(None, then="done"), **DONE), lambda: declare(), "Node 'first', do: None is not a function."),
    Case("E020", lambda: declare(first=Activity("work", then="done"), **DONE), lambda: declare(first=Activity("a.work", then="done"), **DONE), "Node 'first', do: 'work' is not"),
    Case("E020", lambda: declare(first=Branch(3, choices={"a": "done"}), **DONE), lambda: sound(), "Node 'first', choose: 3 is not a function."),
    Case("E020", lambda: declare(first=Pipeline(Step("a", work), Step("b", None), then="done"), **DONE), lambda: sound(), "Node 'first', b: None is not"),
    Case("E021", lambda: declare(first=Branch(later, choices={"a": "done"}), **DONE), lambda: declare(first=Activity(later, then="done"), **DONE), "Node 'first', choose: later must be a plain function."),
    Case("E021", lambda: declare(first=Activity(work, then="done"), done=End(COMPLETE, result="a.b")), lambda: sound(), "Node 'done', result: a.b must be"),
    Case("E021", lambda: declare({"checkpoint": Checkpoint(validate=later)}), lambda: declare({"checkpoint": Checkpoint(validate=key)}), "Meta.checkpoint, validate: later"),
    Case("E022", lambda: declare(first=Activity(two, then="done"), **DONE), lambda: declare(), "Node 'first', do: two cannot be called so: missing a required argument: 'second'."),
    Case("E022", lambda: declare(first=Sleep(until=lambda: None, then="done"), **DONE), lambda: declare(first=Sleep(until=key, then="done"), **DONE), "Node 'first', until: "),
    Case("E024", lambda: declare(first=Activity(work, queue="", then="done"), **DONE), lambda: declare(first=Activity(work, queue="x", then="done"), **DONE), "Node 'first' has an empty queue."),
    Case("E025", lambda: declare(first=Activity(work, timeout=seconds(0), then="done"), **DONE), lambda: declare(), "Node 'first': timeout is 0:00:00, which is not positive."),
    Case("E025", lambda: declare(first=Pipeline(Step("a", work, timeout=seconds(-1)), then="done"), **DONE), lambda: sound(), "Node 'first': the timeout of step 'a' is"),
    Case("E025", lambda: declare(first=Sleep(seconds(-1), then="done"), **DONE), lambda: declare(first=Sleep(seconds(1), then="done"), **DONE), "Node 'first': the span is"),
    Case("E027", lambda: declare(first=Wait("e", key="k", then="done", deadline=hours(2)), **DONE), lambda: sound(), "Node 'first': deadline is datetime.timedelta", "Write deadline=Deadline(hours=2"),
    Case("E027", lambda: declare(first=Activity(work, then="done", timeout=60), **DONE), lambda: declare(), "Node 'first': timeout is 60, which is an int.", "Write timeout=minutes(10)."),
    Case("E027", lambda: declare(first=Activity(work, then="done", visits=3), **DONE), lambda: sound(), "Node 'first': visits is 3, which is an int."),
    Case("E027", lambda: declare(first=Activity(work, then="done", gate="ask"), **DONE), lambda: sound(), "Node 'first': gate is 'ask', which is a str."),
    Case("E027", lambda: declare(first=Activity(work, then="done", gate=Gate(approved_by=3)), **DONE), lambda: sound(), "Node 'first': approved_by is 3"),
    Case("E027", lambda: declare(first=Activity(work, then="done", retry=3), **DONE), lambda: sound(), "Node 'first': retry is 3, which is an int."),
    Case("E027", lambda: declare(first=Activity(work, then="done", on=[StateConflict]), **DONE), lambda: sound(), "Node 'first': on is [", "on={StateConflict"),
    Case("E027", lambda: declare(first=Decision(work, choices=["done"]), **DONE), lambda: sound(), "Node 'first': choices is ['done']"),
    Case("E027", lambda: sound(ask=Approval(candidate="propose", role="", approved="merge", denied="gave_up", expires=DUE)), lambda: sound(), "Node 'ask' has an empty role"),
    Case("E027", lambda: declare({"deadline": hours(3)}), lambda: declare({"deadline": DUE}), "Meta.deadline is datetime.timedelta"),
    Case("E027", lambda: declare({"checkpoint": key}), lambda: declare(), "Meta.checkpoint is <function key"),
    Case("E027", lambda: declare(first=Pipeline(Step("a", work, timeout=5), then="done"), **DONE), lambda: sound(), "Node 'first': the timeout of step 'a' is 5"),
    Case("E028", lambda: shared(), lambda: declare(first=Activity(work, then="done"), **DONE), "Node 'other' is the same object as node 'done'."),
    Case(
        "E029",
        lambda: sound(nap=Sleep(hours(1), then="ask", gate=Gate(approved_by="ask"))),
        lambda: sound(),
        "Node 'nap' asks for an approval but runs no activity.",
    ),
    Case("E030", lambda: declare(first=Wait("e", key="k", then="done", choices={"a": "done"}, deadline=DUE), **DONE), lambda: sound(), "Node 'first' has then= beside choices=."),
    Case("E030", lambda: declare(first=Activity(work, then="done", on={Verdict.ALLOWED: "done"}), **DONE), lambda: sound(), "Node 'first': on= has ALLOWED"),
    Case("E030", lambda: declare(first=Activity(work, then="done", on={Verdict.INTENT_SUPERSEDED: "done"}), **DONE), lambda: sound(), "Node 'first': on= has INTENT_SUPERSEDED"),
    Case("E030", lambda: declare(first=Sleep(hours(1), then="done", on={StateConflict: "done"}), **DONE), lambda: sound(), "Node 'first' runs no activity, so StateConflict"),
    Case("E031", lambda: declare(first=Wait("", key="k", then="done", deadline=DUE), **DONE), lambda: sound(), "Node 'first' waits for an event without a type."),
    Case("E031", lambda: declare(first=Wait("e", then="done", deadline=DUE), **DONE), lambda: sound(), "Node 'first' waits for an event without a key."),
    Case(
        "E032",
        lambda: declare(first=Activity(work, then="done", on={named("Gone"): "done", named("Gone"): "done"}), **DONE),
        lambda: declare(first=Activity(work, then="done", on={named("Gone"): "done", named("Lost"): "done"}), **DONE),
        "Node 'first': on= has two classes named Gone.",
    ),
    Case("E099", lambda: declare(first=Broken(), **DONE), lambda: declare(), "Node 'first' cannot say where it leads: cannot say"),
]  # fmt: skip


def declare_nothing() -> Definition:
    class Nothing(Flow):
        pass

    return Nothing.definition


def shared() -> Definition:
    end = End(COMPLETE)
    return declare(first=Decision(work, choices={"a": "done", "b": "other"}), done=end, other=end)


def test_a_sound_flow_has_no_problems() -> None:
    assert lint.problems(sound()) == []
    assert lint.problems(declare()) == []


@pytest.mark.parametrize("case", CASES, ids=[f"{case.code}-{number}" for number, case in enumerate(CASES)])
def test_each_mistake_is_found_once_with_its_way_out(case: Case) -> None:
    found = [one for one in lint.problems(case.wrong()) if one.id == PREFIX + case.code]
    assert len(found) == 1, lint.problems(case.wrong())
    assert found[0].message.startswith(case.message)
    assert case.hint in found[0].hint
    assert found[0].severity == "error"


@pytest.mark.parametrize("case", CASES, ids=[f"{case.code}-{number}" for number, case in enumerate(CASES)])
def test_the_same_flow_without_the_mistake_is_sound(case: Case) -> None:
    assert ids(case.right()) == []


def test_every_id_has_a_case_here_or_needs_more_than_one_flow_or_an_import() -> None:
    assert {case.code for case in CASES} == set(CATALOGUE) - {"E023", "E026"}


def test_every_problem_names_its_flow_its_node_and_a_hint() -> None:
    for case in CASES:
        for one in lint.problems(case.wrong()):
            assert one.where.endswith((".Sample", ".Nothing"))
            assert one.hint
            assert one.message.endswith((".", "cannot say"))
            assert one.node == "" or f"'{one.node}'" in one.message


# ---------------------------------------------------------------- cycles


def cycle(first: Any, second: Any, **more: Any) -> list[str]:
    return ids(declare(first=first, second=second, **more, done=End(COMPLETE), gave_up=End(FAILED)))


def leads(*targets: str, **options: Any) -> Decision:
    return Decision(work, choices={target: target for target in targets}, **options)


def test_a_limit_whose_way_out_leads_back_is_no_limit() -> None:
    assert cycle(leads("second", visits=Visits(3, "second")), leads("first", "done")) == ["E012"]
    assert cycle(leads("second", visits=Visits(3, "gave_up")), leads("first", "done")) == []


def test_a_limit_that_leads_to_its_own_node_is_no_limit() -> None:
    assert cycle(leads("second", visits=Visits(3, "first")), leads("first", "done", "gave_up")) == ["E012"]


def test_one_limit_is_enough_for_all_cycles_through_its_node() -> None:
    third = leads("first", "second", "done")
    assert cycle(leads("second", "third"), leads("third", visits=Visits(3, "gave_up")), third=third) == ["E012"]
    assert cycle(leads("second", "third", visits=Visits(3, "gave_up")), leads("third"), third=leads("first", "done")) == []


def test_a_limit_may_lead_on_to_another_limited_node() -> None:
    assert cycle(leads("second", visits=Visits(3, "second")), leads("first", "done", visits=Visits(9, "gave_up"))) == []


@pytest.mark.parametrize(
    "waiting", [Wait("e", key="k", then="first", deadline=Deadline(hours=1, then="done")), Sleep(hours(1), then="first")]
)
def test_a_wait_does_not_bound_a_cycle_because_nothing_counts_there(waiting: Any) -> None:
    assert cycle(leads("second", "done", "gave_up"), waiting) == ["E012"]


def test_an_approval_bounds_a_cycle_because_people_are_not_asked_for_ever() -> None:
    ask = Approval(candidate="first", role="r", approved="done", changes="first", denied="gave_up", expires=DUE)
    assert cycle(leads("second"), ask) == []


def test_an_approval_whose_own_limit_leads_back_does_not_bound_a_cycle() -> None:
    ask = Approval(
        candidate="first", role="r", approved="done", changes="first", denied="gave_up", expires=DUE, visits=Visits(2, "first")
    )
    assert cycle(leads("second"), ask) == ["E012"]


def test_an_error_route_makes_a_cycle_too() -> None:
    assert cycle(
        Activity(work, then="second"), Activity(work, then="done", on={StateConflict: "first", ValueError: "gave_up"})
    ) == ["E012"]


def test_a_node_that_leads_to_itself_is_a_cycle() -> None:
    found = lint.problems(declare(first=leads("first", "done"), **DONE))
    assert [one.message for one in found] == ["Node 'first' leads to itself without a limit on visits."]


def test_a_limit_on_a_branch_does_not_bound_its_cycle() -> None:
    pick = Branch(key, choices={"first": "first", "done": "done"}, visits=Visits(3, "gave_up"))
    assert cycle(leads("second"), pick) == ["E015", "E012"]


def test_two_separate_cycles_are_two_problems() -> None:
    assert cycle(leads("first", "second"), leads("second", "done", "gave_up")) == ["E012", "E012"]


# ---------------------------------------------------------------- candidates


def test_a_limit_on_visits_does_not_count_before_its_node_can_be_entered_again() -> None:
    """`check` is only entered a second time after `propose` has a result, so its limit cannot lead to `ask` too early."""
    made = declare(
        check=Activity(work, then="propose", visits=Visits(3, then="ask")),
        propose=Decision(work, choices={"a": "check", "b": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="done", denied="done", expires=DUE),
        **DONE,
    )
    assert ids(made) == []


def test_a_limit_on_visits_counts_where_its_node_is_entered_again_by_errors() -> None:
    made = declare(
        check=Activity(work, then="propose", visits=Visits(3, then="ask")),
        propose=Decision(work, choices={"b": "ask"}, on={StateConflict: "check"}),
        ask=Approval(candidate="propose", role="r", approved="done", denied="done", expires=DUE),
        **DONE,
    )
    assert ids(made) == ["E018"]


def test_the_flows_deadline_may_come_before_there_is_a_candidate() -> None:
    made = declare(
        {"deadline": Deadline(days=1, then="ask")},
        propose=Decision(work, choices={"b": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="done", denied="done", expires=DUE),
        **DONE,
    )
    assert ids(made) == ["E018"]


def test_the_deadline_of_the_candidates_own_wait_leaves_no_result() -> None:
    made = declare(
        first=Wait("e", key="k", then="ask", deadline=Deadline(hours=1, then="ask")),
        ask=Approval(candidate="first", role="r", approved="done", denied="done", expires=DUE),
        **DONE,
    )
    assert ids(made) == ["E018"]


# ---------------------------------------------------------------- the whole set


def test_two_flows_of_one_name_and_version_are_found_at_the_second() -> None:
    class One(Flow):
        class Meta:
            name = "twin"

        done = End(COMPLETE)

    class Two(Flow):
        class Meta:
            name = "twin"

        done = End(FAILED)

    found = [one for one in lint.problems_of_all([One, Two]) if one.id == PREFIX + "E026"]
    assert len(found) == 1
    assert found[0].where.endswith("Two")
    assert found[0].message == f"Flow 'twin' version 1 is also declared as {One.definition.where}."


def test_two_versions_and_a_module_that_was_loaded_twice_are_no_conflict() -> None:
    def declared(version: int) -> type[Flow]:
        class Live(Flow):
            class Meta:
                pass

            done = End(COMPLETE)

        Live.definition = declare({"version": version, "name": "live"})
        return Live

    first, again, second = declared(1), declared(1), declared(2)
    assert lint.problems_of_all([first, again, first, second]) == []


def test_the_problems_of_all_contain_those_of_each() -> None:
    class Odd(Flow):
        done = End(COMPLETE)
        lost = End(FAILED)

    assert [one.id for one in lint.problems_of_all([Odd])] == [PREFIX + "E007"]
    assert DECLARED[-1] is Odd


# ---------------------------------------------------------------- robustness


def test_one_wrong_route_does_not_make_half_a_flow_unreachable() -> None:
    assert ids(declare(first=Activity(work, then="secnd"), second=Activity(work, then="done"), **DONE)) == ["E006"]


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, object(), {"a": object()}, {("a",): ["b"]}, work, StateConflict])
def test_whatever_stands_in_an_option_is_reported_and_never_a_traceback(value: Any) -> None:
    nodes: list[Any] = [
        *(Activity(work, **{"then": "done", name: value}) for name in ("then", "timeout", "retry", "queue", "on", "visits", "gate", "placement")),
        *(Decision(work, **{"choices": {"a": "done"}, name: value}) for name in ("choices", "schema")),
        *(Wait("e", **{"key": "k", "deadline": DUE, "then": "done", name: value}) for name in ("key", "then", "choices", "deadline", "read")),
        *(Approval(**{"candidate": "first", "role": "r", "approved": "done", "denied": "done", "expires": DUE, name: value})
          for name in ("candidate", "role", "approved", "denied", "changes", "expires", "self_approval")),
        Activity(value, then="done"),
        Branch(value, choices={"a": "done"}),
        Wait(value, key="k", then="done", deadline=DUE),
        Pipeline(Step("a", value), then="done"),
        End(COMPLETE, result=value),
    ]  # fmt: skip
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
