"""The way from one version of a flow to a later one, and where a run stands after it: pure, and every odd answer is a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core.definition import Definition, Flow
from flows.core.errors import CannotMigrate, DefinitionError, InvalidCandidate
from flows.core.nodes import COMPLETE, Activity, Candidate, Decision, End, Pipeline, Step
from flows.core.state import GIVEN
from flows.core.versions import Migrated, route, walk
from tests.support.flow_values import declare, state, work

pytestmark = pytest.mark.req("G2")


def version(number: int, steps: Any = None, **nodes: Any) -> Definition:
    meta = {"name": "t-versions", "version": number, **({"migrate_from": steps} if steps is not None else {})}
    return declare(meta, name=f"V{number}", **(nodes or {"first": Activity(work, then="done"), "done": End(COMPLETE)}))


def loaded(*definitions: Definition) -> dict[int, Definition]:
    return {one.version: one for one in definitions}


def numbers(found: list[Definition]) -> list[int]:
    return [one.version for one in found]


@pytest.mark.parametrize(
    ("declared", "source", "target", "way"),
    [
        ({2: {1: {}}}, 1, 2, [2]),
        ({2: {1: {}}, 3: {2: {}}}, 1, 3, [2, 3]),
        ({2: {1: {}}, 3: {1: {}, 2: {}}}, 1, 3, [3]),
        ({2: {1: {}}, 3: {2: {}}}, 1, 2, [2]),
        ({2: {}, 3: {2: {}}}, 1, 3, []),
        ({2: {1: {}}}, 2, 1, []),
        ({2: {1: {}}, 3: {2: {}}, 4: {1: {}}, 5: {4: {}, 3: {}}}, 1, 5, [4, 5]),
        ({2: {1: {}}}, 7, 2, []),
    ],
)
def test_the_way_is_the_one_with_the_fewest_steps(declared: dict[int, Any], source: int, target: int, way: list[int]) -> None:
    assert numbers(route(loaded(*(version(number, steps) for number, steps in declared.items())), source, target)) == way


def test_a_declaration_that_is_no_mapping_leads_nowhere() -> None:
    assert route(loaded(version(2, ["wrong"])), 1, 2) == []


def test_a_mapping_renames_and_leaves_alone_what_has_the_same_name() -> None:
    new = version(
        2, {1: {"test": "verify"}}, verify=Activity(work, then="push"), push=Activity(work, then="done"), done=End(COMPLETE)
    )
    assert walk([new], state("test")).node == "verify"
    assert walk([new], state("push")).node == "push"
    with pytest.raises(CannotMigrate, match="version 2 has no node 'gone'"):
        walk([new], state("gone"))


def test_a_function_sees_the_run_and_gives_node_results_and_a_note() -> None:
    seen = []

    def from_first(at: Any) -> Migrated:
        seen.append((at.node, at.version, dict(at.results), dict(at.visits)))
        return Migrated("first", results={"first": {"n": at.results["old"]["n"] + 1}}, note="moved on")

    walked = walk([version(2, {1: from_first})], state("old", results={"old": {"n": 1}}, visits={"old": 2}))
    assert seen == [("old", 1, {"old": {"n": 1}}, {"old": 2})]
    assert (walked.node, dict(walked.results), walked.notes) == ("first", {"first": {"n": 2}}, ("moved on",))


def test_the_second_step_sees_what_the_first_made() -> None:
    def second(at: Any) -> Migrated:
        return Migrated("last", results={"last": [at.version, at.node, at.results["first"]]})

    two = version(2, {1: lambda at: Migrated("first", results={"first": "from two"}, note="one")})
    three = version(3, {2: second}, last=Activity(work, then="done"), done=End(COMPLETE))
    walked = walk([two, three], state("old"))
    assert (walked.node, walked.versions) == ("last", (2, 3))
    assert dict(walked.results) == {"first": "from two", "last": [2, "first", "from two"]}


def test_a_run_is_frozen_for_the_function() -> None:
    def spoil(at: Any) -> Migrated:
        at.results["first"] = 1
        return Migrated("first")

    with pytest.raises(CannotMigrate, match="spoil raised TypeError"):
        walk([version(2, {1: spoil})], state("old"))


def refusing(at: Any) -> Migrated:
    raise CannotMigrate("it has pushed already")


def raising(at: Any) -> Migrated:
    raise RuntimeError("the secret is 123")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (refusing, "it has pushed already"),
        (raising, "raising raised RuntimeError"),
        (lambda at: None, "<lambda> has no place for it"),
        (lambda at: "first", "answered 'first', which is not Migrated"),
        (lambda at: Migrated("nowhere"), "answered node 'nowhere', which version 2 does not have"),
        (lambda at: Migrated(["first"]), "raised DefinitionError"),
        (lambda at: Migrated("first", results="x"), "raised DefinitionError"),
        (lambda at: Migrated("first", results={"old": 1}), "a result for node 'old', which version 2 does not have"),
        (lambda at: Migrated("first", results={"first": {1, 2}}), "the result for node 'first' cannot be kept"),
    ],
)
def test_what_cannot_be_is_a_reason(step: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(CannotMigrate) as caught:
        walk([version(2, {1: step})], state("old"))
    assert reason in str(caught.value)
    assert "123" not in str(caught.value)


def strict(value: Any) -> None:
    if value == "bad":
        raise InvalidCandidate("no")
    if value == "worse":
        raise KeyError("x")


def test_a_candidate_becomes_the_artifact_of_a_decision() -> None:
    def give(value: Any, choice: str = "go") -> Callable[[Any], Migrated]:
        return lambda at: Migrated("choose", results={"choose": Candidate(choice, value)})

    def two(step: Any) -> Definition:
        return version(2, {1: step}, choose=Decision(work, choices={"go": "done"}, schema=strict), done=End(COMPLETE))

    artifact = walk([two(give({"n": 1}))], state("old", visits={"choose": 3})).results["choose"]
    assert (artifact["choice"], artifact["value"], artifact["revision"]) == ("go", {"n": 1}, 3)
    assert artifact["digest"].startswith("sha256:")
    for step in (give(1, "stop"), give("bad"), give("worse")):
        with pytest.raises(CannotMigrate):
            walk([two(step)], state("old"))


def test_the_way_from_an_older_version_is_not_inherited() -> None:
    class Two:
        name = "t-versions"
        version = 2
        migrate_from = {1: {"old": "done"}}

    class Three(Two):
        version = 3

    made = type("Inheriting", (Flow,), {"Meta": Three, "done": End(COMPLETE)})
    assert (made.definition.name, made.definition.version, made.definition.migrate_from) == ("t-versions", 3, {})


def test_a_step_of_a_pipeline_cannot_have_the_name_of_what_migrations_give() -> None:
    with pytest.raises(DefinitionError):
        Pipeline(Step(GIVEN, work), then="done")
