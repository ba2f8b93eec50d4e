"""manage.py flows hold, lift and holds."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows.testing import LocalWorker
from tests.factories import Line, row
from tests.support.commanding import cli

__all__ = ["cli"]


def test_hold_list_and_lift(cli: Any, worker: LocalWorker) -> None:
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="hold_work"))
    run = Line.start({})
    said = ["--reason", "it pays twice", "--by", "ann"]
    ran = cli("hold", "flow", "t-line", *said)
    assert (ran.code, ran.out, ran.err) == (0, "accepted\n", "flow t-line is held\n")
    assert cli("hold", "flow", "t-line", *said).err == "flow t-line is held already\n"
    worker.run()
    (one,) = cli("holds", "--json").json
    assert (one["scope"], one["name"], one["by"], one["reason"], one["ready"]) == ("flow", "t-line", "ann", "it pays twice", 1)
    ran = cli("holds")
    assert ran.out.splitlines()[1].split()[:2] == ["flow", "t-line"]
    assert ran.err == "1 hold\n"
    assert "a person lifts what holds it" in cli("show", run.id).out
    ran = cli("lift", "flow", "t-line", *said, "--json")
    assert (ran.code, ran.json["name"], ran.err) == (0, "t-line", "flow t-line is lifted\n")
    assert cli("lift", "flow", "t-line", *said).err == "flow t-line is not held\n"
    worker.run()
    assert row(run).status == "complete"


def test_who_may_not_and_what_is_not(cli: Any, worker: LocalWorker) -> None:
    get_user_model().objects.create_user("cat")
    assert "hold_work" in cli("hold", "all", "--reason", "x", "--by", "cat").err
    assert cli("hold", "all", "t-line", "--reason", "x").code == 1
    assert "t-lime" in cli("hold", "flow", "t-lime", "--reason", "x").err
    assert cli("hold", "world", "--reason", "x").code == 2
    assert cli("hold", "all").code == 2
