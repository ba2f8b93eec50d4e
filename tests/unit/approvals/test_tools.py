"""What may be declared of a guarded tool, and what exactly a call of it is."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from approvals.core.tools import ANSWERS, Rule, Tool, tool_of
from approvals.tools import agather, gather, requires_approval
from flows import Escalation, Reviewers, State, hours
from flows.core import canonical
from flows.core.effects import TOOLS, Effect, tool_effect
from flows.core.errors import ApprovalPending, DefinitionError, PayloadError
from flows.core.moves import Park, Rest, Run
from flows.core.nodes.activity import Activity
from flows.core.state import Pending, WaitState, Woken
from tests.docs.test_exports import FRAMEWORKS, loaded_by
from tests.support.flow_values import activity
from tests.support.flow_values import state as make_state

pytestmark = pytest.mark.req("F6")


def tool(function: Callable[..., Any], **options: Any) -> Tool:
    options.setdefault("role", "finance")
    return tool_of(Rule(name=options.pop("name", function.__name__), **options), function)


def take(order: int, amount: str = "1.00", *more: int, note: Any = None, **rest: Any) -> Any:
    return (order, amount, more, note, rest)


# ---------------------------------------------------------------- declared


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"role": ""}, "names nobody whom to ask"),
        ({"role": 5}, "role=…"),
        ({"steps": [Reviewers("a")]}, "either by steps= or by role="),
        ({"role": "", "need": 2, "steps": [Reviewers("a")]}, "either by steps= or by role="),
        ({"role": "", "steps": [Reviewers()]}, "names nobody whom to ask"),
        ({"role": "", "steps": ["finance"]}, "takes several Reviewers"),
        ({"role": "", "steps": Reviewers("a")}, "takes several Reviewers"),
        ({"need": 0}, "from 1 to 50"),
        ({"expires": 24}, r"Write expires=hours\(24\)"),
        ({"expires": timedelta(0)}, "must be a span of time"),
        ({"expires": timedelta(days=40_000)}, "a hundred years"),
        ({"reminders": [4]}, r"Write reminders=\[hours\(4\)\]"),
        ({"reminders": [hours(24)]}, "before it expires"),
        ({"escalation": [Escalation("b", hours=25)]}, "before it expires"),
        ({"escalation": ["b"]}, "escalation="),
        ({"name": "no spaces here"}, "Pass name="),
        ({"name": ""}, "Pass name="),
        ({"version": 2}, 'version="2"'),
        ({"self_approval": "yes"}, "self_approval=True"),
        ({"target": "order"}, "a function of the tool's own arguments"),
        ({"permission": "odd"}, "app_label.codename"),
        ({"effect": "reconcile"}, "Effect"),
        ({"effect": Effect(compensate="somewhere.undo")}, "a tool of its own"),
        ({"effect": Effect(request=lambda state: 1)}, "a tool of its own"),
    ],
)
def test_what_could_not_work_is_said_when_it_is_declared(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        requires_approval(**{"role": "finance", **options})(take)


def test_what_it_guards_is_a_function() -> None:
    def yields() -> Any:
        yield 1

    async def yields_too() -> Any:
        yield 1

    for odd, says in ((yields, "returns one JSON value"), (yields_too, "returns one JSON value"), (dict, "guards functions")):
        with pytest.raises(DefinitionError, match=says):
            requires_approval(role="finance", name="odd")(odd)
    for kind in (staticmethod, classmethod):
        with pytest.raises(DefinitionError, match=f"under @{kind.__name__}"):
            requires_approval(role="finance", name="odd")(kind(take))


def test_of_two_tools_of_one_name_the_second_is_refused() -> None:
    def other() -> None: ...

    requires_approval(role="finance", name="twice")(take)
    requires_approval(role="finance", name="twice")(take)
    with pytest.raises(DefinitionError, match="Two tools are called twice"):
        requires_approval(role="finance", name="twice")(other)


def test_what_can_be_asked_about_a_call_is_known_wherever_it_is_looked_for() -> None:
    effect = Effect(reconcile="somewhere.ask")
    tool(take, name="asked-about", effect=effect)
    assert TOOLS["asked-about"] is effect
    assert tool_effect("tool:asked-about:1:abc:1") is effect
    assert tool_effect("tool:unheard-of:1:abc:1") is None
    assert tool_effect("asked-about") is None
    node = Activity("f", effects={"own": Effect()}, then="done")
    assert node.effect_named("tool:asked-about:1:abc:1") is effect
    assert node.effect_named("unknown") is None


def test_a_guarded_function_is_still_itself() -> None:
    guarded = requires_approval(role="finance", name="itself")(take)
    assert (guarded.__name__, guarded.__wrapped__) == ("take", take)  # type: ignore[attr-defined]


def test_what_is_asked_of_whom() -> None:
    rule = Rule(
        name="t",
        steps=[Reviewers("a", need=2), Reviewers("b", when=lambda state: False)],
        escalation=[Escalation("c", hours=2)],
        reminders=[hours(1)],
        expires=hours(3),
        self_approval=True,
    )
    asks = rule.asks(make_state())
    assert [step["audience"] for step in asks["steps"]] == [{"role": "a"}]
    assert asks["escalation"] == [{"after": 7200.0, "audience": {"role": "c"}}]
    assert (asks["reminders"], asks["expires"], asks["self_approval"], asks["answers"]) == (
        [3600.0],
        10800.0,
        True,
        list(ANSWERS),
    )
    nobody = Rule(name="t", steps=[Reviewers("b", when=lambda state: False)])
    with pytest.raises(DefinitionError, match="No step of t applies"):
        nobody.asks(make_state())


def test_guarding_a_tool_loads_no_framework() -> None:
    program = "from approvals.tools import requires_approval; requires_approval(role='finance', name='t')(print)"
    assert not loaded_by(program) & set(FRAMEWORKS)


# ---------------------------------------------------------------- called


def test_a_call_is_its_arguments_with_their_defaults() -> None:
    made = tool(take, target=lambda order, *args, **kwargs: {"order": order})
    calls = [((7,), {}), ((7, "1.00"), {}), ((), {"order": 7}), ((7,), {"amount": "1.00", "note": None})]
    digests = {made.candidate(args, kwargs)["digest"] for args, kwargs in calls}
    assert len(digests) == 1, "however it is written"
    candidate = made.candidate((7, "2.00", 3, 4), {"note": {"b": [1, 2.0]}, "why": "x"})
    assert candidate["choice"] == "take"
    assert candidate["value"] == {
        "arguments": {"order": 7, "amount": "2.00", "more": [3, 4], "note": {"b": [1, 2.0]}, "rest": {"why": "x"}},
        "target": {"order": 7},
        "tool_version": "1",
    }
    assert candidate["digest"] == canonical.digest({"choice": "take", "value": candidate["value"]})
    args, kwargs = made.arguments(candidate)
    assert take(*args, **kwargs) == (7, "2.00", (3, 4), {"b": [1, 2.0]}, {"why": "x"})


@pytest.mark.parametrize("other", [{"amount": "2.00"}, {"note": 0}, {"note": False}, {"note": ""}, {"extra": None}])
def test_another_argument_is_another_call(other: dict[str, Any]) -> None:
    made = tool(take)
    assert made.candidate((7,), other)["digest"] != made.candidate((7,), {})["digest"]


def test_another_tool_version_or_target_is_another_call() -> None:
    one = tool(take).candidate((7,), {})["digest"]
    assert tool(take, version="2").candidate((7,), {})["digest"] != one
    assert tool(take, target=lambda *args, **kwargs: "x").candidate((7,), {})["digest"] != one
    assert tool(take, name="take2").candidate((7,), {})["digest"] != one


class Colour(enum.IntEnum):
    RED = 3


class Sly(dict):  # type: ignore[type-arg]
    """Says one thing to who reads it member by member, and another to who prints it."""

    def __getitem__(self, key: str) -> Any:
        return "999.00"


def test_what_is_hashed_is_what_is_recorded() -> None:
    made = tool(take)
    assert made.candidate((Colour.RED,), {})["value"]["arguments"]["order"] == 3
    assert made.candidate((7,), {"note": (1, 2)})["digest"] == made.candidate((7,), {"note": [1, 2]})["digest"]
    sly = made.candidate((7,), {"note": Sly(a="1.00")})
    assert sly["digest"] == canonical.digest({"choice": "take", "value": sly["value"]})
    assert sly["digest"] == made.candidate((7,), {"note": {"a": "1.00"}})["digest"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Decimal("1.00"), "take, argument note: holds a Decimal"),
        (object(), "take, argument note: holds a object"),
        ({1, 2}, "take, argument note: holds a set"),
        (2**60, "take, argument note: the integer .* send it as a string"),
        (float("nan"), "take, argument note"),
        ("\x00", "take, argument note: holds a NUL"),
        ("\ud800", "take, argument note: holds a lone surrogate"),
        ({"a": {"b": b"x"}}, r"take, argument note: holds a bytes \(at a.b\)"),
    ],
)
def test_an_argument_that_cannot_be_recorded_is_named(value: Any, says: str) -> None:
    with pytest.raises(PayloadError, match=says):
        tool(take).candidate((7,), {"note": value})


def test_a_target_that_cannot_be_recorded_is_named() -> None:
    with pytest.raises(PayloadError, match="take, its target"):
        tool(take, target=lambda *args, **kwargs: object()).candidate((7,), {})


def test_arguments_that_do_not_fit_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing a required argument"):
        tool(take).candidate((), {})


def test_the_object_of_a_method_is_no_argument() -> None:
    def method(self: Any, a: int) -> None: ...

    made = tool(method)
    own, given = made.split(("the object", 1))
    assert (own, given) == (("the object",), (1,))
    assert made.candidate(given, {})["value"]["arguments"] == {"a": 1}
    assert tool(take).split((1, 2)) == ((), (1, 2))


# ---------------------------------------------------------------- several


def pends() -> None:
    raise ApprovalPending("waits")


def fails() -> None:
    raise ValueError("no")


def test_gather_makes_all_and_raises_the_pending_one() -> None:
    done: list[int] = []
    assert gather(lambda: 1, lambda: 2) == [1, 2]
    assert gather() == []
    with pytest.raises(ApprovalPending):
        gather(fails, pends, lambda: done.append(1))
    with pytest.raises(ValueError, match="no"):
        gather(fails, lambda: done.append(2))
    assert done == [1, 2]


def test_agather_too() -> None:
    async def call(body: Callable[[], Any]) -> Any:
        return body()

    async def all_of(*bodies: Callable[[], Any]) -> Any:
        return await agather(*map(call, bodies))

    assert asyncio.run(all_of(lambda: 1, lambda: 2)) == [1, 2]
    with pytest.raises(ApprovalPending):
        asyncio.run(all_of(fails, pends))
    with pytest.raises(ValueError, match="no"):
        asyncio.run(all_of(fails, lambda: 1))


# ---------------------------------------------------------------- the engine


def at(wait: WaitState | None = None) -> State:
    return make_state("act", activity=activity("act"), wait=wait)


def test_an_activity_that_asked_parks_beside_itself_and_is_run_again() -> None:
    node = Activity("f", then="done")
    node.__set_name__(object, "act")
    calls = ({"tool": "b"}, {"tool": "a"}, {"tool": "b"})
    assert node.resume(at(), Pending(calls)) == Park(
        "act", "tool_approval", "waiting for people to answer about a, b", detail={"calls": calls}, beside=True
    )
    assert node.resume(at(WaitState(1, "act", "tool_approval", 0)), Woken()) == Rest()
    assert node.resume(at(), Woken()) == Run()
