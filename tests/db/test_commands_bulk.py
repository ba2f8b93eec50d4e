"""manage.py flows bulk."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows.testing import LocalWorker
from tests.factories import Line
from tests.support.commanding import cli

__all__ = ["cli"]


def test_make_list_show_and_stop(cli: Any, worker: LocalWorker) -> None:
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    Line.start_many([(f"k{number}", {}) for number in range(3)])
    said = ["--reason", "the campaign is over", "--by", "ann"]
    ran = cli("bulk", "make", "cancel", "--flow", "t-line", "--status", "runnable", "--dry-run", *said)
    assert (ran.code, ran.out, ran.err) == (0, "3\n", "runs match; nothing was changed\n")
    made = cli("bulk", "make", "cancel", "--flow", "t-line", "--status", "runnable", "--json", *said)
    number = made.json["id"]
    assert (made.json["total"], made.json["filter"]) == (3, {"flow": "t-line", "status": "runnable"})
    assert made.err == f"3 runs; flows bulk show {number} says how far it is\n"
    worker.tick()
    shown = cli("bulk", "show", number)
    assert "accepted=3" in shown.out
    assert "flow=t-line status=runnable" in shown.out
    assert cli("bulk", "list", "--json").json[0]["status"] == "done"
    assert cli("bulk", "stop", number, *said).err == "it was over already\n"


def test_migrate_takes_a_version_and_what_cannot_be_is_said(cli: Any, worker: LocalWorker) -> None:
    Line.start({})
    ran = cli("bulk", "make", "migrate", "--flow", "t-line", "--version", "1", "--to", "1", "--reason", "x", "--json")
    assert ran.json["arguments"] == {"to": 1}
    assert cli("bulk", "stop", ran.json["id"], "--reason", "y").err == "stopped\n"
    refused = cli("bulk", "make", "cancel", "--reason", "x")
    assert (refused.code, "Say which runs" in refused.err) == (1, True)
    assert cli("bulk", "make", "cancel", "--flow", "t-line", "--to", "2", "--reason", "x").code == 1
    assert cli("bulk", "show", 4711).code == 1
    assert cli("bulk", "make", "delete", "--flow", "t-line", "--reason", "x").code == 2
