"""Releases, without a database: what a release is made of, and what becomes of a run that wakes under another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from flows import (
    CANCEL,
    COMPLETE,
    HUMAN,
    MIGRATE,
    RESUME_PINNED,
    Activity,
    Deadline,
    End,
    Flow,
    Sleep,
    Visits,
    Wait,
    hours,
    restart_from,
)
from flows.core import lint
from flows.core import releases as pure
from flows.core.decide import Decided, decide
from flows.core.definition import DECLARED, Definition
from flows.core.errors import DefinitionError, PayloadError
from flows.core.moves import CancelSelf, Open, Park, Rest, Run, Suspend
from flows.core.protocol import Outcome
from flows.core.releases import InvalidRelease, OnRelease, content, differences, digest_of, judge
from flows.core.state import ActivityState, Completed, Facts, ReleaseFact, State, WaitState, Woken
from flows.core.verdicts import Verdict

pytestmark = pytest.mark.req("I1")

NOW = datetime(2027, 1, 4, tzinfo=UTC)
CANCELS = pure.as_policy(CANCEL)
POLICIES = {
    "pinned": RESUME_PINNED,
    "migrate": MIGRATE,
    "restart": restart_from("plan"),
    "human": pure.as_policy(HUMAN),
    "cancel": CANCELS,
}


def work(attempt: Any) -> None: ...


def declared(**meta: Any) -> Definition:
    made = type(
        "Nightly",
        (Flow,),
        {
            "Meta": type("Meta", (), {"name": "t-nightly", **meta}),
            "plan": Activity(work, visits=Visits(2, then="over"), then="nap"),
            "nap": Sleep(hours(1), then="act"),
            "act": Activity(work, on={Verdict.RELEASE_INCOMPATIBLE: "over"}, then="done"),
            "done": End(COMPLETE),
            "over": End(COMPLETE),
        },
    )
    DECLARED.remove(made)
    return made.definition


def told(fact: ReleaseFact | None, policy: OnRelease = MIGRATE, trigger: Any = None, **state: Any) -> Decided:
    """What the engine decides for a run that wakes with this fact; it sleeps unless something else is said."""
    definition = declared(on_release=policy)
    asleep = {
        "node": "nap",
        "wait": WaitState(1, "nap", "timer", 1, None, True),
        "visits": MappingProxyType({"plan": 1, "nap": 1}),
    }
    now = State("w", "t-nightly", 1, None, input={}, now=NOW, **{**asleep, **state})  # type: ignore[arg-type]
    return decide(definition, now, trigger or Woken(), Facts(1, "active", definition.fingerprint, release=fact))


# ------------------------------------------------------------------ judging


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("current", "passed_over"), [("R17", ""), ("", ""), ("R18", "R18")], ids=["the same", "none", "a person said"]
)
def test_nothing_is_decided_where_there_is_nothing_to_decide(name: str, current: str, passed_over: str) -> None:
    found = judge(POLICIES[name], "R17", current, same=False, compatible=False, passed_over=passed_over)
    assert found == ReleaseFact("R17", current)


@pytest.mark.parametrize("compatible", [True, False])
def test_each_policy_by_declared_compatibility(*, compatible: bool) -> None:
    found = {name: judge(policy, "R17", "R18", same=False, compatible=compatible) for name, policy in POLICIES.items()}
    plain = ReleaseFact("R17", "R18")
    assert found["pinned"] == plain
    assert found["restart"] == replace(plain, pins="R18", restart="plan")
    assert found["cancel"] == replace(plain, cancels=True)
    assert "a person decides (flows releases move)" in found["human"].refusal
    assert (found["human"].pins, found["human"].cancels) == ("", False)
    if compatible:
        assert found["migrate"] == replace(plain, pins="R18")
    else:
        assert "R18 does not declare that runs of R17 may go on" in found["migrate"].refusal


def test_the_same_content_under_another_name_asks_nobody() -> None:
    found = {name: judge(policy, "R17", "R18", same=True, compatible=False) for name, policy in POLICIES.items()}
    assert found.pop("pinned") == ReleaseFact("R17", "R18")
    assert set(found.values()) == {ReleaseFact("R17", "R18", pins="R18")}


def test_only_the_first_policy_keeps_a_worker_without_the_release_away() -> None:
    assert {name for name, policy in POLICIES.items() if not policy.decides} == {"pinned"}


# ------------------------------------------------------------------ deciding


def test_it_goes_on_under_the_current_one() -> None:
    found = told(ReleaseFact("R17", "R18", pins="R18"))
    assert found == Decided(Open("act"), release="R18", wait_result=found.wait_result)


def test_without_anything_to_decide_it_goes_on_as_it_is() -> None:
    assert told(ReleaseFact("R17", "R18")).release == ""
    assert told(None).release == ""


def test_what_is_not_due_yet_rests_under_the_current_one() -> None:
    found = told(ReleaseFact("R17", "R18", pins="R18"), wait=WaitState(1, "nap", "timer", 1))
    assert found == Decided(Rest(), release="R18")


def test_an_open_activity_goes_on_under_the_current_one() -> None:
    activity = ActivityState(1, "act", "", 1, 2, 2)
    found = told(ReleaseFact("R17", "R18", pins="R18"), node="act", wait=None, activity=activity)
    assert found == Decided(Run(), release="R18")


@pytest.mark.parametrize("where", ["nap", "act"])
def test_it_begins_again_at_the_boundary(where: str) -> None:
    activity = {"node": "act", "wait": None, "activity": ActivityState(1, "act", "", 1, 1, 1)} if where == "act" else {}
    found = told(ReleaseFact("R17", "R18", pins="R18", restart="plan"), **activity)
    assert found == Decided(Open("plan"), release="R18")


def test_beginning_again_is_a_visit_and_they_are_limited() -> None:
    found = told(ReleaseFact("R17", "R18", pins="R18", restart="plan"), visits=MappingProxyType({"plan": 2}))
    assert (found.move.node, found.release) == ("over", "R18")  # type: ignore[union-attr]


def test_nothing_begins_again_past_a_doubt() -> None:
    doubtful = ActivityState(1, "act", "", 1, 1, 1, doubt=True)
    found = told(ReleaseFact("R17", "R18", pins="R18", restart="plan"), node="act", wait=None, activity=doubtful)
    assert isinstance(found.move, Suspend)
    assert (found.move.code, found.release) == ("RELEASE_INCOMPATIBLE", "")
    assert "an effect of act is in doubt" in found.move.reason


def test_a_refusal_without_a_route_is_a_person() -> None:
    found = told(ReleaseFact("R17", "R18", "no"))
    assert isinstance(found.move, Suspend)
    assert (found.move.outcome, found.move.code, found.release) == (Outcome.HUMAN_REQUIRED, "RELEASE_INCOMPATIBLE", "")


def test_a_declared_route_is_a_boundary_too() -> None:
    activity = ActivityState(1, "act", "", 1, 1, 1)
    found = told(ReleaseFact("R17", "R18", "no"), node="act", wait=None, activity=activity)
    assert (found.move.node, found.release) == ("over", "R18")  # type: ignore[union-attr]
    assert found.refusal is not None
    assert found.refusal.verdict is Verdict.RELEASE_INCOMPATIBLE


def test_it_is_cancelled() -> None:
    assert told(ReleaseFact("R17", "R18", cancels=True)) == Decided(CancelSelf(pure.RELEASE_CHANGED))


def test_a_superseded_intent_comes_first() -> None:
    definition = declared(on_release=MIGRATE)
    now = State("w", "t-nightly", 1, None, node="nap", input={}, now=NOW)
    facts = Facts(2, "active", definition.fingerprint, release=ReleaseFact("R17", "R18", cancels=True))
    assert decide(definition, now, Woken(), facts).move.outcome is Outcome.SUPERSEDED  # type: ignore[union-attr]


def test_a_step_on_the_way_is_no_wake_up() -> None:
    activity = ActivityState(1, "plan", "", 1, 1, 1)
    found = told(ReleaseFact("R17", "R18", pins="R18"), trigger=Completed(), node="plan", wait=None, activity=activity)
    assert isinstance(found.move, Park)
    assert found.release == ""


# ------------------------------------------------------------------ what is declared


def problems(value: Any) -> list[tuple[str, str]]:
    return [(one.id, one.message) for one in lint.problems(declared(on_release=value))]


def test_policies_are_checked() -> None:
    assert not [one for policy in POLICIES.values() for one in problems(policy)]
    assert problems(CANCEL) == []
    ((code, message),) = problems("migrate")
    assert (code, "Meta.on_release is 'migrate'" in message) == ("outlast_flows.E027", True)
    ((code, message),) = problems(restart_from("plam"))
    assert (code, "Meta.on_release leads to 'plam'" in message) == ("outlast_flows.E006", True)
    with pytest.raises(DefinitionError, match="takes the name of a node"):
        restart_from("")


def test_a_node_that_only_a_restart_leads_to_can_be_reached() -> None:
    made = type(
        "Again",
        (Flow,),
        {
            "Meta": type("Meta", (), {"on_release": restart_from("again")}),
            "one": Wait("t.x", key=lambda state: "k", deadline=Deadline(hours=1, then="done"), then="done"),
            "again": Activity(work, then="done"),
            "done": End(COMPLETE),
        },
    )
    DECLARED.remove(made)
    assert lint.problems(made.definition) == []


def test_a_policy_that_is_written_wrongly_keeps_every_run_with_its_own() -> None:
    assert declared(on_release="migrate").release_policy is RESUME_PINNED


def test_a_policy_is_no_structure() -> None:
    assert declared(on_release=MIGRATE).fingerprint == declared().fingerprint


# ------------------------------------------------------------------ content


def test_content_is_hashed_and_order_does_not_matter() -> None:
    one = content(models={"a": "m-1", "b": {"name": "m-2", "top": 1}}, prompts={"p": "Hello."})
    other = content(prompts={"p": "Hello."}, models={"b": {"top": 1, "name": "m-2"}, "a": "m-1"})
    assert one == other
    assert one.parts["models"]["a"] == digest_of("m-1")
    assert one.digest != content(models={"a": "m-1"}).digest
    assert set(one.parts) == set(pure.PARTS)


def test_a_digest_stands_for_what_it_is_the_digest_of() -> None:
    assert content(models={"a": digest_of("m-1")}) == content(models={"a": "m-1"})
    assert digest_of("sha256:abc") != "sha256:abc"


def test_differences_say_what_is_missing_where() -> None:
    one, other = content(models={"a": 1, "b": 2}, tools={"t": 1}), content(models={"a": 1, "b": 3, "c": 4})
    assert [(part, name, bool(mine), bool(theirs)) for part, name, mine, theirs in differences(one.parts, other.parts)] == [
        ("models", "b", True, True), ("models", "c", False, True), ("tools", "t", True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(("parts", "says"), [
    ({"models": ["m-1"]}, "The models of a release are an object"),
    ({"tools": {1: "x"}}, "The tools of a release have names"),
    ({"prompts": {"": "x"}}, "The prompts of a release have names"),
])  # fmt: skip
def test_what_is_no_content_is_refused(parts: Any, says: str) -> None:
    with pytest.raises(InvalidRelease, match=says):
        content(**parts)
    with pytest.raises(PayloadError, match=r"models\['a'\] of a release"):
        content(models={"a": float("nan")})


@pytest.mark.parametrize("name", ["R17", "2027-01-04.1", "team/planner@3", "a" * 100])
def test_names(name: str) -> None:
    assert pure.check_name(name) == name


@pytest.mark.parametrize("name", ["", "*", "R 17", "R17,R18", "-R", "a" * 101, None, 17, "R\x00", "Ř"])
def test_names_that_none_can_have(name: Any) -> None:
    with pytest.raises(InvalidRelease, match="cannot be the name of a release"):
        pure.check_name(name)
