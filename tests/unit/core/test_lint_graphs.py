"""Cycles, candidates and whole sets of flows: where the checks must look at more than one node."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core import lint
from flows.core.definition import DECLARED, Definition, Flow
from flows.core.errors import StateConflict
from flows.core.lint import PREFIX
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Branch, Decision, End, Sleep, Wait
from flows.core.policies import ESCALATE, Deadline, Visits
from flows.core.spans import hours
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("G5")

DUE = Deadline(hours=1, then=ESCALATE)
DONE = {"done": End(COMPLETE)}


def key(state: Any) -> str:
    return "k"


def ids(definition: Definition) -> list[str]:
    return [one.id.removeprefix(PREFIX) for one in lint.problems(definition)]


# ---------------------------------------------------------------- cycles


def cycle(first: Any, second: Any, **more: Any) -> list[str]:
    return ids(declare(first=first, second=second, **more, done=End(COMPLETE), gave_up=End(FAILED)))


def leads(*targets: str, **options: Any) -> Decision:
    return Decision(work, choices={target: target for target in targets}, **options)


def test_a_limit_whose_way_out_leads_back_is_no_limit() -> None:
    assert cycle(leads("second", visits=Visits(3, "second")), leads("first", "done", "gave_up")) == ["E012"]
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
