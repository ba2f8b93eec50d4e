"""manage.py flows migrate: one, several or all runs of a flow, each with what became of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Wait
from flows.models import Transition, Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import row, status
from tests.support.commanding import cli
from tests.support.races import racers
from tests.support.versions import Declare, note, version

__all__ = ["cli"]

pytestmark = pytest.mark.req("G2", "Q3")

NAME = "t-bulk"


def nodes(*names: str) -> dict[str, Any]:
    made = {name: Activity(factories.work, then=after) for name, after in zip(names, [*names[1:], "done"], strict=True)}
    return {
        "ask": Wait("t.bulk", key="k", deadline=Deadline(hours=1, then=ESCALATE), then=names[0]),
        **made,
        "done": End(COMPLETE),
    }


def runs(worker: LocalWorker, declare: Declare, count: int = 3) -> list[Any]:
    one = version(declare, NAME, 1, nodes("a"))
    made = [one.start({"n": number}, key=f"run-{number}") for number in range(count)]
    worker.run()
    return made


def odd_only(state: flows.State) -> Any:
    if state.input["n"] % 2 == 0:
        raise flows.errors.CannotMigrate(f"{state.input['n']} is even\x1b[31m")
    return flows.Migrated(state.node)


def test_all_runs_of_a_flow(cli: Any, worker: LocalWorker, declare: Declare) -> None:
    made = runs(worker, declare)
    flows.cancel(made[2])
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    dry = cli("migrate", "--flow", NAME, "--dry-run", "--json")
    assert (dry.code, [one["answer"] for one in dry.json]) == (0, ["would_migrate", "would_migrate"])
    assert {row(run).flow_version for run in made} == {1}
    ran = cli("migrate", "--flow", NAME, "--reason", "a scan", "--json")
    assert (ran.code, ran.err) == (0, "2 migrated\n")
    assert [(one["id"], one["key"], one["answer"], one["from_version"], one["to_version"]) for one in ran.json] == [
        (str(made[0].id), "run-0", "migrated", 1, 2),
        (str(made[1].id), "run-1", "migrated", 1, 2),
    ]
    assert [row(run).flow_version for run in made] == [2, 2, 1]
    assert note(made[0])["reason"] == "a scan"
    again = cli("migrate", "--flow", NAME)
    assert (again.code, again.out, again.err) == (0, "", "no such run\n")


def test_some_are_refused_and_the_exit_code_says_so(cli: Any, worker: LocalWorker, declare: Declare) -> None:
    made = runs(worker, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: odd_only})
    for flags in (["--dry-run"], []):
        ran = cli("migrate", "--flow", NAME, *flags)
        lines = ran.out.splitlines()
        assert ran.code == 1
        assert "2 of 3 were not migrated; each says why." in ran.err
        assert lines[0].split() == ["ID", "FLOW", "KEY", "FROM", "TO", "NODE", "ANSWER", "REASON"]
        assert "0 is even[U+001B ESCAPE" in lines[1] or "0 is even[U+001B" in lines[1]
        assert "\x1b" not in ran.out
    assert [row(run).flow_version for run in made] == [1, 2, 1]


def test_single_runs_and_versions(cli: Any, worker: LocalWorker, declare: Declare) -> None:
    made = runs(worker, declare, 4)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    version(declare, NAME, 3, nodes("a", "b", "c"), migrate_from={2: {}})
    assert cli("migrate", f"{NAME}:run-0", made[1].id, "--to", "2").code == 0
    assert [row(run).flow_version for run in made] == [2, 2, 1, 1]
    assert cli("migrate", f"{NAME}:run-0").code == 0
    assert cli("migrate", "--flow", NAME, "--from", "2").code == 0
    assert [row(run).flow_version for run in made] == [3, 3, 1, 1]
    assert cli("migrate", "--flow", NAME, "--to", "2").code == 0
    assert [row(run).flow_version for run in made] == [3, 3, 2, 2]
    already = cli("migrate", f"{NAME}:run-0", "--json")
    assert (already.code, already.json[0]["answer"]) == (0, "already")
    back = cli("migrate", f"{NAME}:run-0", "--to", "1")
    assert back.code == 1
    assert "no migrate_from leads from version 3 to version 1" in back.out


def test_by_whom(cli: Any, worker: LocalWorker, declare: Declare, django_user_model: Any) -> None:
    django_user_model.objects.create_user("robin")
    (run,) = runs(worker, declare, 1)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    assert cli("migrate", run.id, "--by", "nobody").code == 1
    assert cli("migrate", run.id, "--by", "robin").code == 0
    assert Transition.objects.get(workflow_id=run.id, trigger="migrate").trigger_ref == "robin"


@pytest.mark.parametrize(
    "arguments",
    [[], ["x", "--flow", NAME], ["abcd", "--from", "1"], ["--flow", NAME, "--to", "0"], ["--flow", NAME, "--from", "x"]],
)
def test_wrong_usage(cli: Any, arguments: list[str]) -> None:
    assert cli("migrate", *arguments).code == 2


@pytest.mark.parametrize("arguments", [["--flow", "t-nothing"], ["--flow", "t-line", "--to", "9"], ["00000000"]])
def test_what_does_not_exist(cli: Any, worker: LocalWorker, arguments: list[str]) -> None:
    assert cli("migrate", *arguments).code == 1


def test_what_somebody_holds_is_busy_and_the_others_are_not_kept_waiting(cli: Any, worker: LocalWorker, declare: Declare) -> None:
    made = runs(worker, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    with racers(1) as (other,), transaction.atomic():
        list(Workflow.objects.select_for_update().filter(pk=made[0].id))
        ran = other.do(lambda: cli("migrate", "--flow", NAME, "--json")).result(30)
    assert ran.code == 1
    assert [(one["key"], one["answer"]) for one in ran.json] == [("run-1", "migrated"), ("run-2", "migrated"), ("run-0", "busy")]
    assert (status(made[0])[0], row(made[0]).flow_version) == ("waiting", 1)
