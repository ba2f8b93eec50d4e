"""What the database itself refuses, to anybody."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, IntegrityError, connection, transaction

from approvals.core.status import MOVES, OF_ASKS, RequestStatus
from approvals.models import Request, Review
from tests.support.approving import World


def refused(statement: str, *params: Any) -> str:
    """The database's own words, or an assertion: it took the statement."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, params)
    return str(caught.value)


@pytest.mark.req("A2")
@pytest.mark.parametrize("target", sorted(RequestStatus))
def test_the_trigger_knows_the_same_moves_as_the_core(world: World, target: RequestStatus) -> None:
    for source in RequestStatus:
        if source is target:
            continue
        request = world.ask()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
            cursor.execute(
                f"UPDATE outlast_approval_request SET status = %s, {columns(source)}, {kind(source, target)} WHERE id = %s",
                [source, request.pk],
            )
            cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")
        legal = target in MOVES[source]
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE outlast_approval_request SET status = %s, {columns(target)} WHERE id = %s", [target, request.pk]
                )
            moved = True
        except DatabaseError:
            moved = False
        assert moved == legal, f"{source} → {target}"


def columns(status: RequestStatus) -> str:
    """The columns that such a status carries."""
    answered = {
        "approved": "approved",
        "consumed": "approved",
        "denied": "denied",
        "changes_requested": "changes",
        "revoked": "approved",
        "superseded": "changes",
        "answered": "answered",
    }.get(status)
    answer = f"answer = '{answered}', answered_at = coalesce(answered_at, now())" if answered else "answer = answer"
    used = "used_by = 1, used_at = now()" if status == "consumed" else "used_by = used_by"
    return f"{answer}, {used}"


def kind(source: RequestStatus, target: RequestStatus) -> str:
    """A row of the kind that the move is about: only what a form asks for is ever answered."""
    asks = RequestStatus.ANSWERED in (source, target) and source in OF_ASKS
    return "kind = 'ask', answers = '{answered}'" if asks else "kind = 'approval'"


@pytest.mark.req("C6", "F1")
@pytest.mark.parametrize("status", sorted(set(RequestStatus) - OF_ASKS))
def test_what_a_form_asks_for_is_never_approved(world: World, status: RequestStatus) -> None:
    request = world.ask()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
        cursor.execute("UPDATE outlast_approval_request SET kind = 'ask', answers = '{answered}' WHERE id = %s", [request.pk])
        told = refused(f"UPDATE outlast_approval_request SET status = %s, {columns(status)} WHERE id = %s", status, request.pk)
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")
    assert "outlast_approval_request_kind" in told


@pytest.mark.req("F1", "F3")
@pytest.mark.parametrize(
    "change",
    [
        "kind = 'ask', answers = '{answered}'",
        "digest = 'sha256:0'",
        "candidate = '{}'",
        "evidence = NULL",
        "ladder = 'everybody'",
        "steps = '[]'",
        "escalation = '[{}]'",
        "bulk = true",
        "intent_version = 9",
        "epoch = 9",
        "expires_at = NULL",
        "self_approval = true",
        "answers = '{approved}'",
        "wait_id = 4711000000",
        "requester_label = 'somebody'",
    ],
)
def test_nothing_that_a_request_is_bound_to_changes(world: World, change: str) -> None:
    request = world.ask()
    assert "is frozen" in refused(f"UPDATE outlast_approval_request SET {change} WHERE id = %s", request.pk)


def test_an_answer_is_written_once(world: World) -> None:
    request = world.ask()
    world.decide(request)
    assert "is frozen" in refused("UPDATE outlast_approval_request SET answered_at = now() WHERE id = %s", request.pk)
    world.worker.run()
    assert "is frozen" in refused("UPDATE outlast_approval_request SET used_by = 99 WHERE id = %s", request.pk)


@pytest.mark.parametrize(
    ("status", "extra"),
    [
        ("approved", ""),
        ("denied", ", answer = 'approved', answered_at = now()"),
        ("cancelled", ", answer = 'approved', answered_at = now()"),
        ("nonsense", ""),
    ],
)
def test_impossible_combinations_are_refused(world: World, status: str, extra: str) -> None:
    request = world.ask()
    refused(f"UPDATE outlast_approval_request SET status = %s{extra} WHERE id = %s", status, request.pk)


def test_one_open_request_a_node_and_wait(world: World) -> None:
    request = world.ask()
    request.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        request.save(force_insert=True)


@pytest.mark.req("A4")
def test_what_people_said_is_append_only(world: World) -> None:
    request = world.ask()
    world.decide(request, comment="Go on.")
    for statement in (
        "UPDATE outlast_review SET comment = 'Stop.'",
        "UPDATE outlast_review SET refused = 'X'",
        "UPDATE outlast_review SET values = '{}'",
        "DELETE FROM outlast_review",
        "DELETE FROM outlast_approval_request",
    ):
        assert "append-only" in refused(statement), statement
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL outlast.retention = 'on'")
        cursor.execute("DELETE FROM outlast_review")
        cursor.execute("DELETE FROM outlast_approval_notice")
        cursor.execute("DELETE FROM outlast_approval_request")
    assert not Request.objects.exists()


def test_people_may_be_deleted_and_their_names_stay(world: World) -> None:
    request = world.ask()
    world.decide(request)
    get_user_model().objects.get(pk=world.rita.pk).delete()
    get_user_model().objects.get(pk=world.robin.pk).delete()
    row, review = Request.objects.get(pk=request.pk), Review.objects.get()
    assert (row.requester, row.requester_label, review.by, review.by_label) == (None, "robin", None, "rita")
    refused("UPDATE outlast_review SET by_id = %s", world.ron.pk)
    refused("UPDATE outlast_approval_request SET requester_id = %s", world.ron.pk)
