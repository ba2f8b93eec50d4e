"""The examples of the documentation are code: each compiles, those of the tutorial run, and the tables name all that there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import flows
from approvals.core.sentences import SENTENCES
from approvals.core.status import RequestStatus
from flows import checks, errors, registry
from flows.core import declared as things
from flows.core import definition as declared
from flows.core import fields, lint
from flows.core.inbox import Place
from flows.core.nodes.base import Node
from flows.models import EventStatus
from flows.services.attempt import Attempt
from flows.services.events import Reception

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-flow.md"
APPROVALS = ROOT / "docs" / "how-to" / "approvals.md"
EVENTS = ROOT / "docs" / "how-to" / "events.md"
FORMS = ROOT / "docs" / "how-to" / "forms.md"
GATES = ROOT / "docs" / "how-to" / "gates.md"
RELEASES = ROOT / "docs" / "how-to" / "releases.md"
JOBS = ROOT / "docs" / "how-to" / "jobs.md"
COMPOSITION = ROOT / "docs" / "how-to" / "composition.md"
VERSIONS = ROOT / "docs" / "how-to" / "versions.md"
TESTING = ROOT / "docs" / "how-to" / "testing.md"
OPERATE = ROOT / "docs" / "how-to" / "operate.md"
NODES = ROOT / "docs" / "reference" / "nodes.md"
PAGES = [ROOT / "README.md", NODES, *sorted(ROOT.glob("docs/tutorial/*.md")), *sorted(ROOT.glob("docs/how-to/*.md"))]

ACTS = re.compile(r"^(schedules\.create|calendars\.publish)\(", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KINDS = (
    flows.Activity,
    flows.Decision,
    flows.AgentTurn,
    flows.Branch,
    flows.Wait,
    flows.Sleep,
    flows.Approval,
    flows.Ask,
    flows.Pipeline,
    flows.Job,
    flows.Parallel,
    flows.Child,
    flows.ContinueAsNew,
    flows.End,
)
POLICIES = (
    flows.Retry,
    flows.Deadline,
    flows.Visits,
    flows.Stop,
    flows.Keep,
    flows.Tool,
    flows.PipelineTool,
    flows.ToolStep,
    flows.Loop,
    flows.Gate,
    flows.Fresh,
    flows.Competence,
    flows.Checkpoint,
    flows.Effect,
    flows.Servicing,
    flows.Commits,
)


def blocks(page: Path) -> list[str]:
    """The python blocks of a page, in order."""
    return BLOCK.findall(page.read_text())


@contextmanager
def written_in(page: Path) -> Iterator[dict[str, Any]]:
    """The names of a page, as if its blocks were the module `yourapp.flows`. What it declares is gone afterwards.

    Blocks of the project (`# yourproject/…`) are no part of that: `make adopt` runs those, in a project of their own.
    """
    before, beside = list(declared.DECLARED), list(things.DECLARED)
    app, module = ModuleType("yourapp"), ModuleType("yourapp.flows")
    declared.DECLARED.clear()
    sys.modules |= {"yourapp": app, "yourapp.flows": module}
    try:
        for number, block in enumerate(blocks(page), 1):
            if block.startswith("# yourproject/") or ACTS.search(block):  # of another file, or it writes into the record
                continue
            exec(compile(block, f"{page.name}, block {number}", "exec"), vars(module))  # our own documentation
        registry._lookup.cache_clear()
        yield vars(module)
    finally:
        del sys.modules["yourapp.flows"], sys.modules["yourapp"]
        declared.DECLARED[:], things.DECLARED[:] = before, beside
        registry._lookup.cache_clear()


def tutorial() -> AbstractContextManager[dict[str, Any]]:
    """The tutorial's names."""
    return written_in(TUTORIAL)


