"""The tutorial as a newcomer follows it: its flows are started by its views, answered by its reviewer, and run to their end."""

from __future__ import annotations

import json
import unittest
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

import flows
from approvals.api import decide
from approvals.models import Request
from flows.management import words
from flows.models import Workflow
from flows.testing import LocalWorker
from tasks.testing import kit
from tests.docs.test_code_blocks import APPROVALS, OPERATE, TESTING, TUTORIAL, blocks, tutorial
from tests.factories import offer


@pytest.fixture
def written(worker: LocalWorker) -> Iterator[dict[str, Any]]:
    """What the tutorial's blocks define; the worker offers its flows."""
    with tutorial() as names:
        offer(worker)
        yield names


@pytest.fixture
def robin(transactional_db: None) -> Any:
    return get_user_model().objects.create_user("robin")


@pytest.fixture
def rita(transactional_db: None) -> Iterator[Any]:
    """A plain user, made a reviewer by the lines of the how-to."""
    get_user_model().objects.create_user("rita")
    (lines,) = (block for block in blocks(APPROVALS) if "Group.objects" in block)
    exec(lines, {})  # our own documentation
    yield get_user_model().objects.get(username="rita")
    for group in Group.objects.all():
        group.permissions.clear()


def asked(**attributes: Any) -> Any:
    """Stands for Django's request."""
    return SimpleNamespace(**attributes)


def answered(response: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(response.content)
    return found


def test_the_first_flow_waits_for_its_payment_and_ends(written: dict[str, Any], worker: LocalWorker, robin: Any) -> None:
    first, again = (answered(written["place_order"](asked(user=robin), 4711)) for _ in range(2))
    assert first == again
    worker.run()
    run = Workflow.objects.get(pk=first["workflow"])
    assert (run.status, run.node) == ("waiting", "paid")

    event = json.dumps({"id": "evt-1", "order": 4711, "amount": "12.00"})
    assert [answered(written["payment_reported"](asked(body=event)))["received"] for _ in range(2)] == ["accepted", "already"]
    worker.run()
    run.refresh_from_db()
    assert (run.status, run.node) == ("complete", "done")


def test_the_second_flow_asks_a_person_and_pays_what_was_approved(
    written: dict[str, Any], worker: LocalWorker, robin: Any, rita: Any, client: Any
) -> None:
    made = answered(written["ask_for_refund"](asked(user=robin), 4711))
    worker.run()
    run = Workflow.objects.get(pk=made["workflow"])
    assert (run.status, run.node) == ("waiting", "ask")

    client.force_login(rita)
    assert "Refund order 4711" in client.get("/admin/outlast_approvals/request/").content.decode()
    first = Request.objects.get(workflow_id=run.pk)
    assert decide(first, verdict="changes", digest=first.digest, by=rita, comment="10.00 is enough.")
    worker.run()

    second = Request.objects.filter(workflow_id=run.pk).latest("id")
    assert second.candidate["value"] == {"order": 4711, "amount": "10.00"}
    assert second.evidence["feedback"] == "10.00 is enough."
    assert decide(second, verdict="approve", digest=first.digest, by=rita).code == "STALE_CANDIDATE"
    assert decide(second, verdict="approve", digest=second.digest, by=robin).code == "NOT_PERMITTED"
    assert decide(second, verdict="approve", digest=second.digest, by=rita)
    worker.run()

    run.refresh_from_db()
    second.refresh_from_db()
    assert (run.status, run.node, second.status) == ("complete", "done", "consumed")
    assert flows.describe(run).timeline[-1]["to_status"] == "complete"


def test_the_page_shows_a_waiting_run_as_the_command_does(written: dict[str, Any], worker: LocalWorker, robin: Any) -> None:
    """Every line but those with an id or a time in them."""
    made = answered(written["ask_for_refund"](asked(user=robin), 4711))
    worker.run()
    printed = words.description(flows.describe(made["workflow"])).split("\n\n")[0]
    page = TUTORIAL.read_text()
    for line in printed.splitlines():
        if not line.startswith(("Workflow", "State", "Why", "Waiting for")):
            assert line in page


def test_the_test_that_the_how_to_shows_passes(written: dict[str, Any], worker: LocalWorker) -> None:
    worker.stop()
    (lines,) = (block for block in blocks(OPERATE) if "local_worker" in block)
    names: dict[str, Any] = {}
    exec(lines, names)  # our own documentation
    names["test_shipping_asks_a_person_after_three_days"]()
    run = Workflow.objects.get()
    assert (run.status, run.outcome, run.error_code) == ("waiting", "HUMAN_REQUIRED", "WAIT_EXPIRED")


def test_the_tests_of_the_page_about_testing_pass(written: dict[str, Any], worker: LocalWorker) -> None:
    """Those with workers of their own in processes aside: there are none here."""
    worker.stop()
    first, _, without_pytest = blocks(TESTING)
    names: dict[str, Any] = {"__name__": "yourapp.tests"}
    exec(first, names)  # our own documentation
    shown = [name for name in names if name.startswith("test_")]
    assert len(shown) == 4
    for name in shown:
        with kit() as outlast:
            names[name](outlast)
    exec(without_pytest, names)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(names["ShippingTests"]).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
