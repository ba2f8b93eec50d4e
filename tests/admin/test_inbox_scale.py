"""The inbox with ten thousand questions that wait and four hundred thousand that were answered: few queries, each by an index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse

from tests.support import crowd
from tests.support import record as records
from tests.support.approving import make_people

pytestmark = [pytest.mark.req("F7"), pytest.mark.serial]

#: Written once; `sound` and `transactional_db` leave it alone.
KEEPS_RECORD = True

LIST = "admin:outlast_approvals_request_changelist"
#: So many rows at most are looked at by any part of a plan: what is pending, and what a capped count reads.
ROWS = 25_000


@pytest.fixture(scope="module")
def people(quick_commits: None, django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    quiet = override_settings(
        OUTLAST={"DISPATCHER": records.COUNTING}, PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]
    )
    with django_db_blocker.unblock(), quiet:
        made = make_people()
        crowd.write(requester=made["robin"].pk, reviewers=[made["rita"].pk, made["ron"].pk])
        yield made
        records.wipe(large=True)


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def look(client: Client, url: str) -> list[str]:
    """The statements of a page; the first look warms what is looked up once for a process."""
    client.get(url)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


def plan_of(statement: str) -> dict[str, Any]:
    """The plan as it was executed."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        found = cursor.fetchone()[0]
    top: dict[str, Any] = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
    return top


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from nodes(inner)


def looked_at(node: dict[str, Any]) -> float:
    return float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("", 7),
        ("?queue=pending", 7),
        ("?queue=claimed", 7),
        ("?queue=answered", 7),
        ("?queue=all", 7),
        ("?p=20", 7),
        ("?_facets=True", 15),
    ],
)
def test_a_page_asks_little_and_never_reads_the_whole_past(people: dict[str, Any], query: str, most: int) -> None:
    client, url = client_of(people["rita"]), reverse(LIST) + query
    statements = look(client, url)
    assert len(statements) <= most, "\n".join(statements)
    indexes = set()
    for statement in statements:
        if statement.startswith(("SELECT", "(SELECT")):
            for node in nodes(plan_of(statement)):
                assert looked_at(node) <= ROWS, statement
                indexes.add(node.get("Index Name"))
    assert "outlast_approval_request_inbox" in indexes


def test_the_count_on_the_index_is_bounded(people: dict[str, Any]) -> None:
    client = client_of(people["rita"])
    statements = look(client, reverse("admin:app_list", args=["outlast_approvals"]))
    assert (
        b"100 or more approval requests wait for you."
        in client.get(reverse("admin:app_list", args=["outlast_approvals"])).content
    )
    assert len(statements) < 8, "\n".join(statements)
