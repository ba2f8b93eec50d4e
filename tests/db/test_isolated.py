"""Runs that a schedule or an event begins: for a user who is named in code, there and active; else nothing is begun (D4)."""

from __future__ import annotations

from typing import Any

import pytest

from flows import errors
from flows.models import Workflow
from flows.services.isolated import start_isolated
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Line, row, status

pytestmark = pytest.mark.req("D4")


def begin(user: Any, **more: Any) -> Any:
    return start_isolated(Line, {"n": 1}, **{"key": "event:7", "user": user, "cause": "event:7", **more})


def test_it_is_for_the_named_user_and_says_what_began_it(worker: LocalWorker) -> None:
    ann = factories.person("ann")
    made = begin("ann", tenant="acme", priority=2)
    found = row(made)
    assert (found.user_id, found.user_label, found.started_by, found.tenant, found.priority) == (
        ann.pk,
        "ann",
        "event:7",
        "acme",
        2,
    )
    worker.run()
    assert status(made)[0] == "complete"


def test_again_it_is_the_same_run(worker: LocalWorker) -> None:
    factories.person("ann")
    first, again = begin("ann"), begin("ann")
    assert (first.created, again.created, again.id) == (True, False, first.id)
    with pytest.raises(errors.KeyConflict):
        start_isolated(Line, {"n": 2}, key="event:7", user="ann", cause="event:7")


def test_a_user_is_read_anew() -> None:
    ann = factories.person("ann")
    type(ann).objects.filter(pk=ann.pk).update(is_active=False)
    assert ann.is_active
    with pytest.raises(errors.NobodyAccountable, match="user ann, who is not active"):
        begin(ann)
    type(ann).objects.filter(pk=ann.pk).delete()
    with pytest.raises(errors.NobodyAccountable, match="user ann, who does not exist"):
        begin(ann)


@pytest.mark.parametrize("user", ["nobody", "", None, 7])
def test_without_somebody_to_answer_for_it_nothing_is_begun(user: Any) -> None:
    with pytest.raises(errors.NobodyAccountable) as refused:
        begin(user)
    assert refused.value.code == "NOBODY_ACCOUNTABLE"
    assert not Workflow.objects.exists()


def test_a_cause_that_cannot_be_kept_is_refused() -> None:
    factories.person("ann")
    with pytest.raises(errors.PayloadError):
        begin("ann", cause="")
