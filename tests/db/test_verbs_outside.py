"""Whatever a verb of the outside world is called with, it works or says what is wrong: no error of Python or of the database comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, ESCALATE, Deadline, Dependency, End, Wait, calendars, dependencies, schedules
from flows.core import declared as declarations
from flows.core.misuse import NotPermitted
from flows.errors import OutlastError
from flows.services import latency
from flows.services.webhooks import mapping
from flows.testing import LocalWorker
from tests.db.test_verbs_input import JUNK
from tests.support.scheduling import made

MORE = [*JUNK, 2**63, -(2**70), float("inf"), {"a": "\x00"}, ["\ud800"], ("x",), {1: 2}]


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("payments")
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def ann(transactional_db: None) -> Any:
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label__startswith="outlast"))
    return user


def test_what_a_verb_is_called_with(declare: Callable[..., type[flows.Flow]], worker: LocalWorker, ann: Any) -> None:
    hour = Deadline(hours=1, then=ESCALATE)
    flow = declare("t-called", ask=Wait("t.asked", key="k", deadline=hour, then="done"), done=End(COMPLETE))
    made(flow, "s")
    run = flow.start({})
    worker.run()
    flows.signal("e", "t.other", key="k")
    said: dict[str, Any] = {"by": ann, "reason": "x"}
    verbs: dict[str, Callable[[Any], object]] = {
        "signal id": lambda v: flows.signal(v, "t", key="k"),
        "signal type": lambda v: flows.signal("a", v, key="k"),
        "signal key": lambda v: flows.signal("b", "t", key=v),
        "signal payload": lambda v: flows.signal("c", "t", key="k", payload=v),
        "signal about": lambda v: flows.signal("d", "t", key="k", about=v),
        "signal position": lambda v: flows.signal("f", "t", key="k", position=v),
        "about run": lambda v: flows.signal("g", "t", key="k", about=flows.About(v)),
        "about wait": lambda v: flows.signal("h", "t", key="k", about=flows.About(wait=v)),
        "about epoch": lambda v: flows.signal("i", "t", key="k", about=flows.About(run.id, epoch=v)),
        "about intent": lambda v: flows.signal("j", "t", key="k", about=flows.About(run.id, intent=v)),
        "redeliver": lambda v: flows.redeliver(v, **said),
        "redeliver to": lambda v: flows.redeliver("e", to=v, **said),
        "redeliver by": lambda v: flows.redeliver("e", by=v, reason="x"),
        "redeliver reason": lambda v: flows.redeliver("e", by=ann, reason=v),
        "children": flows.children,
        "children after": lambda v: flows.children(run, after=v),
        "children limit": lambda v: flows.children(run, limit=v),
        "retry failed": lambda v: flows.api.retry_failed(v, **said),
        "retry by": lambda v: flows.api.retry_failed(run, by=v, reason="x"),
        "retry reason": lambda v: flows.api.retry_failed(run, by=ann, reason=v),
        "report": lambda v: dependencies.report(v, ok=True),
        "report code": lambda v: dependencies.report("payments", ok=False, code=v),
        "down": lambda v: dependencies.down(v, **said),
        "down by": lambda v: dependencies.down("payments", by=v, reason="x"),
        "down reason": lambda v: dependencies.down("payments", by=ann, reason=v),
        "up": lambda v: dependencies.up(v, **said),
        "rate": lambda v: dependencies.set_rate("payments", rate=v, **said),
        "ceiling": lambda v: dependencies.set_rate("payments", ceiling=v, **said) if v != 5 else None,
        "show": dependencies.show,
        "publish": lambda v: calendars.publish(v, {"zone": "UTC", "week": {}}),
        "publish body": lambda v: calendars.publish("c", v),
        "publish after": lambda v: calendars.publish("d", {"zone": "UTC", "week": {"mon": ["09:00-17:00"]}}, after=v),
        "create": lambda v: schedules.create(v, flow, cron="* * * * *", **said),
        "create flow": lambda v: schedules.create("n1", v, cron="* * * * *", **said),
        "create cron": lambda v: schedules.create("n2", flow, cron=v, **said),
        "create every": lambda v: schedules.create("n3", flow, every=v, **said),
        "create input": lambda v: schedules.create("n4", flow, cron="* * * * *", input=v, **said),
        "create zone": lambda v: schedules.create("n5", flow, cron="* * * * *", zone=v, **said),
        "create calendar": lambda v: schedules.create("n6", flow, cron="* * * * *", calendar=v, **said),
        "create tenant": lambda v: schedules.create("n7", flow, cron="* * * * *", tenant=v, **said),
        "create priority": lambda v: schedules.create("n8", flow, cron="* * * * *", priority=v, **said),
        "create cap": lambda v: schedules.create("n9", flow, cron="* * * * *", cap=v, **said),
        "create user": lambda v: schedules.create("n0", flow, cron="* * * * *", user=v, **said),
        "change": lambda v: schedules.change(v, seen=1, **said),
        "change seen": lambda v: schedules.change("s", seen=v, priority=1, **said),
        "pause": lambda v: schedules.pause(v, **said),
        "resume": lambda v: schedules.resume(v, **said),
        "run now": lambda v: schedules.run_now(v, **said),
        "run by": lambda v: schedules.run_now("s", by=v, reason="x"),
        "backfill since": lambda v: schedules.backfill("s", since=v, until=v, **said),
        "next": schedules.next,
        "next count": lambda v: schedules.next("s", v),
        "map": lambda v: mapping.map_anew(v, **said),
        "map by": lambda v: mapping.map_anew(1, by=v, reason="x"),
        "latency flow": lambda v: latency.wake_ups(flow=v),
        "latency days": lambda v: latency.wake_ups(days=v),
        "start intent": lambda v: flow.start({}, intent=v),
        "start priority": lambda v: flow.start({}, priority=v),
    }
    raised = []
    for name, verb in verbs.items():
        for value in MORE:
            try:
                verb(value)
            except OutlastError:
                continue
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                raised.append(f"{name}: {value!r:.20}: {type(error).__name__}: {error}"[:150])
    assert raised == [], "\n".join(raised)


def test_what_somebody_may_is_looked_up_anew(transactional_db: None, ann: Any) -> None:
    """The object of the user is an hour old, with its rights in it; meanwhile they have lost them, or their account."""
    assert ann.has_perm("outlast_flows.operate_dependency")
    dependencies.down("payments", by=ann, reason="x")
    get_user_model().objects.filter(pk=ann.pk).update(is_active=False)
    for verb in (dependencies.up, dependencies.down, dependencies.set_rate):
        with pytest.raises(NotPermitted):
            verb("payments", by=ann, reason="x")
