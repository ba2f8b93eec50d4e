"""`manage.py flows supersede` and `preview`: a new goal for an intent, and what that would end."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows.errors import UnknownIntent
from flows.models import Intent, IntentRevision, Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, row, status
from tests.support.commanding import Ran, cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("D1", "D3")


def test_a_new_goal_ends_the_runs_of_the_old_one_and_says_who_and_why(cli: Any) -> None:
    factories.person("ann")
    run = Ask.start({}, key="k", goal="The old goal")
    second = Ask.start({}, intent=run)
    ran = cli("supersede", "t-ask:k", "--goal", "The new goal", "--reason", "Changed my mind", "--by", "ann")
    assert ran == Ran(0, "accepted\n", "the goal has version 2; 2 runs of the old one end\n")
    assert {status(one)[0] for one in (run, second)} == {"superseded"}
    intent, revision = Intent.objects.get(), IntentRevision.objects.get()
    assert (intent.goal, intent.version) == ("The new goal", 2)
    assert (revision.goal, revision.by_label, revision.reason) == ("The old goal", "ann", "Changed my mind")


def test_twice_is_once(cli: Any) -> None:
    run = Ask.start({})
    wanted = ("supersede", run.id, "--goal", "New", "--reason", "r")
    assert (cli(*wanted).out, cli(*wanted)) == (
        "accepted\n",
        Ran(0, "already\n", "the goal has version 2; 0 runs of the old one end\n"),
    )


def test_a_run_for_the_new_goal_is_started_with_it(cli: Any, worker: LocalWorker) -> None:
    run = Ask.start({})
    ran = cli("supersede", run.id, "--goal", "New", "--flow", "t-line", "--input", '{"n": 2}', "--key", "second", "--json")
    made = Workflow.objects.get(flow_name="t-line", key="second")
    assert ran.code == 0
    assert (ran.json["answer"], ran.json["version"], ran.json["ended"]) == ("accepted", 2, [str(run.id)])
    assert ran.json["started"]["id"] == str(made.pk)
    assert ran.err == f"the goal has version 2; 1 run of the old one ends; started {made.pk}\n"
    assert (made.intent_id, made.intent_version) == (run.intent_id, 2)


def test_what_is_wanted_no_more_has_no_new_goal(cli: Any) -> None:
    run = Ask.start({})
    flows.cancel_intent(run)
    ran = cli("supersede", run.id, "--goal", "New", "--reason", "r")
    assert (ran.code, ran.out) == (1, "too_late\n")
    assert "Too late: the goal is cancelled." in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--goal", "New", "--input", "{}"],
        ["--goal", "New", "--key", "k"],
        ["--goal", "New", "--flow", "t-line"],
        ["--goal", "New", "--flow", "t-line", "--input", "[]"],
    ],
)
def test_wrong_usage_is_exit_2_and_changes_nothing(cli: Any, arguments: list[str]) -> None:
    run = Ask.start({})
    assert cli("supersede", run.id, *arguments).code == 2
    assert (status(run)[0], Intent.objects.get().version) == ("runnable", 1)


@pytest.mark.parametrize("arguments", [["--goal", " "], ["--goal", "New", "--by", "nobody"]])
def test_a_refusal_is_one_line_and_exit_1(cli: Any, arguments: list[str]) -> None:
    run = Ask.start({})
    ran = cli("supersede", run.id, *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert row(run).status == "runnable"


def test_a_preview_names_each_run_once(cli: Any, worker: LocalWorker) -> None:
    run = Ask.start({}, key="k")
    worker.run()
    ran = cli("preview", run.id)
    assert ran.out.count(str(run.id)) == 1
    assert ran.out.splitlines()[0].split() == ["ID", "WHAT"]
    assert ran.err == "1 live run would end\n"


def test_the_runs_of_an_intent_are_listed() -> None:
    run, stranger = Line.start({}, key="a"), Line.start({}, key="b")
    second = Line.start({}, intent=run)
    assert [one.pk for one in flows.list(intent=run.intent_id)] == [second.id, run.id]
    assert [one.pk for one in flows.list(intent=stranger)] == [stranger.id]
    with pytest.raises(UnknownIntent):
        flows.list(intent="nothing")
