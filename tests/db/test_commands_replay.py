"""manage.py flows replay: what is replayed, what is printed, and the exit code that CI reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from flows import COMPLETE, Activity, End, Flow, registry
from flows.core import definition as declared
from flows.models import Transition
from flows.services import replay as service
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, Pipe, work
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("S1", "G2")

STRAYS = {"test_a_difference_is_printed_with_its_place", "test_what_cannot_be_replayed_is_not_good"}


class Shorter(Flow):
    """Another definition of the line, one step short; never offered."""

    class Meta:
        name = "t-line"
        version = 7

    one = Activity(work, then="two")
    two = Activity(work, then="done")
    done = End(COMPLETE)


declared.DECLARED.remove(Shorter)  # elsewhere the line is the newest of its name


@pytest.fixture
def registered() -> Iterator[None]:
    """It is registered, as a version that was deployed before it is offered."""
    declared.DECLARED.append(Shorter)
    registry._lookup.cache_clear()
    yield
    declared.DECLARED.remove(Shorter)
    registry._lookup.cache_clear()


def tamper(run: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE outlast_transition SET to_node = 'three' WHERE workflow_id = %s AND seq = 3", [run.id])


def mend(run: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE outlast_transition SET to_node = 'two' WHERE workflow_id = %s AND seq = 3", [run.id])


def test_one_run_is_shown_arrow_by_arrow(cli: Any, worker: LocalWorker) -> None:
    run = Line.start({}, key="a")
    worker.run()
    ran = cli("replay", "t-line:a")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ran.code == 0
    assert lines[0] == ["#", "BECAUSE", "HOW", "FROM", "TO", "NODE", "DIFFERENCE"]
    assert [(line[0], line[-4]) for line in lines[1:]] == [
        ("1", "given"),
        ("2", "given"),
        *[(str(n), "decided") for n in (3, 4, 5)],
    ]
    assert ran.err == "1 replayed, 3 of 5 arrows decided again: 0 differ\n"
    assert cli("replay", str(run.id)[:13], "t-line:a").code == 0


def test_everything_as_json(cli: Any, worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred recorded runs of several flows, in several pages; nothing is done again."""
    monkeypatch.setattr(service, "BATCH", 64)
    Line.start_many([(None, {}) for _ in range(120)])
    Pipe.start_many([(None, {}) for _ in range(50)])
    Ask.start_many([(None, {"key": str(number)}) for number in range(30)])
    worker.batch_size = 10
    worker.run()
    before = len(factories.calls)
    ran = cli("replay", "--all", "--json")
    assert (ran.code, len(factories.calls)) == (0, before)
    assert ran.json == {
        "checked": 200,
        "arrows": Transition.objects.count(),
        "decided": 120 * 3 + 50 * 3 + 30,
        "not_judged": 0,
        "differences": [],
        "unknown": [],
    }
    assert cli("replay", "--flow", "t-ask", "--json").json["checked"] == 30
    assert cli("replay", "--all", "--flow", "t-ask", "--json").json["checked"] == 30
    assert cli("replay", "--all", "--live", "--json").json["checked"] == 30
    assert cli("replay", "--flow", "t-line", "--live", "--json").json["checked"] == 0


def test_a_difference_is_printed_with_its_place(cli: Any, worker: LocalWorker) -> None:
    run, _sound = Line.start({}), Line.start({})
    worker.run()
    tamper(run)
    ran = cli("replay", "--all")
    assert (ran.code, ran.out.splitlines()[1].split()) == (1, [str(run.id), "t-line@1", "3", "to_node", "three", "two"])
    assert ran.err == "2 replayed, 4 of 7 arrows decided again: 1 differ\nCommandError: Record and replay differ.\n"
    found = cli("replay", "--all", "--json").json["differences"]
    whose = {"id": str(run.id), "flow": "t-line", "version": 1, "key": None}
    assert found == [{**whose, "seq": 3, "field": "to_node", "recorded": "three", "replayed": "two"}]
    named = cli("replay", str(run.id), "--json").json
    assert [step["how"] for step in named["workflows"][0]["steps"]] == ["given", "given", "decided"]
    assert named["workflows"][0]["steps"][2]["drift"]["field"] == "to_node"
    mend(run)


def test_what_cannot_be_replayed_is_not_good(cli: Any, worker: LocalWorker) -> None:
    with factories.declaring(worker) as declare:
        run = declare("t-gone", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    ran = cli("replay", "--all", "--json")
    assert (ran.code, ran.json["differences"]) == (1, [])
    assert ran.json["unknown"] == [
        {"id": str(run.id), "flow": "t-gone", "version": 1, "key": None, "why": "t-gone@1 is not known to this process"}
    ]
    assert "1 could not be replayed" in ran.err


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("against", ["7", f"{__name__}.Shorter"])
def test_against_another_definition(cli: Any, worker: LocalWorker, against: str) -> None:
    live, ended = Line.start({}, key="live"), Line.start({}, key="ended")
    owned = factories.take_one(worker)
    assert owned.row.id == live.id
    factories.enter(owned)
    factories.complete(owned)
    factories.complete(owned)
    worker.run()
    flow = ["--flow", "t-line"] if against == "7" else []
    ran = cli("replay", *flow, "--against", against, "--live")
    assert ran.code == 1
    first = ran.out.splitlines()[1]
    assert first.startswith(f"{live.id}  t-line@1")
    assert first.endswith("it is at three, which is not in t-line@7")
    assert ran.err.startswith("1 live runs against t-line@7: 1 would break\n")
    found = cli("replay", *flow, "--against", against, "--live", "--json").json
    assert [problem["what"] for problem in found["breaking"][0]["problems"]] == ["node", "path"]
    assert found["checked"] == 1
    assert cli("replay", "t-line:ended", "--against", against, "--json").json["breaking"][0]["id"] == str(ended.id)
    assert cli("replay", "--flow", "t-line", "--against", "1", "--live").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Say which runs: ID…, --flow NAME or --all."),
        (["--live"], 2, "Say which runs"),
        (["t-line:a", "--flow", "t-line"], 2, "Say which runs"),
        (["t-line:a", "--all"], 2, "Say which runs"),
        (["t-line:a", "--live"], 2, "--live narrows --flow and --all down"),
        (["--against", "2"], 2, "Say which runs"),
        (["--all", "--against", "2"], 2, "Version 2 of which flow? Add --flow NAME."),
        (["--flow", "t-line", "--against", "99"], 1, "No flow 't-line@99' is registered here"),
        (["--against", "nowhere.Flow"], 2, "nowhere.Flow cannot be imported"),
        (["--against", "flows.models.Workflow"], 2, "flows.models.Workflow is no Flow class."),
        (["--against", "flows.Flow"], 2, "flows.Flow is no Flow class."),
        (["--flow", "t-ask", "--against", "tests.factories.Line"], 2, "is flow 't-line', and not t-ask."),
        (["--flow", "nothing"], 1, "No flow 'nothing' is registered here"),
        (["t-line:none"], 1, "There is no workflow t-line:none"),
    ],
)
def test_what_is_not_understood_names_the_way_out(cli: Any, arguments: list[str], code: int, message: str) -> None:
    Line.start({}, key="a")
    ran = cli("replay", *arguments)
    assert ran.code == code
    assert message in ran.err


def test_a_flow_that_is_only_recorded_may_be_named(cli: Any, worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    """Its classes may be gone: its runs are there, and are said not to be replayable."""
    with factories.declaring(worker) as declaring:
        declaring("t-past", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    ran = cli("replay", "--flow", "t-past")
    assert (ran.code, "t-past@1 is not known to this process" in ran.out) == (1, True)
