"""Branch and End: resolved at once, by pure functions of the state."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.errors import DefinitionError, PayloadError
from flows.core.moves import Finish, Goto
from flows.core.nodes import COMPLETE, FAILED, Branch, End
from flows.core.protocol import Outcome, Status
from flows.core.state import Entered
from tests.support.flow_values import declare, state


def node(kind: Any) -> Any:
    return declare(first=kind).nodes["first"]


@pytest.mark.req("G1")
def test_a_branch_leads_where_its_function_says() -> None:
    sample = node(Branch(lambda state: state.input["size"], choices={"big": "slow", "small": "fast"}))
    assert sample.enter(state(input={"size": "big"})) == Goto("slow")
    assert sample.resume(state(input={"size": "small"}), Entered()) == Goto("fast")


@pytest.mark.req("G1")
def test_a_branch_cannot_name_a_node_that_is_not_declared() -> None:
    sample = node(Branch(lambda state: "merge", choices={"b": "slow", "a": "fast"}))
    with pytest.raises(DefinitionError, match=r"^Branch first answered 'merge'; declared are a, b\.$"):
        sample.enter(state())


def test_ends_finish_with_status_outcome_and_result() -> None:
    assert node(End(COMPLETE)).enter(state()) == Finish("first", Status.COMPLETE, Outcome.COMPLETE)
    assert node(End(COMPLETE, result=lambda state: state.results["x"])).enter(state(results={"x": [1]})).result == [1]


def test_a_failed_end_says_which_one_it_was() -> None:
    assert node(End(FAILED)).enter(state()) == Finish("first", Status.FAILED, Outcome.FAILED, code="ENDED_AT:first")


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.HUMAN_REQUIRED, "COMPLETE-ish", None])
def test_an_end_is_complete_or_failed(outcome: Any) -> None:
    with pytest.raises(DefinitionError, match="End takes COMPLETE or FAILED"):
        End(outcome)


def test_an_end_refuses_a_result_that_cannot_be_stored() -> None:
    with pytest.raises(PayloadError, match=r"^the result of sample: holds a object, which is not JSON"):
        node(End(COMPLETE, result=lambda state: object())).enter(state())
