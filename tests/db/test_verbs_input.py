"""Whatever a verb is called with, it works or says what is wrong: no error of Python or of the database comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Budget,
    Candidate,
    Deadline,
    Decision,
    End,
    Fact,
    Flow,
    Untrusted,
    Wait,
    budgets,
    policies,
    releases,
)
from flows.errors import OutlastError, PayloadError
from flows.models import Policy
from flows.services import competence
from flows.testing import LocalWorker
from tests import factories
from tests.support.versions import version

Declare = Callable[..., type[Flow]]

JUNK = [None, "", "x", "\x00", "\ud800", 5, -1, 0, True, float("nan"), 10**30, 10**300, b"x", [], {}, object(), "x" * 5000]
HOUR = Deadline(hours=1, then=ESCALATE)


@pytest.fixture
def ann(transactional_db: None) -> Any:
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label__startswith="outlast"))
    return user


def test_what_a_verb_is_called_with(declare: Declare, worker: LocalWorker, ann: Any) -> None:
    nodes = {"ask": Wait("t.asked", key="k", deadline=HOUR, then="done"), "done": End(COMPLETE)}
    policies.publish("p", {"a": 1})
    run = version(declare, "t-called", 1, nodes, budget=Budget(model_calls=3), policy="p").start({})
    worker.run()
    version(declare, "t-called", 2, {**nodes, "extra": Activity(factories.work, then="done")}, migrate_from={1: {}})
    policies.publish("p", {"a": 2})
    releases.register("R1", models={"a": 1})
    said: dict[str, Any] = {"by": ann, "reason": "x"}
    verbs: dict[str, Callable[[Any], object]] = {
        "migrate": lambda v: flows.migrate(v, dry_run=True),
        "migrate to": lambda v: flows.migrate(run, to=v, dry_run=True),
        "migrate reason": lambda v: flows.migrate(run, reason=v, dry_run=True),
        "get": flows.get,
        "describe": flows.describe,
        "resume": flows.resume,
        "resume reason": lambda v: flows.resume(run, reason=v),
        "pause reason": lambda v: flows.pause(run, reason=v),
        "list flow": lambda v: flows.list(flow=v),
        "list status": lambda v: flows.list(status=v),
        "list key": lambda v: flows.list(key=v),
        "list limit": lambda v: flows.list(limit=v),
        "budgets of": budgets.of,
        "budgets of intent": lambda v: budgets.of(intent=v if v is not None else run),
        "limit": lambda v: budgets.limit(v, model_calls=5),
        "limit amount": lambda v: budgets.limit(run, model_calls=v),
        "limit soft": lambda v: budgets.limit(run, model_calls=5, soft=v),
        "limit kept": lambda v: budgets.limit(run, model_calls=5, kept=v),
        "limit kept amount": lambda v: budgets.limit(run, model_calls=5, kept={"model_calls": v}),
        "limit reason": lambda v: budgets.limit(run, model_calls=5, reason=v),
        "limit by": lambda v: budgets.limit(run, model_calls=5, by=v),
        "raise kind": lambda v: budgets.raise_(run, v, by_amount=1, **said),
        "raise by amount": lambda v: budgets.raise_(run, "model_calls", by_amount=v, **said),
        "raise to": lambda v: budgets.raise_(run, "model_calls", to=v, **said),
        "raise by": lambda v: budgets.raise_(run, "model_calls", to=50, by=v, reason="x"),
        "raise reason": lambda v: budgets.raise_(run, "model_calls", to=60, by=ann, reason=v),
        "adopt": lambda v: policies.adopt(v, reason="x"),
        "adopt reason": lambda v: policies.adopt(run, reason=v),
        "publish name": lambda v: policies.publish(v, {}),
        "publish body": lambda v: policies.publish("q", v),
        "publish by": lambda v: policies.publish("q", {}, by=v),
        "publish note": lambda v: policies.publish("q", {}, note=v),
        "publish blocks": lambda v: policies.publish("q", {}, blocks=v),
        "policy": policies.current,
        "register name": lambda v: releases.register(v, models={"a": 1}),
        "register models": lambda v: releases.register("R2", models=v),
        "register a value": lambda v: releases.register("R2", models={"a": v}),
        "register compatible": lambda v: releases.register("R3", models={"a": 1}, compatible_with=v),
        "register compatible with": lambda v: releases.register("R3", models={"a": 1}, compatible_with=[v]),
        "register by": lambda v: releases.register("R4", models={"a": 1}, by=v),
        "make current": lambda v: releases.make_current(v, **said),
        "make current for": lambda v: releases.make_current("R1", flow=v, **said),
        "make current by": lambda v: releases.make_current("R1", by=v, reason="x"),
        "current": releases.current,
        "release": releases.get,
        "move": lambda v: releases.move(v, to="R1", **said),
        "move to": lambda v: releases.move(run, to=v, **said),
        "move by": lambda v: releases.move(run, to="R1", by=v, reason="x"),
        "move source": lambda v: releases.move(run, to="R1", source=v, **said),
        "open flow": lambda v: competence.open_again(v, "ask", reason="x"),
        "open node": lambda v: competence.open_again("t-called", v, reason="x"),
        "open reason": lambda v: competence.open_again("t-called", "ask", reason=v),
    }
    raised = []
    for name, verb in verbs.items():
        for value in JUNK:
            try:
                verb(value)
            except OutlastError:
                continue
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                raised.append(f"{name}: {value!r:.20}: {type(error).__name__}: {error}"[:150])
    assert raised == []


@pytest.mark.parametrize("blocks", [None, "no", 1, 0])
def test_whether_a_policy_blocks_is_said_plainly(transactional_db: None, blocks: Any) -> None:
    with pytest.raises(PayloadError, match="the policy 'n': blocks= is True or False"):
        policies.publish("n", {}, blocks=blocks)
    assert Policy.objects.count() == 0


@pytest.mark.parametrize("name", ["n\x00", "\ud800", None, 5, "none"])
def test_a_policy_that_there_cannot_be(transactional_db: None, name: Any) -> None:
    with pytest.raises(policies.UnknownPolicy, match="There is no policy"):
        policies.current(name)


BOUNDS = [float("nan"), float("inf"), True, "300", 256.5, -1, 0, None, [], {}, b"x"]
WRONG: list[tuple[str, Any]] = [
    *(("max_tokens", value) for value in BOUNDS),
    *(("item_bytes", value) for value in BOUNDS),
    *(("nodes", value) for value in (float("nan"), True, 5, "nothing", b"x", [5], [[1]], object())),
    *(("without", value) for value in (float("nan"), True, 5, "nothing", b"x", [5], [[1]], object(), None)),
    *(("extra", value) for value in (float("nan"), True, 5, "x", b"x", [], {1: 2}, {"": 1}, {"a\x00": 1}, {"a": Fact(object())})),
    *(("extra", {"a": value}) for value in (Untrusted("x", source=5), Untrusted("x\ud800"), Fact("x\x00"))),  # type: ignore[arg-type]
    *(("tokens", value) for value in (True, 5, "x", object())),
    *(("tokens", lambda _text, said=said: said) for said in (float("nan"), float("inf"), -5, "x", None, True)),
]


def test_what_a_context_is_asked_with(declare: Declare, worker: LocalWorker) -> None:
    raised: list[str] = []
    said: list[str] = []
    made: list[Any] = []

    def propose(attempt: Any) -> Candidate:
        for option, value in WRONG:
            try:
                attempt.context(**{"max_tokens": 2000, option: value})
                raised.append(f"{option}={value!r}: taken")
            except PayloadError as error:
                said.append(str(error))
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                raised.append(f"{option}={value!r}: {type(error).__name__}: {error}"[:150])
        made.append(attempt.context(max_tokens=2000, nodes=(name for name in ["one"]), tokens=lambda text: len(text) / 4))
        return Candidate("go", {})

    flow = declare(
        "t-bounded",
        one=Activity(factories.work, then="propose"),
        propose=Decision(propose, choices={"go": "done"}),
        done=End(COMPLETE),
    )
    flow.start({})
    worker.run()
    assert raised == []
    assert all(one.startswith("the context of t-bounded.propose: ") for one in said)
    assert "one" in made[0].text