def section(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of its rank or a higher one."""
    rank = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,{len(rank)}}} |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no heading {heading!r}"
    return found[1]


def first_column(text: str) -> list[str]:
    """The names in the first column of the tables."""
    return re.findall(r"^\| `([\w.]+)(?:\([^`]*\))?` \|", text, re.MULTILINE)


# ---------------------------------------------------------------- examples


def test_the_versions_of_the_page_about_them_are_sound() -> None:
    before = list(declared.DECLARED)
    names: dict[str, Any] = {"__name__": "yourapp.flows"}
    try:
        exec(compile(blocks(VERSIONS)[0], VERSIONS.name, "exec"), names)  # our own documentation
        registry._lookup.cache_clear()
        one, two = names["ShipV1"], names["ShipV2"]
        assert lint.problems_of_all([one, two]) == []
        assert [step.version for step in registry.steps("ship", 1)] == [2]
    finally:
        declared.DECLARED[:] = before
        registry._lookup.cache_clear()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_compiles(page: Path) -> None:
    for number, block in enumerate(blocks(page), 1):
        compile(block, f"{page.name}, block {number}", "exec")


def test_no_two_pages_declare_flows_of_one_name() -> None:
    """Whoever takes both over would have E026. (The readme shows the tutorial's.)"""
    found = [name for page in PAGES[1:] for name in re.findall(r"^class (\w+)\(Flow\):", page.read_text(), re.MULTILINE)]
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_heading_stands_twice(page: Path) -> None:
    """The second would be found by nobody, and by no test of this file."""
    found = re.findall(r"^(#+ .+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_page(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_tutorial_runs_and_its_flows_pass_the_checks() -> None:
    with tutorial() as names:
        assert {flow.__name__ for flow in declared.DECLARED} == {"Shipping", "Refund"}
        assert checks.check_flows(None) == []
        assert callable(names["place_order"])


def test_the_flow_in_the_readme_is_the_tutorials() -> None:
    def refund(page: Path) -> str:
        (found,) = (block for block in blocks(page) if "class Refund(Flow)" in block)
        return re.split(r"\n{2,}(?=\S)", found[found.index("class Refund") :])[0].strip()

    assert refund(ROOT / "README.md") == refund(TUTORIAL)


def test_the_flow_of_the_page_about_forms_passes_the_checks() -> None:
    with written_in(FORMS):
        assert [flow.__name__ for flow in declared.DECLARED] == ["BuyTools"]
        assert checks.check_flows(None) == []


def test_the_flows_of_the_page_about_composition_pass_the_checks() -> None:
    with written_in(COMPOSITION):
        own = [flow.__name__ for flow in declared.DECLARED if not flow.made_for]
        assert own == ["ConvertAll", "AskBoth", "Audit", "Release", "Account"]


def test_the_flows_of_the_page_about_events_pass_the_checks() -> None:
    with written_in(EVENTS):
        assert [flow.__name__ for flow in declared.DECLARED] == ["Assess", "Reconcile"]
        assert checks.check_flows(None) == []


def test_what_a_payment_brought_is_what_the_page_about_composition_books() -> None:
    run = {"paid": {"event": "e", "value": {"amount": 5}, "payload": {"amount": 5}}}
    with written_in(COMPOSITION) as names:
        assert names["book"](SimpleNamespace(input={"balance": 2}, results=run)) == {"balance": 7}


@pytest.mark.parametrize("page", ["webhooks", "schedules", "calendars", "capacity"])
def test_the_flows_of_the_other_pages_about_the_outside_pass_the_checks(page: str) -> None:
    with written_in(ROOT / "docs" / "how-to" / f"{page}.md"):
        assert declared.DECLARED
        assert checks.check_flows(None) == []


def test_the_mapping_function_of_the_page_about_webhooks_maps() -> None:
    page = ROOT / "docs" / "how-to" / "webhooks.md"
    body = {"issues": [{"number": 7, "revision": 3, "state": "closed"}, {"number": 8, "revision": 1, "state": "open"}]}
    with written_in(page) as names:
        source = next(one for one in re.findall(r'"HEADERS": \["([\w-]+)"\]', page.read_text()))
        (found,) = names["from_tracker"](flows.Delivery("tracker", "d", {source: "issues"}, body, None))
        assert (found.type, found.key, found.position) == ("issue.closed", "7", 3)


def test_the_flow_of_the_page_about_jobs_is_sound() -> None:
    with written_in(JOBS):
        assert checks.check_flows(None) == []


# ---------------------------------------------------------------- completeness


def test_each_place_of_an_event_has_its_line_and_each_answer() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section(EVENTS, "## Where an event stands"), re.MULTILINE)
    assert sorted(place for _, place in rows) == sorted(Place)
    assert {status for status, _ in rows} == set(EventStatus)
    assert set(first_column(EVENTS.read_text().split("## ")[0])) == set(Reception)
    assert re.findall(r"^\| `Order\.(\w+)` \|", EVENTS.read_text(), re.MULTILINE) == [one.name for one in flows.Order]


def test_each_refusal_of_an_answer_has_its_line() -> None:
    text = section(APPROVALS, "## When an answer changes nothing")
    assert sorted(first_column(text)) == sorted(code.value for code in SENTENCES)


def test_each_status_of_a_request_has_its_line() -> None:
    assert sorted(first_column(section(APPROVALS, "## The status of a request"))) == sorted(RequestStatus)


def test_each_kind_of_field_has_its_line() -> None:
    assert tuple(name for name in first_column(FORMS.read_text())) == fields.KINDS
    assert {field.name for field in dataclasses.fields(flows.Field)} == set(
        re.findall(r"[a-z]+(?==…)|(?<=Field\()name", section(NODES, "### Ask"))
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_option_of_a_node_has_its_line(kind: type[Node]) -> None:
    own = {field.name for field in dataclasses.fields(kind) if field.init} & set(inspect.get_annotations(kind))
    assert {name for name in first_column(section(NODES, f"### {kind.__name__}")) if "." not in name} == own


@pytest.mark.parametrize(("part", "kind"), [(flows.Candidate, "Decision"), (flows.Step, "Pipeline")])
def test_each_part_of_a_nodes_values_has_its_line(part: Any, kind: str) -> None:
    named = {f"{part.__name__}.{field.name}" for field in dataclasses.fields(part)}
    assert {name for name in first_column(section(NODES, f"### {kind}")) if "." in name} == named


def test_the_options_of_every_node_have_their_line() -> None:
    options = {field.name for field in dataclasses.fields(Node) if field.init}
    assert set(first_column(section(NODES, "### Every node"))) == options


def test_the_options_of_a_flow_have_their_line() -> None:
    assert set(first_column(section(NODES, "## class Meta"))) == declared.META_OPTIONS


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_each_argument_of_a_policy_has_its_line(policy: type) -> None:
    arguments = {name for name in inspect.signature(policy).parameters if name != "self"}
    assert set(first_column(section(NODES, f"### {policy.__name__}"))) == arguments


def test_the_words_for_spans_are_named() -> None:
    text = section(NODES, "## Policies")
    for function in (flows.seconds, flows.minutes, flows.hours, flows.days):
        assert f"`{function.__name__}(" in text


def test_all_that_an_attempt_has_is_named() -> None:
    attributes = set(re.findall(r"self\.([a-z]\w*)", inspect.getsource(Attempt.__init__)))
    own = {name: value for name, value in vars(Attempt).items() if not name.startswith("_")}
    methods = {name for name, value in own.items() if inspect.isfunction(value) or isinstance(value, property)}
    assert set(first_column(section(NODES, "### The attempt"))) == attributes | methods


def test_all_that_a_state_has_is_named() -> None:
    text = section(NODES, "### The state")
    inner = {"activity", "wait", "passed", "words", "calendars", "dice"}
    assert set(first_column(text)) == {field.name for field in dataclasses.fields(flows.State)} - inner
    assert all(f"`{name}`" in text for name in inner)


def test_each_error_that_an_activity_may_raise_has_its_line() -> None:
    found = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    raised = {name for name, value in found.items() if issubclass(value, errors.ActivityError)} | {"PayloadError"}
    assert raised <= set(first_column(section(NODES, "## Errors")))
