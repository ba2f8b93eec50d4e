"""Flow and Definition: what a class body becomes, and what its fingerprint is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.core.definition import DECLARED, Definition, Flow, kebab
from flows.core.errors import DefinitionError
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Branch, Decision, End, Pipeline, Sleep, Step, Wait
from flows.core.policies import ESCALATE, FAIL, Checkpoint, Deadline, Retry, Visits
from flows.core.requirements import Gate
from flows.core.spans import hours, minutes
from tests.support.flow_values import declare, work


def other(attempt: Any) -> None:
    """Another function than `work`."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("UpgradeLibrary", "upgrade-library"),
        ("Upgrade", "upgrade"),
        ("HTTPServerCheck", "http-server-check"),
        ("Check2Run", "check2-run"),
        ("ABTest", "ab-test"),
        ("X", "x"),
    ],
)
def test_class_names_become_kebab_case(name: str, expected: str) -> None:
    assert kebab(name) == expected


@given(st.from_regex(r"[A-Z][a-z0-9]{1,8}([A-Z][a-z0-9]{1,8}){0,4}", fullmatch=True))
def test_a_camel_case_name_gives_a_name_that_the_checks_accept(name: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", kebab(name))
    assert kebab(name).replace("-", "") == name.lower()


@pytest.mark.req("G1")
def test_the_attributes_are_the_nodes_in_their_order_and_the_first_is_the_start() -> None:
    flow = declare(b=Activity(work, then="a"), a=Activity(work, then="done"), done=End(COMPLETE))
    assert list(flow.nodes) == ["b", "a", "done"]
    assert flow.start == "b"
    assert [node.name for node in flow.nodes.values()] == ["b", "a", "done"]
    assert flow.node("a") is flow.nodes["a"]


def test_defaults_of_a_class_without_meta() -> None:
    class SmallThing(Flow):
        """Does a small thing."""

        done = End(COMPLETE)

    made = SmallThing.definition
    assert (made.name, made.version, made.deadline, made.checkpoint) == ("small-thing", 1, None, Checkpoint())
    assert made.doc == "Does a small thing."
    assert made.where.endswith("test_defaults_of_a_class_without_meta.<locals>.SmallThing")
    assert made.where.startswith(SmallThing.__module__)


def test_meta_sets_the_options_and_unknown_ones_are_noted() -> None:
    made = declare(
        {"name": "x-y", "version": 3, "deadline": Deadline(days=1, then=FAIL), "verbose_name": "X", "retries": 2, "owner": "me"}
    )
    assert (made.name, made.version, made.verbose_name) == ("x-y", 3, "X")
    assert made.deadline is not None
    assert made.unknown_options == ("owner", "retries")


def test_an_abstract_flow_is_not_declared_and_its_nodes_are_inherited() -> None:
    class Base(Flow):
        class Meta:
            abstract = True

        done = End(COMPLETE)

    before = list(DECLARED)

    class Real(Base):
        first = Activity(work, then="done")

    assert [*before, Real] == DECLARED
    assert not hasattr(Base, "definition")
    assert list(Real.definition.nodes) == ["done", "first"]


def test_meta_may_inherit_options_and_is_not_abstract_because_its_base_was() -> None:
    class Base(Flow):
        class Meta:
            abstract = True
            deadline = Deadline(days=1, then=FAIL)
            version = 2

        done = End(COMPLETE)

    class Real(Base):
        class Meta(Base.Meta):
            version = 3

    assert Real.definition.version == 3
    assert Real.definition.deadline == Base.Meta.deadline
    assert Real.definition.unknown_options == ()


def test_a_subclass_replaces_a_node_in_its_place() -> None:
    class Base(Flow):
        first = Activity(work, then="done")
        done = End(COMPLETE)

    class Variant(Base):
        class Meta:
            version = 2

        first = Activity(other, then="done")

    assert list(Variant.definition.nodes) == ["first", "done"]
    assert Base.definition.nodes["first"] is not Variant.definition.nodes["first"]


def test_it_is_known_which_nodes_lead_to_a_node_and_which_approvals_are_asked_about() -> None:
    made = declare(
        first=Activity(work, then="ask", on={ValueError: "done"}),
        ask=Approval(candidate="first", role="r", approved="act", denied="done", expires=Deadline(hours=1, then="done")),
        act=Activity(work, gate=Gate(approved_by="ask"), then="done"),
        odd=Activity(work, gate=Gate(approved_by="first"), then="done"),
        done=End(COMPLETE),
    )
    assert made.entered_by("done") == ["first", "ask", "act", "odd"]
    assert made.approvals == {"ask"}


# ---------------------------------------------------------------- fingerprint


def sample(**changes: Any) -> Definition:
    nodes: dict[str, Any] = {
        "first": Decision(work, choices={"a": "wait", "b": "pipe"}, timeout=minutes(1), retry=Retry(max_attempts=2)),
        "wait": Wait("e", key="k", choices={"yes": "ask"}, deadline=Deadline(hours=1, then="no")),
        "pipe": Pipeline(Step("x", work), Step("y", work), then="ask"),
        "pick": Branch(bool, choices={"t": "nap"}),  # type: ignore[arg-type]
        "nap": Sleep(hours(1), then="act"),
        "ask": Approval(candidate="first", role="r", approved="pick", denied="no", expires=Deadline(hours=1, then=ESCALATE)),
        "act": Activity(work, gate=Gate(approved_by="ask"), then="done", visits=Visits(3, "no")),
        "done": End(COMPLETE),
        "no": End(FAILED),
    }
    return declare(**{**nodes, **changes})


def with_(name: str, **options: Any) -> Definition:
    node = sample().nodes[name]
    made = replace(node, **options)
    return sample(**{name: made})


@pytest.mark.req("G2")
def test_the_fingerprint_is_sixteen_hex_digits_and_the_same_every_time() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", sample().fingerprint)
    assert sample().fingerprint == sample().fingerprint


def test_the_fingerprint_is_the_same_in_every_release_of_the_package() -> None:
    """Changing it would ask every running workflow of every user for a migration."""
    assert declare().fingerprint == "edd860b5ff82db9d"


CHANGES: list[Callable[[], Definition]] = [
    lambda: with_("first", choices={"a": "wait", "b": "act"}),
    lambda: with_("first", choices={"a": "wait", "c": "pipe"}),
    lambda: with_("first", do=other),
    lambda: with_("first", on={ValueError: "no"}),
    lambda: with_("wait", event="other"),
    lambda: with_("wait", deadline=Deadline(hours=1, then="done")),
    lambda: with_("pick", choose=str),
    lambda: with_("nap", then="done"),
    lambda: with_("ask", role="others"),
    lambda: with_("ask", candidate="pipe"),
    lambda: with_("ask", changes="first"),
    lambda: with_("act", gate=None),
    lambda: with_("act", visits=Visits(3, "done")),
    lambda: sample(pipe=Pipeline(Step("y", work), Step("x", work), then="ask")),
    lambda: sample(pipe=Pipeline(Step("x", work), Step("y", other), then="ask")),
    lambda: sample(done=End(FAILED)),
    lambda: sample(act=Pipeline(Step("x", work), gate=Gate(approved_by="ask"), then="done", visits=Visits(3, "no"))),
    lambda: sample(extra=End(FAILED)),
]


@pytest.mark.req("G2")
@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_the_fingerprint_changes_with_structure(number: int) -> None:
    assert CHANGES[number]().fingerprint != sample().fingerprint


TIMING: list[Callable[[], Definition]] = [
    lambda: with_("first", timeout=minutes(9)),
    lambda: with_("first", retry=Retry(max_attempts=9, initial=timedelta(seconds=3))),
    lambda: with_("first", queue="slow"),
    lambda: with_("first", placement="gpu"),
    lambda: with_("wait", deadline=Deadline(hours=9, then="no")),
    lambda: with_("ask", expires=Deadline(hours=9, then=FAIL)),
    lambda: with_("nap", span=hours(9)),
    lambda: sample(pipe=Pipeline(Step("x", work, timeout=minutes(3)), Step("y", work), then="ask")),
]


@pytest.mark.req("G2")
@pytest.mark.parametrize("number", range(len(TIMING)))
def test_the_fingerprint_does_not_change_with_timing(number: int) -> None:
    assert TIMING[number]().fingerprint == sample().fingerprint


def test_the_fingerprint_changes_with_the_start_and_not_with_the_order_of_the_rest() -> None:
    nodes = dict(sample().nodes)

    def ordered(names: list[str]) -> Definition:
        return declare(**{name: nodes[name] for name in names})

    names = list(nodes)
    assert ordered([names[0], *names[:0:-1]]).fingerprint == sample().fingerprint
    assert ordered([names[1], names[0], *names[2:]]).fingerprint != sample().fingerprint


def test_the_fingerprint_is_not_about_name_version_or_deadline() -> None:
    plain = declare().fingerprint
    assert declare({"version": 7, "deadline": Deadline(days=1, then=FAIL), "name": "other-name"}).fingerprint == plain


def test_a_flow_that_is_written_wrongly_has_no_fingerprint() -> None:
    with pytest.raises(DefinitionError):
        _ = declare(first=Activity(work), done=End(COMPLETE)).fingerprint
