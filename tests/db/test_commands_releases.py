"""manage.py flows releases: list, show, register, current, move; and what show and list say of a pinned run."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows import releases
from flows.models import CurrentRelease, Release
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Line, another_worker, row
from tests.support.commanding import Ran, cli
from tests.support.releasing import both, now_is

__all__ = ["cli"]

pytestmark = pytest.mark.req("I1")

EVIL = "a\x1b[31mred\u202egninrut\x9b2J"


@pytest.fixture
def people(transactional_db: None) -> None:
    may = Permission.objects.get(codename="manage_release")
    get_user_model().objects.create_user("ann").user_permissions.add(may)
    get_user_model().objects.create_user("cat")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Any], Path]:
    def write(value: Any) -> Path:
        path = tmp_path / "release.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return write


# ---------------------------------------------------------------- register


R18 = {"name": "R18", "models": {"planner": "m-1"}, "prompts": {"plan": "Plan it."}, "note": "The first"}


def test_register_from_a_file_twice_is_once(cli: Any, people: None, file: Any) -> None:
    ran = cli("releases", "register", file(R18), "--by", "ann")
    assert (ran.code, ran.out, ran.err) == (0, "R18\n", "registered\n")
    again: Ran = cli("releases", "register", file(R18), "--json")
    assert (again.json["name"], again.json["registered"], again.err) == ("R18", False, "was registered already\n")
    row_ = Release.objects.get()
    assert (row_.by_label, row_.note, row_.prompt_hashes) == ("ann", "The first", {"plan": releases.digest("Plan it.")})


def test_register_from_stdin_and_what_show_prints_can_be_registered(cli: Any, monkeypatch: Any, people: None) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(R18)))
    assert cli("releases", "register", "-").code == 0
    shown = cli("releases", "show", "R18", "--json").json
    copy = {"name": "R18-again", **{part: shown[part] for part in ("models", "prompts", "tools", "policies")}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(copy)))
    assert cli("releases", "register", "-").code == 0
    assert len({one.digest for one in releases.list()}) == 1


@pytest.mark.parametrize(("given", "code", "says"), [
    ("{", 2, "is not JSON"),
    ([], 2, "must hold an object with a name"),
    ({"models": {}}, 2, "must hold an object with a name"),
    ({"name": "R1", "model": {}}, 2, "holds model, which a release has not. It has name, models, prompts"),
    ({"name": "R1"}, 1, "is empty"),
    ({"name": EVIL, "models": {"a": 1}}, 1, "cannot be the name"),
    ({"name": "R1", "models": {"a": 1}, "compatible_with": ["R0"]}, 1, "No release R0 is registered"),
    ({"name": "R1", "models": [1]}, 1, "are an object"),
    ({"name": "R1", "models": {"a": 1}, "note": 7}, 1, "note of release R1"),
    ({"name": "R1", "models": {"a": 1}, "compatible_with": [7]}, 1, "No release 7"),
])  # fmt: skip
def test_what_cannot_be_registered_says_why(cli: Any, people: None, file: Any, given: Any, code: int, says: str) -> None:
    ran = cli("releases", "register", file(given))
    assert (ran.code, says in ran.err, "\x1b" in ran.err) == (code, True, False), ran.err
    assert releases.list() == []


def test_register_what_is_not_there_or_who_may_not(cli: Any, people: None, file: Any) -> None:
    assert "cannot be read: No such file" in cli("releases", "register", "/nowhere/R18.json").err
    ran = cli("releases", "register", file(R18), "--by", "cat")
    assert (ran.code, "needs the permission outlast_flows.manage_release" in ran.err) == (1, True)
    assert cli("releases", "register", file(R18), "--by", "dog").code == 1


# ---------------------------------------------------------------- list, show


def test_list_says_where_each_is_current_who_is_pinned_and_who_offers_it(cli: Any, worker: LocalWorker) -> None:
    both()
    Line.start({})
    Ask.start({"key": "x"})
    worker.run()
    Line.start({})
    now_is("R18")
    now_is("R17", Ask)
    worker.stop()
    another_worker(name="old", releases=["R71"])
    ran = cli("releases", "list")
    lines = ran.out.splitlines()
    assert ran.err == "worker old offers R71, which is not registered\n2 shown\n"
    assert lines[0].split()[:3] == ["NAME", "STATE", "CURRENT"]
    assert [line.split()[:2] for line in lines[1:]] == [["R18", "current"], ["R17", "UNOFFERED"]]
    another_worker(name="new", releases=["R17", "R18"])
    new, old = cli("releases", "--json", "list").json
    assert (new["current_for"], new["runs"], new["workers"]) == (["*"], 0, ["new"])
    assert (old["current_for"], old["live"], old["state"]) == (["t-ask"], {"runnable": 1, "waiting": 1}, "current")


def test_list_shows_an_alert(cli: Any, worker: LocalWorker, clock: Clock, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "RELEASE_ALERT_SECONDS": 0.001}
    both()
    run = Line.start({})
    worker.stop()
    clock.move(seconds=1)
    (alerted,) = [one for one in cli("releases", "list", "--json").json if one["name"] == "R17"]
    assert (alerted["state"], alerted["stuck"]) == ("ALERT", 1)
    told = cli("verify")
    assert (told.code, f"{run.id}  no ready workflow whose release nobody offers" in told.out) == (1, True)
    worker.tick()
    assert (
        "R17 (the current one); no live worker offers it. ALERT: the run is ready, and cannot be taken" in cli("show", run.id).out
    )


def test_show_says_what_it_is_made_of(cli: Any, worker: LocalWorker) -> None:
    both(compatible=True)
    Line.start({})
    out = cli("releases", "show", "R18").out
    assert "Takes over from  R17" in out
    assert f"prompts  plan     {releases.digest('Plan it, and say why.')}" in out
    out = cli("releases", "show", "R17").out
    assert "Current for      every other flow" in out
    assert "Live runs        1 runnable" in out
    ran = cli("releases", "show", "R18", "--against", "R17")
    assert (len(ran.out.splitlines()), ran.err) == (2, "1 differences\n")
    ((found),) = cli("releases", "show", "R18", "--against", "R17", "--json").json
    assert (found["part"], found["name"], found["from"]) == ("prompts", "plan", releases.digest("Plan it."))
    assert "No release R71 is registered (the newest are: R18, R17)" in cli("releases", "show", "R71").err
    assert cli("releases", "show", "R18", "--against", EVIL).code == 1


def test_a_run_shows_its_release(cli: Any, worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    now_is("R18")
    shown = cli("show", run.id)
    assert f"Release      R17 (current is R18); offered by local-{worker.incarnation}" in shown.out
    assert cli("show", run.id, "--json").json["release"]["name"] == "R17"
    releases.move(run, to="R17", by=None, reason="x")
    assert "R17 (current is R18, which a person passed over)" in cli("show", run.id).out
    assert '"reason": "x"' in cli("show", run.id).out


# ---------------------------------------------------------------- current


def test_current_is_made_and_shown(cli: Any, people: None) -> None:
    both()
    CurrentRelease.objects.all().delete()
    assert cli("releases", "current").err == "no release is current: new runs are pinned to none\n"
    ran = cli("releases", "current", "R17", "--reason", "Rolled out", "--by", "ann")
    assert (ran.code, ran.out) == (0, "changed\n")
    assert cli("releases", "current", "R17", "--reason", "Rolled out").out == "already\n"
    assert cli("releases", "current", "R18", "--flow", "t-line", "--reason", "A trial").code == 0
    shown = cli("releases", "current", "--json").json
    assert [(one["flow"], one["release"], one["by"], one["reason"]) for one in shown] == [
        ("*", "R17", "ann", "Rolled out"), ("t-line", "R18", "", "A trial"),
    ]  # fmt: skip
    assert len(cli("releases", "current", "--flow", "t-ask").out.splitlines()) == 2
    assert cli("releases", "current", "--none", "--flow", "t-line", "--reason", "The trial is over").out == "changed\n"
    assert [one.flow_name for one in CurrentRelease.objects.all()] == [""]


def test_current_says_what_is_wrong(cli: Any, people: None) -> None:
    both()
    assert "Say why another release becomes current" in cli("releases", "current", "R18").err
    assert "No release R71" in cli("releases", "current", "R71", "--reason", "x").err
    assert "No flow 't-none'" in cli("releases", "current", "R18", "--flow", "t-none", "--reason", "x").err
    assert cli("releases", "current", "R18", "--none", "--reason", "x").code == 2
    assert cli("releases", "current", "R18", "--reason", "x", "--by", "cat").code == 1
    assert CurrentRelease.objects.get().release == "R17"


# ---------------------------------------------------------------- move


def test_move_one_and_many(cli: Any, worker: LocalWorker, people: None) -> None:
    both()
    one, two = Line.start({}), Ask.start({"key": "x"})
    ran = cli("releases", "move", one.id, "--to", "R18", "--reason", "Looked at it", "--by", "ann")
    assert (ran.code, ran.err) == (0, "1 of 1 moved\n")
    assert ran.out.splitlines()[1].split()[2:] == ["moved", "runnable", "R17", "R18", "no"]
    dry = cli("releases", "move", "--from", "R17", "--to", "R18", "--dry-run")
    assert (dry.code, dry.err, row(two).release) == (0, "1 of 1 would be moved\n", "R17")
    assert dry.out.splitlines()[1].split()[2] == "would_move"
    assert cli("releases", "move", "--from", "R17", "--flow", "t-line", "--to", "R18", "--reason", "x").err == "0 of 0 moved\n"
    (found,) = cli("releases", "move", "--from", "R17", "--to", "R18", "--reason", "x", "--json").json
    assert (found["id"], found["code"], found["source"], row(two).release) == (str(two.id), "moved", "R17", "R18")


def test_a_run_that_keeps_its_own_release_was_not_moved(cli: Any, worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    now_is("R18")
    dry = cli("releases", "move", "--from", "R17", "--to", "R17", "--dry-run", "--json")
    assert (dry.json[0]["code"], dry.err) == ("would_keep", "0 of 1 would be moved; 1 would keep its own\n")
    ran = cli("releases", "move", run.id, "--to", "R17", "--reason", "x")
    assert ran.out.splitlines()[1].split()[2] == "kept"
    assert ran.err == "0 of 1 moved; 1 keeps its own\n"


def test_move_says_which_could_not_be_moved(cli: Any, worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    factories.enter(factories.take_one(worker))
    dry = cli("releases", "move", "--from", "R17", "--to", "R18", "--dry-run")
    assert (dry.code, dry.out.splitlines()[1].split()[2]) == (0, "busy")
    ran = cli("releases", "move", run.id, "--to", "R18", "--reason", "x")
    assert (ran.code, "1 could not be moved: It is computing" in ran.err) == (1, True)
    factories.lose(worker)


def test_move_is_used_rightly(cli: Any, worker: LocalWorker, people: None) -> None:
    both()
    run = Line.start({})
    assert cli("releases", "move", "--to", "R18", "--reason", "x").code == 2
    assert cli("releases", "move", run.id, "--from", "R17", "--to", "R18", "--reason", "x").code == 2
    assert cli("releases", "move", run.id, "--to", "R18", "--dry-run").code == 2
    assert "Say why" in cli("releases", "move", run.id, "--to", "R18").err
    assert "Say why" in cli("releases", "move", "--from", "R17", "--to", "R18").err
    assert cli("releases", "move", run.id, "--to", "R18", "--reason", "x", "--by", "cat").code == 1
    assert cli("releases", "move", "--from", EVIL, "--to", "R18", "--reason", "x").code == 1
    assert row(run).release == "R17"


@pytest.mark.parametrize("arguments", [["releases"], ["releases", "lost"], ["releases", "move"]])
def test_wrong_usage(cli: Any, arguments: list[str]) -> None:
    assert cli(*arguments).code == 2
