"""manage.py flows: what an operator sees and does, with data on stdout, words on stderr and an exit code that means something."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError

import flows
from flows import COMPLETE, ESCALATE, Activity, Approval, Deadline, Decision, End, Flow, Retry
from flows.errors import PolicyDenied, VerificationFailed
from flows.models import Event, Intent, Workflow
from flows.services import describe
from flows.testing import LocalWorker
from tests.factories import Ask, Line, Nap, does, failing, row, status, work
from tests.support.commanding import Ran, cli

__all__ = ["cli"]

EVIL = "a\x1b[31mred\u202egninrut\x9b2J"


def answers(text: str) -> dict[str, str]:
    """The lines `Label  value` of `show`."""
    head = text.split("\n\n", maxsplit=1)[0]
    return {line.split("  ")[0].strip(): line.split("  ", 1)[1].strip() for line in head.splitlines()}


# ---------------------------------------------------------------- list


def test_list_shows_the_newest_first_one_line_a_run(cli: Any) -> None:
    first, second = Line.start({}, key="first"), Ask.start({"key": "k"}, key="second")
    ran = cli("list")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0].split() == ["ID", "FLOW", "KEY", "STATUS", "OUTCOME", "NODE", "CODE", "UPDATED"]
    assert [line.split()[0] for line in lines[1:]] == [str(second.id), str(first.id)]
    assert lines[1].split()[1:4] == ["t-ask@1", "second", "runnable"]
    assert ran.err == "2 shown\n"


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["--flow", "t-ask"], ["c", "b"]),
        (["--status", "cancelled"], ["b"]),
        (["--key", "a"], ["a"]),
        (["--flow", "t-ask", "--status", "runnable"], ["c"]),
        (["--limit", "2"], ["c", "b"]),
        (["--flow", "nothing"], []),
    ],
)
def test_list_can_be_narrowed(cli: Any, arguments: list[str], keys: list[str]) -> None:
    Line.start({}, key="a")
    flows.cancel(Ask.start({}, key="b"))
    Ask.start({}, key="c")
    assert [found["key"] for found in cli("list", "--json", *arguments).json] == keys


def test_list_says_when_there_may_be_more(cli: Any) -> None:
    Line.start_many([(None, {}) for _ in range(3)])
    assert cli("list", "--limit", "3").err == "3 shown; there may be more (--limit)\n"
    assert cli("list", "--limit", "4").err == "3 shown\n"


def test_an_empty_list_is_empty_on_stdout(cli: Any) -> None:
    assert cli("list") == Ran(0, "", "0 shown\n")
    assert cli("list", "--json").json == []


# ---------------------------------------------------------------- show


@pytest.mark.req("Q3")
def test_show_answers_which_event_is_awaited_and_who_can_give_it(cli: Any, worker: LocalWorker) -> None:
    run = Ask.start({"key": "order-7"}, key="k")
    worker.run()
    found = answers(cli("show", run.id).out)
    assert found["State"].startswith("waiting at ask, WAITING, since ")
    assert found["Waiting for"].startswith("event t.asked with key order-7, at ask; from the event's sender; since ")
    assert re.search(r", until \d{4}-\d\d-\d\d .*, then escalate$", found["Waiting for"])
    assert found["Commitments"] == "none"
    assert found["May become"] == "cancelling, paused, runnable, superseded"
    assert found["Next nodes"] == "after"
    assert found["Decision"] == "none: it goes on by itself"


@pytest.mark.req("Q3")
def test_show_answers_which_decision_is_needed(cli: Any, declare: Callable[..., type[Flow]], worker: LocalWorker) -> None:
    due = Deadline(hours=1, then=ESCALATE)
    flow = declare(
        "t-approve",
        make=Activity(work, then="ask"),
        ask=Approval(candidate="make", role="managers", approved="done", denied="done", expires=due),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    found = answers(cli("show", run.id).out)
    assert found["Decision"] == "an answer to the approval request at ask"
    assert found["Waiting for"].startswith(
        "waiting for an answer of managers, at ask; from an eligible reviewer (right outlast_approvals.answer_request); since "
    )
    assert found["Next nodes"] == "done (approved), done (denied)"


@pytest.mark.req("Q3")
def test_show_says_why_a_person_must_look(cli: Any, declare: Callable[..., type[Flow]], worker: LocalWorker) -> None:
    flow = declare("t-refused", one=Activity(work, retry=Retry(max_attempts=1), then="done"), done=End(COMPLETE))
    does["one"] = failing(9, PolicyDenied)
    run = flow.start({})
    worker.run()
    shown = cli("show", run.id)
    found = answers(shown.out)
    assert found["State"].startswith("waiting at one, POLICY_BLOCKED because of POLICY_DENIED, since ")
    assert found["Decision"] == "a person looks at POLICY_DENIED, then resumes or cancels"
    assert "ACTIVITY  ATTEMPT  NODE" in shown.out
    assert re.search(r"^1 +1 +one .* failed +POLICY_DENIED +PolicyDenied$", shown.out, re.MULTILINE)


@pytest.mark.req("Q3")
def test_show_of_an_ended_run_has_its_result_and_its_whole_timeline(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({}, key="k", goal="Do three things")
    worker.run()
    shown = cli("show", run.id)
    found = answers(shown.out)
    assert found["Workflow"] == f"{run.id} (t-line, version 1, key k)"
    assert found["Wanted"] == "Do three things (intent version 1, active)"
    assert found["Accountable"] == "nobody is named"
    assert found["May become"] == "nothing else: this is the end"
    assert found["Decision"] == "none: the workflow has ended"
    assert json.loads(found["Result"]).keys() == {"one", "two", "three"}
    timeline = shown.out.split("\n\n")[1].splitlines()
    assert timeline[0].split() == ["#", "WHEN", "FROM", "TO", "NODE", "OUTCOME", "BECAUSE", "CODE", "NOTE"]
    assert len(timeline) - 1 == row(run).version
    assert timeline[1].split()[0] == "1"
    assert "complete" in timeline[-1]


def test_show_as_json_is_the_whole_description(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    worker.run()
    found = cli("show", run.id, "--json").json
    assert found["id"] == str(run.id)
    assert (found["flow"], found["status"], found["outcome"], found["key"]) == ("t-line", "complete", "COMPLETE", "k")
    assert [one["seq"] for one in found["timeline"]] == list(range(1, row(run).version + 1))
    assert [one["node"] for one in found["attempts"]] == ["one", "two", "three"]


# ---------------------------------------------------------------- which run is meant


def test_a_run_may_be_named_by_id_by_its_beginning_and_by_flow_and_key(cli: Any) -> None:
    run = Line.start({}, key="with:colon")
    text = str(run.id)
    for name in (text, text.upper(), text.replace("-", ""), text[:13], "t-line:with:colon"):
        assert cli("show", name, "--json").json["id"] == text, name


def test_a_beginning_that_several_ids_share_is_refused_and_names_them(cli: Any) -> None:
    one, two = Line.start({}, key="a"), Line.start({}, key="b")
    shared = next(str(one.id)[:n] for n in range(36, 3, -1) if str(one.id)[:n] == str(two.id)[:n])
    ran = cli("cancel", shared)
    assert ran.code == 1
    assert ran.out == ""
    assert "is the beginning of several ids" in ran.err
    assert str(one.id) in ran.err
    assert str(two.id) in ran.err
    assert {status(one)[0], status(two)[0]} == {"runnable"}


@pytest.mark.parametrize("name", ["zzzz", "t-line:nothing", "nothing:a", ":", "019a9f3c-0000-7000-8000-000000000000", "' OR 1=1"])
@pytest.mark.parametrize("verb", ["show", "cancel", "verify"])
def test_a_run_that_is_not_there_is_one_line_and_exit_1(cli: Any, name: str, verb: str) -> None:
    Line.start({}, key="a")
    ran = cli(verb, name)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert "There is no workflow" in ran.err


@pytest.mark.parametrize("beginning", ["0", "01", "0af"])
def test_a_beginning_that_is_too_short_is_called_so(cli: Any, beginning: str) -> None:
    ran = cli("show", beginning)
    assert (ran.code, ran.out) == (1, "")
    assert "4 characters or more" in ran.err


# ---------------------------------------------------------------- start


def test_start_prints_the_id_and_again_the_same_id(cli: Any) -> None:
    first = cli("start", "t-line", "--input", '{"n": 1}', "--key", "k", "--goal", "Try it", "--priority", "3")
    run = Workflow.objects.get()
    assert first == Ran(0, f"{run.pk}\n", "started\n")
    assert (run.input, run.key, run.priority) == ({"n": 1}, "k", 3)
    assert Intent.objects.get().goal == "Try it"
    again = cli("start", "t-line", "--input", '{"n": 1}', "--key", "k")
    assert again == Ran(0, f"{run.pk}\n", "exists already, runnable\n")


def test_start_as_json_says_whether_it_made_the_run(cli: Any) -> None:
    found = cli("start", "t-line", "--input", "{}", "--json").json
    assert found["created"] is True
    assert found["id"] == str(Workflow.objects.get().pk)


def test_start_names_the_accountable_user(cli: Any) -> None:
    get_user_model().objects.create_user("ann")
    cli("start", "t-line", "--input", "{}", "--by", "ann")
    assert Workflow.objects.get().user_label == "ann"


def test_start_reads_its_input_from_stdin(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"from": "stdin"}'))
    assert cli("start", "t-line", "--input", "-").code == 0
    assert Workflow.objects.get().input == {"from": "stdin"}


def test_start_takes_the_newest_version_unless_one_is_named(cli: Any, declare: Callable[..., type[Flow]]) -> None:
    for version in (1, 2):
        declare("t-versions", meta={"version": version}, one=Activity(work, then="done"), done=End(COMPLETE))
    cli("start", "t-versions", "--input", "{}", "--key", "newest")
    cli("start", "t-versions", "--input", "{}", "--key", "first", "--flow-version", "1")
    assert dict(Workflow.objects.values_list("key", "flow_version")) == {"newest": 2, "first": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t-line", "--input", '{"n": 2}', "--key", "taken"], "'t-line' was already started with key 'taken' and another input."),
        (["nothing", "--input", "{}"], "No flow 'nothing' is registered here"),
        (["t-line", "--input", "{}", "--flow-version", "9"], "No flow 't-line@9' is registered here"),
        (["t-line", "--input", "{}", "--by", "nobody"], "There is no user 'nobody'."),
        (["t-line", "--input", '{"n": NaN}'], "the input of t-line: holds nan, which is not a JSON number"),
        (["t-line", "--input", '{"n": "\\u0000"}'], "the input of t-line: holds a NUL character"),
        (["t-line", "--input", "{}", "--key", ""], "the key of t-line: must be text of 1 to 500 characters"),
    ],
)
def test_a_start_that_is_refused_is_one_line_and_exit_1(cli: Any, arguments: list[str], message: str) -> None:
    Line.start({"n": 1}, key="taken")
    ran = cli("start", *arguments)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert Workflow.objects.count() == 1


# ---------------------------------------------------------------- signal


def test_a_signal_is_kept_then_known_and_wakes_who_waits(cli: Any, worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    assert cli("signal", "e0", "t.other", "--key", "k") == Ran(0, "kept\n", "0 woken\n")
    woken = cli("signal", "e1", "t.asked", "--key", "k", "--payload", '{"n": 1}', "--json").json
    assert (woken["answer"], woken["woken"]) == ("accepted", [str(run.id)])
    assert cli("signal", "e1", "t.asked", "--key", "k", "--payload", '{"n": 1}').out == "already\n"
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")


def test_a_signal_with_another_payload_is_refused_and_kept_apart(cli: Any) -> None:
    cli("signal", "e1", "t.asked", "--key", "k")
    ran = cli("signal", "e1", "t.asked", "--key", "k", "--payload", '{"n": 2}')
    assert (ran.code, ran.out) == (1, "conflict\n")
    assert "is known with another payload" in ran.err
    assert sorted(Event.objects.values_list("status", flat=True)) == ["conflict", "pending"]


# ---------------------------------------------------------------- cancel, pause, resume


def test_cancel_twice_is_once_and_both_are_success(cli: Any) -> None:
    run = Line.start({}, key="k")
    assert cli("cancel", run.id, "--reason", "not wanted") == Ran(0, "accepted\n", "the run is cancelled\n")
    assert cli("cancel", run.id) == Ran(0, "already\n", "the run is cancelled\n")
    assert "not wanted" in cli("show", run.id).out


def test_what_comes_too_late_is_exit_1(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    worker.run()
    for verb in ("cancel", "pause", "resume"):
        ran = cli(verb, run.id)
        assert (ran.code, ran.out) == (1, "too_late\n"), verb
        assert "Too late: the run is complete." in ran.err


def test_pause_and_resume_by_somebody(cli: Any, worker: LocalWorker) -> None:
    get_user_model().objects.create_user("ann")
    run = Nap.start({})
    assert cli("pause", run.id, "--by", "ann").out == "accepted\n"
    assert cli("pause", run.id).out == "already\n"
    worker.run()
    assert status(run)[0] == "paused"
    assert cli("resume", run.id, "--json").json == {"answer": "accepted", "status": "runnable", "id": str(run.id)}
    assert [one["trigger_ref"] for one in describe.describe(run).timeline if one["trigger"] == "pause"] == ["ann"]


def test_a_stopped_run_goes_on_where_its_gate_stands_on(cli: Any, worker: LocalWorker, declare: Any) -> None:
    does["check"] = failing(1, VerificationFailed)
    flow = declare(
        "t-at",
        propose=Decision(lambda attempt: flows.Candidate("go"), choices={"go": "check"}),
        check=Activity(work, verifies="propose", then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    refused = cli("resume", run.id, "--at", "done")
    assert (refused.code, refused.out) == (1, "")
    assert "cannot go on at 'done': it stopped at check, which stands on propose. Resume it without" in refused.err
    assert cli("resume", run.id, "--at", "propose", "--reason", "anew").out == "accepted\n"
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume"])
def test_what_was_seen_is_what_is_meant(cli: Any, worker: LocalWorker, verb: str) -> None:
    run = Ask.start({"key": "seen"})
    worker.run()
    seen = cli("show", run.id, "--json").json["seen"]
    flows.pause(run)
    if verb == "pause":
        flows.resume(run)
        worker.run()
    refused = cli(verb, run.id, "--seen", seen)
    assert (refused.code, refused.out) == (1, "moved\n")
    assert "It has moved" in refused.err
    assert cli(verb, run.id, "--seen", describe.describe(run).seen).code == 0


def test_nobody_acts_in_the_name_of_an_unknown_user(cli: Any) -> None:
    run = Line.start({})
    assert cli("cancel", run.id, "--by", "nobody").code == 1
    assert status(run)[0] == "runnable"


# ---------------------------------------------------------------- verify


@pytest.mark.req("A4")
def test_verify_of_a_sound_record_is_silent_on_stdout(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({})
    Ask.start({"key": "k"})
    worker.run()
    assert cli("verify") == Ran(0, "", "2 checked, 0 differences, 0 break an invariant\n")
    assert cli("verify", run.id) == Ran(0, "", "1 checked, 0 differences\n")
    assert cli("verify", "--json").json == {"checked": 2, "differences": [], "broken": []}


@pytest.mark.req("A4")
def test_verify_names_what_differs_and_fails(cli: Any) -> None:
    run, other = Line.start({}), Line.start({})
    Workflow.objects.filter(pk=run.id).update(policy_version="changed")
    try:
        ran, one, sound = cli("verify", "--json"), cli("verify", run.id), cli("verify", other.id)
    finally:
        Workflow.objects.filter(pk=run.id).update(policy_version="")
    assert ran.code == one.code == 1
    assert ran.json == {
        "checked": 2,
        "differences": [{"id": str(run.id), "field": "policy_version", "log": "", "row": "changed"}],
        "broken": [],
    }
    assert one.out.splitlines()[1].split() == [str(run.id), "policy_version", "changed"]
    assert "Log and row differ." in one.err
    assert sound.code == 0


# ---------------------------------------------------------------- graph and definitions


def test_graph_prints_mermaid_and_writes_svg(cli: Any, tmp_path: Path) -> None:
    assert cli("graph", "t-line").out.splitlines()[3] == "flowchart TD"
    file = tmp_path / "line.svg"
    ran = cli("graph", "t-line", "--format", "svg", "--output", file)
    assert ran == Ran(0, "", f"written to {file}\n")
    assert file.read_text().startswith("<svg ")
    assert cli("graph", "t-line", "--format", "svg").out == file.read_text()


def test_graph_as_json_has_nodes_and_arrows(cli: Any) -> None:
    found = cli("graph", "t-line", "--json").json
    assert [node["name"] for node in found["nodes"]] == ["one", "two", "three", "done"]
    assert found["arrows"][0] == {"source": "one", "target": "two", "labels": [""]}


def test_a_file_that_cannot_be_written_is_one_line(cli: Any, tmp_path: Path) -> None:
    ran = cli("graph", "t-line", "--output", tmp_path / "nowhere" / "x.svg")
    assert ran.code == 1
    assert "cannot be written: No such file or directory." in ran.err


def test_definitions_lists_what_this_process_knows(cli: Any) -> None:
    found = {one["name"]: one for one in cli("definitions", "--json").json}
    assert found["t-line"]["fingerprint"] == Line.definition.fingerprint
    assert found["t-line"]["start"] == "one"
    assert "upgrade-library" in found
    assert "t-line" in cli("definitions").out


def test_a_flow_that_is_written_wrongly_keeps_nobody_from_the_others(cli: Any, declare: Callable[..., type[Flow]]) -> None:
    declare("t-faulty", one=Activity(work), done=End(COMPLETE))
    assert {one["name"]: one["fingerprint"] for one in cli("definitions", "--json").json}[
        "t-faulty"
    ] == "faulty: see manage.py check"
    assert cli("list").code == 0
    ran = cli("graph", "t-faulty")
    assert (ran.code, ran.err.count("\n")) == (1, 1)


# ---------------------------------------------------------------- terminals, usage, and a database that is away


def test_nothing_in_the_data_can_act_on_a_terminal(cli: Any) -> None:
    get_user_model().objects.create_user("ann")
    run = Line.start({}, key=EVIL, goal=EVIL, by=get_user_model().objects.get())
    cli("cancel", run.id, "--reason", EVIL)
    outputs = [cli("list"), cli("show", run.id), cli("list", "--json"), cli("show", run.id, "--json"), cli("show", EVIL)]
    outputs += [cli("start", "t-line", "--input", '{"other": 1}', "--key", EVIL), cli("start", EVIL, "--input", "{}")]
    for ran in outputs:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ran.out + ran.err)
    assert "U+001B" in outputs[0].out
    assert outputs[2].json[0]["key"] == EVIL, "programs get the data as it is"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["show"],
        ["list", "--limit", "0"],
        ["list", "--limit", "x"],
        ["list", "--status", "sleeping"],
        ["start", "t-line"],
        ["start", "t-line", "--input", "not json"],
        ["start", "t-line", "--input", "[]"],
        ["signal", "e1", "t"],
        ["signal", "e1", "t", "--key", "k", "--payload", "3"],
        ["list", "--database", "nothing"],
        ["graph", "t-line", "--format", "png"],
    ],
)
def test_wrong_usage_is_exit_2_and_changes_nothing(cli: Any, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err
    assert not Workflow.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize("arguments", [["--help"], ["show", "--help"], ["start", "--help"]])
def test_help_tells_the_exit_codes(cli: Any, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == 0
    assert "Exit codes: 0 done" in " ".join(ran.out.split())


def test_a_database_that_is_away_is_one_line(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: Any) -> None:
        raise OperationalError("connection refused\n\tIs the server running?")

    monkeypatch.setattr(describe, "list_workflows", away)
    ran = cli("list")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "The database does not answer: connection refused Is the server running?" in ran.err


def test_another_alias_of_the_record_may_be_named(cli: Any) -> None:
    Line.start({}, key="k")
    assert len(cli("list", "--json", "--database", "default").json) == 1
