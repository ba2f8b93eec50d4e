"""manage.py approvals: the same use cases as the admin's, from a shell; and nothing that a model wrote acts on the terminal."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import get_commands

from approvals.management import shown
from approvals.models import Delegation, Request, Review
from tests.support.approving import ROLE, World
from tests.support.commanding import approvals_cli
from tests.support.filling import OrderParts, fill
from tests.support.laddering import POOL, ask_long

__all__ = ["approvals_cli"]

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = "pay\x1b[2J\u202e now"


def test_it_is_a_command() -> None:
    assert get_commands()["approvals"] == "approvals"


def test_list(world: World, approvals_cli: Any) -> None:
    first = world.ask(goal=EVIL)
    own = world.ask(by=world.rita)
    ran = approvals_cli("list")
    assert (ran.code, ran.err.strip()) == (0, "2 shown")
    assert ran.out.splitlines()[0].split() == ["ID", "STATUS", "GOAL", "FLOW", "ASKS", "EXPIRES", "LOOKED", "AT", "BY"]
    assert "\x1b" not in ran.out
    assert "U+202E" in ran.out
    assert [row["id"] for row in approvals_cli("list", "--user", "rita", "--json").json] == [first.pk]
    assert [row["id"] for row in approvals_cli("list", "--queue", "all", "--limit", 1, "--json").json] == [own.pk]
    assert approvals_cli("list", "--user", "nobody").code == 1
    world.decide(first)
    assert [row["answer"] for row in approvals_cli("list", "--queue", "answered", "--json").json] == ["approved"]


def test_show(world: World, approvals_cli: Any) -> None:
    request = world.ask({"text": EVIL}, {"text": "Better."})
    world.decide(request, "changes", comment="Better.")
    world.worker.run()
    second = world.request_of(world.workflow(request))
    ran = approvals_cli("show", request.pk)
    assert ran.code == 0
    assert request.digest in ran.out
    assert "fill in a form" not in ran.out
    assert "\x1b" not in ran.out
    assert ran.out.index("MADE BY A MODEL, NOT VERIFIED") > ran.out.index("Better.")
    found = approvals_cli("show", second.pk, "--json").json
    assert (found["digest"], found["may_answer"], found["since"]["answered_by_you"]) == (second.digest, None, False)
    found = approvals_cli("show", second.pk, "--user", "robin", "--json").json
    assert found["may_answer"]["code"] == "SELF_APPROVAL"
    for number in ("7777", "x", "9" * 19, "9" * 30, "\u0661"):
        assert "There is no approval request" in approvals_cli("show", number).err


def test_what_an_approval_allows_is_the_choice_or_what_a_step_came_to() -> None:
    assert shown.action({"choice": "propose_patch", "from_node": "propose"}) == "propose_patch"
    assert shown.action({"choice": None, "from_node": "order"}) == "what step “order” came to"


@pytest.mark.req("C6")
def test_show_a_form(world: World, approvals_cli: Any) -> None:
    request = world.ask(flow=OrderParts)
    ran = approvals_cli("show", request.pk)
    assert "fill in a form" in ran.out
    assert "0 of 1" in ran.out
    assert ran.out.index("THE FORM, AS ASKED") < ran.out.index("wanted_by")
    assert "MADE BY A MODEL" not in ran.out
    fill(world, request, wanted_by="2026-12-24")
    ran = approvals_cli("show", request.pk)
    assert "1 of 1" in ran.out
    assert ran.out.index("WHAT WAS ANSWERED, NOT VERIFIED") < ran.out.index("2026-12-24")


def test_decide(world: World, approvals_cli: Any) -> None:
    request = world.ask()
    given = ("decide", request.pk, "--verdict", "approve", "--by", "rita", "--digest")
    stale = approvals_cli(*given, "sha256:0")
    assert (stale.code, stale.out.strip()) == (1, "STALE_CANDIDATE")
    assert (
        approvals_cli("decide", request.pk, "--verdict", "deny", "--by", "rita", "--digest", request.digest).out.strip()
        == "COMMENT_REQUIRED"
    )
    assert approvals_cli(*given[:-2], "otto", "--digest", request.digest).out.strip() == "NOT_PERMITTED"
    ran = approvals_cli(*given, request.digest)
    assert (ran.code, ran.out.strip()) == (0, "accepted")
    assert ran.err.startswith("Approved: this exact candidate")
    again = approvals_cli(*given, request.digest, "--json")
    assert (again.code, again.json["code"]) == (0, "already")
    assert approvals_cli("decide", request.pk, "--verdict", "yes", "--by", "rita", "--digest", "x").code == 2
    assert Review.objects.filter(refused="").get().by == world.rita


def test_assign_and_revoke(world: World, approvals_cli: Any) -> None:
    request = world.ask()
    assert approvals_cli("assign", request.pk, "--to", "rita", "--by", "rita").code == 0
    assert Request.objects.get().claimed_label == "rita"
    assert "assign_request" in approvals_cli("assign", request.pk, "--to", "ron", "--by", "rita").err
    assert approvals_cli("assign", request.pk, "--by", "rita").code == 0
    world.decide(request)
    assert "revoke_request" in approvals_cli("revoke", request.pk, "--by", "ron", "--reason", "x").err
    assert approvals_cli("revoke", request.pk, "--by", "rita", "--reason", "A mistake.").out.strip() == "accepted"
    assert world.status(request) == "revoked"


def test_delegate(world: World, approvals_cli: Any) -> None:
    given = ("delegate", "--from", "rita", "--to", "ron", "--days", 3, "--reason", "On leave", "--role", ROLE, "--by")
    refused = approvals_cli(*given, "rita")
    assert (refused.code, "delegate_own" in refused.err) == (1, True)
    world.rita.user_permissions.add(Permission.objects.get(codename="delegate_own"))
    ran = approvals_cli(*given, "rita")
    made = Delegation.objects.get()
    assert (ran.code, ran.out.strip(), made.role, round((made.ends_at - made.made_at).total_seconds() / 86400)) == (
        0,
        str(made.pk),
        ROLE,
        3,
    )
    assert approvals_cli(*given, "rita", "--days", 4000).code == 2
    assert approvals_cli(*given, "rita", "--days", 400).code == 1


@pytest.mark.req("F5", "Q1")
def test_waiting(world: World, approvals_cli: Any) -> None:
    empty = approvals_cli("waiting")
    assert (empty.code, empty.out) == (0, "")
    request = world.ask()
    long = ask_long(world)
    world.clock.move(hours=4)
    world.decide(request)
    world.decide(long)
    world.decide(long, by=world.ron)
    ran = approvals_cli("waiting", "--days", 2)
    assert ran.code == 0
    assert ran.err.startswith("the last 2 days")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert any(line.startswith(f"role {ROLE} 2 2 0 0 4h") for line in lines), lines
    assert any(line.startswith(f"pool {POOL} 1 0 0 1 – – –") for line in lines), lines
    assert any(line.startswith("rita 2 2 0 4h") for line in lines), lines
    assert any(line.startswith("publish-news 1 4h") for line in lines), lines
    found = approvals_cli("waiting", "--json").json
    assert {one["name"] for one in found["audiences"]} == {ROLE, POOL}
    assert [(one["name"], one["open"]) for one in found["backlog"]] == [(POOL, 1)]
    assert approvals_cli("waiting", "--days", 0).code == 2
    assert approvals_cli("waiting", "--days", 99999).code == 2


def test_a_database_that_is_none(approvals_cli: Any) -> None:
    ran = approvals_cli("list", "--database", "elsewhere")
    assert (ran.code, ran.err.strip()) == (2, "CommandError: There is no database 'elsewhere' in DATABASES.")
    assert approvals_cli("decide", "1", "--verdict", "deny", "--by", "r", "--digest", "x", "--comment", "\udc80").code == 2
