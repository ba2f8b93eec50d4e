"""One rule for every decision of a person: it has a reason, and whoever is named for it has the right, now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission

from flows import COMPLETE, Activity, End, budgets, commitments, policies, releases
from flows.errors import NotAUser, NotPermitted, ReasonMissing
from flows.models import Competence, CompetenceOpening, CurrentRelease, Policy
from flows.services.competence import open_again
from flows.services.resolve import resolve
from flows.store import gate
from flows.testing import LocalWorker
from tests import factories
from tests.support import doubting
from tests.support.doubting import in_doubt

pytestmark = pytest.mark.req("H1", "L1")


@pytest.fixture
def cat(transactional_db: None) -> Any:
    """She may nothing."""
    return get_user_model().objects.create_user("cat")


def permit(user: Any, codename: str) -> Any:
    """The same user, as a process that has just read them sees them: with one more right."""
    user.user_permissions.add(Permission.objects.get(codename=codename))
    return get_user_model().objects.get(pk=user.pk)


def close_envelope() -> None:
    for _ in range(2):
        gate.burn("t-warranted", "propose", "", 1, "default")


#: Who decides, why → the decision; and the permission that it needs.
DECISIONS: dict[str, tuple[Callable[[Any, str], Any], str]] = {
    "publish": (lambda by, reason: policies.publish("p", {"n": 1}, note=reason, by=by), "publish_policy"),
    "open": (lambda by, reason: open_again("t-warranted", "propose", reason=reason, by=by), "open_competence"),
    "make current": (lambda by, reason: releases.make_current("R1", reason=reason, by=by), "manage_release"),
}


@pytest.fixture
def ready(transactional_db: None) -> None:
    close_envelope()
    releases.register("R1", models={"planner": "m-1"})


def nothing_happened() -> bool:
    closed = Competence.objects.get().closed_at is not None
    return closed and not Policy.objects.exists() and not CurrentRelease.objects.exists()


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("reason", ["", " \n", None])
def test_nobody_decides_without_a_reason(ready: None, cat: Any, name: str, reason: Any) -> None:
    decide, permission = DECISIONS[name]
    with pytest.raises(ReasonMissing, match="must not be empty") as caught:
        decide(permit(cat, permission), reason)
    assert caught.value.code == "REASON_MISSING"
    assert nothing_happened()


@pytest.mark.parametrize("name", DECISIONS)
def test_nobody_decides_without_the_right_to(ready: None, cat: Any, name: str) -> None:
    decide, permission = DECISIONS[name]
    with pytest.raises(NotPermitted, match=f"outlast_flows.{permission}") as caught:
        decide(cat, "because")
    assert (caught.value.code, nothing_happened()) == ("NOT_PERMITTED", True)
    permit(cat, permission)
    get_user_model().objects.filter(pk=cat.pk).update(is_active=False)
    with pytest.raises(NotPermitted):
        decide(cat, "because")
    get_user_model().objects.filter(pk=cat.pk).update(is_active=True)
    assert decide(cat, "because"), "rights are looked up anew"


def test_who_is_gone_or_was_never_saved_has_no_right(ready: None, cat: Any) -> None:
    permit(cat, "open_competence")
    gone = get_user_model().objects.get(pk=cat.pk)
    cat.delete()
    for nobody in (gone, get_user_model()(username="new", is_superuser=True), AnonymousUser(), "cat"):
        with pytest.raises(NotPermitted if nobody is gone else NotAUser):
            open_again("t-warranted", "propose", reason="x", by=nobody)
    assert nothing_happened()


def test_code_that_decides_for_itself_is_trusted(ready: None) -> None:
    assert policies.publish("p", {"n": 1}).created, "the reason of a deployment is in its commit"
    assert open_again("t-warranted", "propose", reason="the nightly evaluation passed")
    assert releases.make_current("R1", by=None, reason="rolled out")
    with pytest.raises(ReasonMissing):
        releases.make_current("R1", by=None, reason=" ")


def test_a_run_is_bound_to_another_policy_by_somebody_who_may_and_says_why(worker: LocalWorker, declare: Any, cat: Any) -> None:
    policies.publish("p", {"n": 1})
    flow = declare("t-bound", meta={"policy": "p"}, one=Activity(factories.work, then="done"), done=End(COMPLETE))
    run = flow.start({})
    policies.publish("p", {"n": 2})
    with pytest.raises(ReasonMissing, match="Say why the run is bound to another version of its policy"):
        policies.adopt(run, reason=" ")
    with pytest.raises(NotPermitted, match="publish_policy"):
        policies.adopt(run, reason="x", by=cat)
    assert factories.row(run).policy_version == "p@1"
    assert policies.adopt(run, reason="x", by=permit(cat, "publish_policy"))


def test_the_same_of_runs_that_are_moved(worker: LocalWorker, cat: Any) -> None:
    releases.register("R1", models={"planner": "m-1"})
    run = factories.Line.start({})
    with pytest.raises(NotPermitted, match="manage_release"):
        releases.move(run, to="R1", by=cat, reason="x")
    assert releases.move(run, to="R1", by=permit(cat, "manage_release"), reason="x")


def test_the_same_of_budgets_and_operations(worker: LocalWorker, cat: Any) -> None:
    operation = in_doubt(worker)
    run = operation.workflow_id
    with pytest.raises(ReasonMissing, match="Say how you know what became of it"):
        resolve(operation, verdict="happened", by=permit(cat, "resolve_operation"), reason=" ")
    with pytest.raises(NotPermitted, match="raise_budget"):
        budgets.limit(run, model_calls=3, by=cat, reason="x")
    permit(cat, "raise_budget")
    for decide in (
        lambda: budgets.limit(run, model_calls=3, by=cat),
        lambda: budgets.raise_(intent=run, kind="model_calls", to=9, by=cat, reason="\t"),
    ):
        with pytest.raises(ReasonMissing):
            decide()
    assert budgets.of(intent=run) == []
    doubting.forget()


def test_a_commitment_is_ended_for_a_reason(transactional_db: None) -> None:
    for end in (commitments.fulfil, commitments.defer, lambda one, **said: commitments.transfer(one, to="x", **said)):
        with pytest.raises(ReasonMissing, match="Say why the commitment ends"):
            end(77, by=None, reason=" ")


def test_each_opening_of_an_envelope_is_kept_for_good(transactional_db: None, cat: Any) -> None:
    permit(cat, "open_competence")
    for reason in ("prompt mended", "another look"):
        close_envelope()
        assert open_again("t-warranted", "propose", reason=reason, by=cat)
        assert not open_again("t-warranted", "propose", reason="twice", by=cat)
    rows = CompetenceOpening.objects.order_by("pk")
    assert [(row.flow_name, row.node, row.release, row.burned, row.allowed, row.reason, row.by_label) for row in rows] == [
        ("t-warranted", "propose", "", 2, 1, "prompt mended", "cat"),
        ("t-warranted", "propose", "", 2, 1, "another look", "cat"),
    ]
    assert all(row.closed_at < row.at for row in rows)
    from django.db import DatabaseError, transaction

    for change in (lambda: rows.update(reason="better"), lambda: rows.all().delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()
    cat.delete()
    assert {(row.by, row.by_label) for row in rows.all()} == {(None, "cat")}
