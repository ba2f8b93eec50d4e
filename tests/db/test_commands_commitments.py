"""manage.py flows commitments: what is owed, and what becomes of it; by those who may, with a reason."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, Activity, Commits, End
from flows.models import Commitment
from flows.testing import LocalWorker
from tests import factories
from tests.factories import status
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("J1")

EVIL = "n\u202e"


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> None:
    """Ann may service commitments, Cat may not."""
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="service_commitment"))
    get_user_model().objects.create_user("cat")


@pytest.fixture
def run(declare: Any, worker: LocalWorker) -> Any:
    """A run that is at its end, and holds something that has no release."""
    hold = Activity(
        factories.work,
        commits=(Commits("hold", kind="room", reference=lambda result: EVIL), Commits("lease", deferrable=True)),
        then="done",
    )
    started = declare("t-held", hold=hold, done=End(COMPLETE)).start({}, key="k")
    worker.run()
    assert status(started)[0] == "reconciling"
    return started


def held() -> Commitment:
    return Commitment.objects.get(name="hold")


def test_the_description_names_the_command(run: Any, cli: Any) -> None:
    assert "flows commitments" in flows.describe(run).decision_needed
    assert flows.describe(run).ways_on == ["settle"]


def test_list(run: Any, cli: Any) -> None:
    ran = cli("commitments", "list")
    lines = [line.split() for line in ran.out.splitlines()]
    assert (ran.code, lines[0]) == (
        0,
        ["ID", "COMMITMENT", "KIND", "REFERENCE", "STATUS", "FLOW", "WORKFLOW", "DEADLINE", "REASON"],
    )
    assert lines[1][:3] == [str(held().pk), "hold", "room"]
    assert "\u202e" not in ran.out
    assert len(lines) == 2, "what was deferred at the end is nobody's here"
    (one,) = cli("commitments", "list", "t-held:k", "--json").json
    assert (one["id"], one["name"], one["status"], one["reference"], one["workflow"]) == (
        held().pk, "hold", "active", EVIL, str(run.id),
    )  # fmt: skip
    assert [row["name"] for row in cli("commitments", "list", run.id, "--all", "--json").json] == ["hold", "lease"]
    assert cli("commitments", "list", "--kind", "window", "--json").json == []
    assert cli("commitments", "list", "0000").code == 1


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [(["fulfil"], "fulfilled"), (["defer"], "deferred"), (["transfer", "--to", "the night shift"], "transferred")],
)
def test_a_person_says_what_becomes_of_it(run: Any, cli: Any, arguments: list[str], becomes: str) -> None:
    verb, *more = arguments
    said = ["--reason", "told by telephone", "--by", "ann"]
    ran = cli("commitments", verb, held().pk, *more, *said, "--json")
    assert (ran.code, ran.json) == (
        0, {"id": held().pk, "status": becomes, "workflow": str(run.id), "workflow_status": "complete"},
    )  # fmt: skip
    assert (held().status, held().reason, held().closed_by) == (becomes, "told by telephone", "ann")
    assert held().holder == ("the night shift" if more else "")
    again = cli("commitments", verb, held().pk, *more, *said)
    assert (again.code, again.out) == (1, "")
    assert f"It has ended: it is {becomes}. Nothing was changed." in again.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fulfil", "HELD", "--reason", "x", "--by", "cat"], 1, "needs the permission outlast_flows.service_commitment"),
        (["fulfil", "HELD", "--reason", "x", "--by", ""], 1, "service_commitment"),
        (["fulfil", "HELD", "--reason", " ", "--by", "ann"], 1, "Say why the commitment ends"),
        (["fulfil", "HELD", "--by", "ann"], 2, "--reason"),
        (["fulfil", "HELD", "--reason", "x"], 2, "--by"),
        (["transfer", "HELD", "--reason", "x", "--by", "ann"], 2, "--to"),
        (["transfer", "HELD", "--to", " ", "--reason", "x", "--by", "ann"], 1, "say to whom"),
        (["defer", "77", "--reason", "x", "--by", "ann"], 1, "There is no commitment 77"),
        (["defer", "hold", "--reason", "x", "--by", "ann"], 1, "There is no commitment hold"),
        (["defer", "HELD", "--reason", "x", "--by", "nobody"], 1, "There is no user 'nobody'"),
        (["lose", "HELD"], 2, "invalid choice"),
    ],
)
def test_what_is_refused(run: Any, cli: Any, arguments: list[str], code: int, message: str) -> None:
    ran = cli("commitments", *[str(held().pk) if one == "HELD" else one for one in arguments])
    assert ran.code == code, ran
    assert message in re.sub(r"\s+", " ", ran.err)
    assert (held().status, status(run)[0]) == ("active", "reconciling")
