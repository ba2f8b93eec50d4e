"""manage.py flows dependencies, and flows limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows import COMPLETE, Activity, Dependency, End, Limit
from flows.core import declared as declarations
from flows.models import Dependency as Row
from flows.testing import LocalWorker
from tests.factories import work
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("R1")


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> Iterator[None]:
    """Ann may operate dependencies, Cat may not."""
    before = list(declarations.DECLARED)
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="operate_dependency"))
    get_user_model().objects.create_user("cat")
    Dependency("payments", rate=20, ceiling=3)
    Limit("gpu", concurrency=2)
    yield
    declarations.DECLARED[:] = before


def said(by: str = "ann") -> list[str]:
    return ["--by", by, "--reason", "maintenance"]


def test_down_up_rate_and_list(cli: Any, worker: LocalWorker, declare: Any) -> None:
    ran = cli("dependencies", "down", "payments", *said())
    assert (ran.code, ran.err) == (0, "payments is down\n")
    flow = declare("t-paying", pay=Activity(work, needs="payments", limits="gpu", then="done"), done=End(COMPLETE))
    flow.start({})
    worker.run()
    (one,) = [one for one in cli("dependencies", "list", "--json").json if one["name"] == "payments"]  # others declare theirs
    assert (one["name"], one["status"], one["waiting"], one["by"], one["drain_seconds"]) == ("payments", "down", 1, "ann", 0.05)
    assert cli("dependencies", "rate", "payments", "--rate", "5", *said()).code == 0
    assert Row.objects.get().rate == 5
    ran = cli("dependencies", "up", "payments", *said())
    assert ran.err == "payments is recovering\n"
    assert ran.out.splitlines()[1].split()[:2] == ["payments", "recovering"]
    ran = cli("limits", "list")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["LIMIT", "dependency:payments"]
    assert ran.err == "1 limits\n"


def test_who_may_not_and_what_is_not(cli: Any) -> None:
    ran = cli("dependencies", "down", "payments", *said("cat"))
    assert ran.code == 1
    assert "outlast_flows.operate_dependency" in ran.err
    assert cli("dependencies", "up", "nothing", *said()).code == 1
    assert not Row.objects.exists()
