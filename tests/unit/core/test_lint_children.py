"""Mistakes of nodes that start other runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.commitments import Commits
from flows.core.definition import Definition, Flow
from flows.core.errors import DefinitionError
from flows.core.lint import PREFIX
from flows.core.nodes import COMPLETE, FAILED, Activity, Branch, Child, ContinueAsNew, End, Map, Parallel
from flows.core.nodes.fanned import Fanned
from flows.core.policies import ESCALATE, RELEASE, Deadline
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("G4", "G5")

DAY = Deadline(days=1, then=ESCALATE)


def flow(node: Fanned) -> Definition:
    return declare(first=node, done=End(COMPLETE), lost=End(FAILED))


def mapped(**options: Any) -> Definition:
    return flow(Map(lambda state: [], **{"do": work, "deadline": DAY, "then": "done", "failed": "lost", **options}))


def child(**options: Any) -> Definition:
    return flow(Child("some-flow", **{"deadline": DAY, "completed": "done", "failed": "lost", **options}))


WRONG: tuple[tuple[str, Callable[[], Definition]], ...] = (
    ("E093", lambda: mapped(deadline=None)),
    ("E093", lambda: flow(Parallel({"a": Activity(work)}, then="done", failed="lost"))),
    ("E093", lambda: child(deadline=None)),
    ("E094", lambda: child(failed="", cancelled="lost")),
    ("E098", lambda: mapped(concurrency=0)),
    ("E098", lambda: mapped(concurrency=1001)),
    ("E098", lambda: mapped(concurrency=True)),
    ("E052", lambda: mapped(deadline=Deadline(days=1, then=RELEASE, to="done"))),
)
RIGHT: tuple[Callable[[], Definition], ...] = (
    mapped,
    child,
    lambda: mapped(concurrency=1000),
    lambda: flow(Child("some-flow", wait=False, then="done", visits=None)),
)


@pytest.mark.parametrize(("code", "made"), WRONG, ids=[f"{code}-{number}" for number, (code, _) in enumerate(WRONG)])
def test_what_is_wrong_is_found(code: str, made: Callable[[], Definition]) -> None:
    found = [one for one in lint.problems(made()) if one.node == "first"]
    assert [one.id for one in found] == [PREFIX + code]
    assert found[0].hint


@pytest.mark.parametrize("made", RIGHT)
def test_what_is_right_is_not(made: Callable[[], Definition]) -> None:
    assert [one for one in lint.problems(made()) if one.node == "first"] == []


def test_a_flow_that_is_named_has_to_be_there() -> None:
    class Runs(Flow):
        first = Child("nowhere", completed="done", failed="done", deadline=DAY)
        second = Child("there", completed="done", failed="done", deadline=DAY)
        done = End(COMPLETE)

    class There(Flow):
        done = End(COMPLETE)

    found = [one for one in lint.problems_of_all([Runs, There]) if one.id == PREFIX + "E091"]
    assert [(one.node, "nowhere" in one.message) for one in found] == [("first", True)]


def going_on(**nodes: Any) -> Definition:
    """Holds something, and goes on as a new run over these nodes."""
    return declare(
        first=Activity(work, commits=Commits("window"), then=next(iter(nodes))),
        **nodes,
        further=ContinueAsNew(input=lambda state: {}),
    )


def test_who_may_hold_something_does_not_continue() -> None:
    found = lint.problems(going_on(other=Activity(work, then="further")))
    assert [(one.id, one.node, "'window' of 'first'" in one.message) for one in found] == [(PREFIX + "E097", "further", True)]
    assert lint.problems(going_on(other=Activity(work, fulfils="window", then="further"))) == []


def test_one_way_on_which_it_is_not_fulfilled_is_enough() -> None:
    found = lint.problems(
        going_on(other=Activity(work, fulfils="window", on={ValueError: "further"}, then="done"), done=End(COMPLETE))
    )
    assert [one.id for one in found] == [PREFIX + "E097"]


def test_a_flow_that_always_goes_on_needs_no_other_end() -> None:
    assert lint.problems(declare(first=Activity(work, then="on"), on=ContinueAsNew(input=lambda state: {}))) == []


def kid(flow: str, **options: Any) -> Child:
    return Child(flow, **{"completed": "done", "failed": "done", "deadline": DAY, **options})


def found_circles(*flows: type[Flow]) -> list[tuple[str, str]]:
    return [(one.where.rpartition(".")[2], one.node) for one in lint.problems_of_all(flows) if one.id == PREFIX + "E096"]


def there() -> tuple[type[Flow], type[Flow]]:
    """One that starts `back`, and one that waits for that one and is no circle."""

    class There(Flow):
        class Meta:
            name = "there"

        other = kid("back")
        done = End(COMPLETE)

    class Outside(Flow):
        other = kid("there")
        done = End(COMPLETE)

    return There, Outside


def test_flows_that_start_one_another_cannot_end() -> None:
    class Back(Flow):
        class Meta:
            name = "back"

        both = Parallel({"a": "there", "b": Activity(work)}, then="done", failed="done", deadline=DAY)
        done = End(COMPLETE)

    class Itself(Flow):
        again = Child("itself", wait=False, then="done")
        done = End(COMPLETE)

    assert found_circles(*there(), Back, Itself) == [("There", "other"), ("Back", "both"), ("Itself", "again")]


def test_one_that_may_go_past_ends_all_of_them() -> None:
    class Back(Flow):
        class Meta:
            name = "back"

        more = Branch(lambda state: "no", choices={"yes": "other", "no": "done"})
        other = kid("there")
        done = End(COMPLETE)

    assert found_circles(*there(), Back) == []


def test_a_map_may_have_nothing_to_start() -> None:
    class Back(Flow):
        class Meta:
            name = "back"

        each = Map(lambda state: [], child="there", then="done", failed="done", deadline=DAY)
        done = End(COMPLETE)

    assert found_circles(*there(), Back) == []


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Map(list, then="x"), "either do="),
        (lambda: Map(list, do=work, child="a", then="x"), "either do="),
        (lambda: Map(list, child="a", queue="x", then="x"), "takes no queue"),
        (lambda: Map(list, do=work, tolerate="five", then="x"), "tolerate="),
        (lambda: Map(list, child=7, then="x"), "child="),
        (lambda: Parallel({}, then="x"), "1 to 100 branches"),
        (lambda: Parallel({"a": Activity(work)}, join=2, then="x"), "from 1 to 1"),
        (lambda: Parallel({"a": Activity(work)}, losers=RELEASE, then="x"), "losers="),
        (lambda: Parallel({"a": Activity(work, on={ValueError: "x"})}, then="x"), "a plain one"),
        (lambda: Child("a", then="x", completed="y"), "completed="),
        (lambda: Child("a", wait=False, failed="y"), "goes on at once"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(made: Callable[[], Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        made()
