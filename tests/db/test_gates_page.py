"""The example of docs/how-to/gates.md does what the page says of it: the same approval, and one window, though main moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from approvals.api import decide
from approvals.models import Request
from flows import checks
from flows.core import payload
from flows.errors import VerificationFailed
from flows.models import Activity, Commitment, Verdict, Workflow
from flows.testing import LocalWorker, local_worker
from tests.docs.test_code_blocks import GATES, written_in
from tests.factories import offer, row


@pytest.fixture
def eu(transactional_db: None) -> Iterator[LocalWorker]:
    with local_worker(placements=["eu"]) as made:
        yield made


@pytest.fixture
def page(eu: LocalWorker) -> Iterator[dict[str, Any]]:
    """What the page's blocks define and publish; the worker offers it."""
    with written_in(GATES) as names:
        offer(eu)
        yield names


@pytest.fixture
def robin(transactional_db: None) -> Iterator[Any]:
    """Accountable, and allowed to merge."""
    kind, _ = ContentType.objects.get_or_create(app_label="repo", model="change")
    may, _ = Permission.objects.get_or_create(codename="merge_change", content_type=kind, defaults={"name": "may merge"})
    made = get_user_model().objects.create_user("robin")
    made.user_permissions.add(may)
    yield made
    made.user_permissions.clear()
    may.delete()
    kind.delete()


@pytest.fixture
def rita(transactional_db: None) -> Iterator[Any]:
    made = get_user_model().objects.create_user("rita")
    made.groups.add(Group.objects.get_or_create(name="release-manager")[0])
    made.user_permissions.add(Permission.objects.get(codename="answer_request"))
    yield made
    made.user_permissions.clear()


def approve(run: Any, by: Any) -> Request:
    request = Request.objects.filter(workflow_id=run.id).latest("id")
    assert decide(request, verdict="approve", digest=request.digest, by=by)
    return request


def entered(run: Any) -> list[str]:
    return list(Activity.objects.filter(workflow_id=run.id).order_by("seq").values_list("node", flat=True))


def instead(monkeypatch: pytest.MonkeyPatch, page: dict[str, Any], do: Any) -> None:
    """Another function for the node `test`."""
    monkeypatch.setitem(vars(page["ChangeMain"].definition.nodes["test"]), "do", do)


def test_the_flow_of_the_page_passes_the_checks(page: dict[str, Any]) -> None:
    assert checks.check_flows(None) == []


@pytest.mark.req("H1", "H2")
def test_main_moves_and_the_same_approval_and_the_same_window_count(
    page: dict[str, Any], eu: LocalWorker, robin: Any, rita: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moving(attempt: Any) -> Any:
        page["FORGE"]["main"] = "77aa01"
        return page["run_tests"](attempt)

    instead(monkeypatch, page, moving)
    run = page["ChangeMain"].start({}, by=robin)
    eu.run()
    assert row(run).node == "ask"
    request = approve(run, rita)
    eu.run()

    assert (row(run).status, row(run).node) == ("complete", "done")
    assert entered(run) == ["reserve", "propose", "test", "merge", "test", "merge"]
    refused = Verdict.objects.filter(workflow_id=run.id).exclude(verdict="ALLOWED")
    assert [(one.node, one.verdict) for one in refused] == [("merge", "REVALIDATION_REQUIRED")]
    (asked,) = Request.objects.filter(workflow_id=run.id)
    assert (asked.pk, asked.status) == (request.pk, "consumed")
    (window,) = Commitment.objects.filter(workflow_id=run.id)
    assert (window.name, window.reference, window.status) == ("window", "w-1", "fulfilled")
    merged = Activity.objects.filter(workflow_id=run.id, node="merge").latest("seq")
    assert payload.decode(merged.result) == {"merged": request.digest, "onto": "77aa01"}


def test_where_the_tests_fail_another_change_is_proposed_and_asked_about(
    page: dict[str, Any], eu: LocalWorker, robin: Any, rita: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_once(attempt: Any) -> dict[str, Any]:
        if attempt.visit == 1:
            raise VerificationFailed("two tests failed")
        return {"passed": 212}

    instead(monkeypatch, page, failing_once)
    run = page["ChangeMain"].start({}, by=robin)
    eu.run()
    approve(run, rita)
    eu.run()
    assert row(run).node == "ask"
    approve(run, rita)
    eu.run()
    assert Workflow.objects.get(pk=run.id).status == "complete"
    assert entered(run) == ["reserve", "propose", "test", "propose", "test", "merge"]
    assert list(Request.objects.filter(workflow_id=run.id).order_by("id").values_list("status", flat=True)) == [
        "invalidated",
        "consumed",
    ]
    assert [one.status for one in Commitment.objects.filter(workflow_id=run.id)] == ["fulfilled"]
