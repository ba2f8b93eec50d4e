"""`by=` is a stored user or None, in every verb: a name is kept nowhere as if it were a person, for then nobody keeps to four eyes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group
from django.utils.functional import SimpleLazyObject

import flows
from approvals import api as approvals_api
from flows import api, budgets, commitments, policies, releases
from flows.core.misuse import NotAUser, UsageError
from flows.models import Intent, Policy, Release, Workflow
from flows.services import competence, resolve
from tests.factories import Line, person, row

pytestmark = pytest.mark.req("F3")

#: Every verb that takes `by=`, with arguments that would do but for that one.
GIVEN: dict[Any, dict[str, Any]] = {
    api.start: {"flow": Line, "input": {}},
    api.start_many: {"flow": Line, "runs": [(None, {})]},
    api.cancel: {"workflow": uuid4()},
    api.cancel_intent: {"intent": uuid4()},
    api.supersede: {"intent": uuid4(), "goal": "x"},
    api.pause: {"workflow": uuid4()},
    api.resume: {"workflow": uuid4()},
    api.migrate: {"workflow": uuid4()},
    api.redeliver: {"event": 1, "reason": "x"},
    api.hold: {"scope": "all", "reason": "x"},
    api.lift: {"scope": "all", "reason": "x"},
    api.retry_failed: {"workflow": uuid4(), "reason": "x"},
    policies.publish: {"name": "changes", "body": {}},
    policies.adopt: {"workflow": uuid4(), "reason": "x"},
    budgets.limit: {"intent": uuid4(), "model_calls": 1},
    budgets.raise_: {"workflow": uuid4(), "kind": "model_calls", "to": 1, "reason": "x"},
    commitments.fulfil: {"commitment": 1, "reason": "x"},
    commitments.transfer: {"commitment": 1, "to": "x", "reason": "x"},
    commitments.defer: {"commitment": 1, "reason": "x"},
    releases.register: {"name": "R1", "models": {"planner": "m"}},
    releases.make_current: {"name": None, "reason": "x"},
    releases.move: {"workflow": uuid4(), "to": "R1", "reason": "x"},
    competence.open_again: {"flow": "t-line", "node": "first", "reason": "x"},
    resolve.resolve: {"operation": "x", "verdict": "happened", "reason": "x"},
    approvals_api.decide: {"request": 1, "verdict": "approve", "digest": "x"},
    approvals_api.answer: {"request": 1, "values": {}, "digest": "x"},
    approvals_api.revoke: {"request": 1, "reason": "x"},
    approvals_api.assign: {"request": 1, "to": None},
    approvals_api.delegate: {"giver": None, "to": None, "until": None, "reason": "x"},
    approvals_api.end_delegation: {"delegation": 1},
}

MODULES: tuple[ModuleType, ...] = (api, approvals_api, policies, budgets, commitments, releases, competence, resolve)


def nobody() -> Iterator[Any]:
    """What is no stored user: a name, a key, a user that was never saved or is deleted, nobody, and a row of something else."""
    yield from ("rita", 1, get_user_model()(username="z"), get_user_model()(pk=1), AnonymousUser())
    yield SimpleLazyObject(AnonymousUser)
    yield Group.objects.create(pk=person("rita").pk, name="editors")
    gone = person("gone")
    gone.delete()
    yield gone


def refused(call: Callable[..., Any], given: Mapping[str, Any], by: Any) -> str:
    with pytest.raises(UsageError) as caught:
        call(**given, by=by)
    assert caught.value.code in ("NOT_A_USER", "NOBODY_RAISES", "NOBODY_RESOLVES", "NOBODY_ANSWERS", "BAD_DELEGATION")
    return str(caught.value)


def test_every_verb_with_by_is_here() -> None:
    found = {
        call
        for module in MODULES
        for name, call in vars(module).items()
        if inspect.isfunction(call) and not name.startswith("_") and "by" in inspect.signature(call).parameters
    }
    assert {call for call in found if not inspect.iscoroutinefunction(call)} == set(GIVEN)


@pytest.mark.parametrize("call", GIVEN, ids=lambda call: call.__name__)
def test_who_is_no_stored_user_is_refused_before_anything_else(call: Any) -> None:
    for by in nobody():
        assert "pass by=user" in (said := refused(call, GIVEN[call], by)) or "Pass a user of this project (auth.User)" in said
    assert not any(model.objects.exists() for model in (Workflow, Intent, Policy, Release))


@pytest.mark.parametrize("call", [api.astart, api.acancel, api.asupersede, releases.aregister, releases.amove])
def test_so_do_the_async_twins(call: Any) -> None:
    with pytest.raises(NotAUser):
        async_to_sync(call)(**GIVEN[inspect.unwrap(call.func if hasattr(call, "func") else call)], by="rita")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("rita", r"by= is 'rita', which is no user but of the type str\. Pass a user of this project \(auth\.User\)"),
        (AnonymousUser(), r"which means that nobody is logged in\. .* or by=None for work that no person answers for"),
        (get_user_model()(username="z"), r"a user that is not stored \(not saved yet, or deleted\)"),
    ],
    ids=str,
)
def test_the_message_says_what_it_is_and_the_way_out(by: Any, said: str) -> None:
    with pytest.raises(NotAUser, match=said):
        Line.start({}, by=by)


def test_a_user_and_the_user_of_a_request_and_nobody_are_taken() -> None:
    rita = person("rita")
    runs = [Line.start({}, by=by) for by in (rita, SimpleLazyObject(lambda: rita), None)]
    assert [(row(run).user_id, row(run).user_label) for run in runs] == [(rita.pk, "rita"), (rita.pk, "rita"), (None, "")]
    assert flows.cancel(runs[2], by=rita)
