"""What people and code do about schedules: made, changed, paused, run now, made up for; and what is declared in code becomes rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from flows import Missed, Overlap, minutes
from flows import Schedule as Declared
from flows import schedules as faces
from flows.core import declared as declarations
from flows.errors import DefinitionError, NotPermitted, PayloadError, ReasonMissing
from flows.models import Occurrence, Schedule, Workflow
from flows.services.schedules import after_migrate, planning, syncing
from flows.testing import Clock, LocalWorker
from tests.factories import person
from tests.support.scheduling import NAME, USING, Declare, made, moments, now, quick, runs, tick, told

pytestmark = pytest.mark.req("M1", "D4")


@pytest.fixture(autouse=True)
def undeclared() -> Iterator[None]:
    """What a test declares is gone after it."""
    before = list(declarations.DECLARED)
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def rita(transactional_db: None) -> Any:
    found = person("rita")
    found.user_permissions.add(Permission.objects.get(codename="manage_schedule"))
    return found


VERBS: dict[str, Any] = {
    "create": lambda **by: faces.create("another", "t-scheduled", every=minutes(1), **by),
    "change": lambda **by: faces.change(NAME, seen=1, cap=3, **by),
    "pause": lambda **by: faces.pause(NAME, **by),
    "resume": lambda **by: faces.resume(NAME, **by),
    "run_now": lambda **by: faces.run_now(NAME, **by),
    "backfill": lambda **by: faces.backfill(NAME, since=now() - minutes(9), until=now() - minutes(5), **by),
}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_user_needs_the_right_and_a_reason(worker: LocalWorker, declare: Declare, rita: Any, verb: str) -> None:
    made(quick(declare), anchor=now() - minutes(20))
    if verb == "resume":
        faces.pause(NAME)
    with pytest.raises(NotPermitted):
        VERBS[verb](by=person("olaf"), reason="because")
    with pytest.raises(ReasonMissing):
        VERBS[verb](by=rita)
    assert VERBS[verb](by=rita, reason="because")


@pytest.mark.parametrize("verb", ["change", "pause", "resume", "run_now", "backfill"])
def test_of_a_schedule_that_is_not_there_they_say_which_there_are(worker: LocalWorker, declare: Declare, verb: str) -> None:
    made(quick(declare), "weekly")
    with pytest.raises(faces.UnknownSchedule, match=r"There is no schedule 'nightly'\. There are weekly\."):
        VERBS[verb]()


def test_whoever_makes_one_is_accountable_and_nobody_else(worker: LocalWorker, clock: Clock, declare: Declare, rita: Any) -> None:
    flow = quick(declare)
    with pytest.raises(DefinitionError, match="only a superuser has runs work for somebody else"):
        faces.create("theirs", flow, every=minutes(1), user="ann", by=rita, reason="r")
    assert faces.create("mine", flow, every=minutes(1), by=rita, reason="r")
    boss = person("boss")
    type(boss).objects.filter(pk=boss.pk).update(is_superuser=True)
    boss.refresh_from_db()
    person("ann")
    assert faces.create("hers", flow, every=minutes(1), user="ann", by=boss, reason="r")
    assert dict(Schedule.objects.values_list("name", "user_label")) == {"mine": "rita", "hers": "ann"}
    faces.change("hers", seen=1, input={"a": 1}, by=rita, reason="r")  # from now on it is hers who changed it
    assert Schedule.objects.values_list("user__username", "user_label").get(name="hers") == ("rita", "rita")


def test_what_cannot_be_read_is_not_stored(worker: LocalWorker, declare: Declare) -> None:
    flow = quick(declare)
    for options, said in (
        ({"cron": "61 * * * *"}, "cannot be read"),
        ({"every": minutes(1), "missed": "some"}, "none of every, newest, skip"),
        ({"every": minutes(1), "zone": "Europe/Wien"}, "no time zone"),
        ({"every": minutes(1), "cap": 0}, "cap=0"),
        ({"every": minutes(1), "input": {"a": float("nan")}}, "not a JSON number"),
        ({"every": minutes(1), "cron": "* * * * *"}, "takes one of cron=, every=, at= and rule="),
        ({"every": minutes(1), "user": "nobody"}, "no user 'nobody'"),
    ):
        with pytest.raises(DefinitionError, match=said):
            faces.create(NAME, flow, **options)
    made(flow)
    with pytest.raises(faces.ScheduleTaken, match="already"):
        faces.create(NAME, flow, every=minutes(1))
    assert declarations.of(Declared) == {}  # what is made while the program runs is not declared in code


def test_a_change_counts_from_now_and_names_the_revision_that_was_seen(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    schedule = made(quick(declare))
    clock.move(seconds=61)
    tick(worker, 2)
    clock.move(seconds=60)
    planning.plan_due(USING)
    found = faces.change(NAME, seen=1, every=minutes(30), anchor=schedule.anchor, input={"b": 2})
    assert (found.revision, found.changed) == (2, True)
    with pytest.raises(faces.ScheduleTaken, match="has revision 2 by now, not 1"):
        faces.change(NAME, seen=1, cap=3)
    changed = Schedule.objects.get()
    assert (changed.expression, changed.next_at) == ("1800", schedule.anchor + minutes(30))
    tick(worker)
    assert told() == [("done", ""), ("started", "")]  # what was planned is started, as it is now
    assert Workflow.objects.order_by("created_at").values_list("input", flat=True).last() == {"b": 2}
    assert Occurrence.objects.order_by("pk").values_list("revision", flat=True).last() == 2
    faces.change(NAME, seen=2, cap=3)  # the moments stay as they are
    assert Schedule.objects.get().next_at == schedule.anchor + minutes(30)
    faces.change(NAME, seen=3, cron="0 4 * * *")
    assert Schedule.objects.values_list("kind", "expression").get() == ("cron", "0 4 * * *")


def test_a_pause_holds_all_and_what_came_in_it_is_skipped(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    schedule = made(quick(declare), jitter=minutes(1), missed=Missed.EVERY)
    clock.move(seconds=61)
    planning.plan_due(USING)
    assert faces.pause(NAME, reason="moving") and not faces.pause(NAME)
    clock.move(minutes=3)
    tick(worker, 2)
    assert told() == [("pending", "")]
    assert faces.resume(NAME) and not faces.resume(NAME)
    tick(worker, 2)
    assert told() == [("done", ""), *[("skipped", "PAUSED")] * 3]
    clock.move(minutes=2)
    tick(worker)
    assert told()[4] != ("skipped", "PAUSED")
    assert schedule.anchor is not None


def test_run_now_is_an_occurrence_of_its_own_also_in_a_pause(
    worker: LocalWorker, clock: Clock, declare: Declare, rita: Any
) -> None:
    made(quick(declare), cooldown=minutes(60), every=minutes(10))
    clock.move(minutes=10, seconds=1)
    tick(worker, 2)
    faces.pause(NAME)
    found = faces.run_now(NAME, by=rita, reason="asked for")
    assert len(found.moments) == 1
    tick(worker, 2)
    assert told() == [("done", ""), ("done", "")]
    assert Occurrence.objects.values_list("origin", "by_label", "reason").last() == ("manual", "rita", "asked for")
    assert {*Workflow.objects.values_list("user_label", flat=True)} == {"ann"}  # for whom it works is not who pressed


def test_backfill_adds_what_is_not_there_and_starts_cap_a_second(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    schedule = made(quick(declare), cap=2, overlap=Overlap.ALLOW, cron="*/10 * * * *")
    end = now()
    since = end - timedelta(hours=1)
    found = faces.backfill(NAME, since=since, until=end)
    assert len(found.moments) == 6
    again = faces.backfill(NAME, since=since, until=end)
    assert (again.changed, again.moments) == (False, ())
    assert moments() == list(found.moments)
    tick(worker)
    assert len(runs()) == 2
    clock.move(seconds=3)
    tick(worker, 2)
    assert runs() == ["complete"] * 6
    assert {*Occurrence.objects.values_list("origin", flat=True)} == {"backfill"}
    assert Schedule.objects.get().planned_until == schedule.planned_until


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (datetime(2026, 1, 1), datetime(2026, 1, 2, tzinfo=UTC), "with a time zone"),  # noqa: DTZ001 - that is the point
        (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), "has a length"),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2226, 1, 1, tzinfo=UTC), "is over by now"),
        (datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), "more than 1,000 moments"),
    ],
)
def test_a_time_that_cannot_be_made_up_for(
    worker: LocalWorker, declare: Declare, since: datetime, until: datetime, said: str
) -> None:
    made(quick(declare), cron="* * * * *")
    with pytest.raises(PayloadError, match=said):
        faces.backfill(NAME, since=since, until=until)
    assert not Occurrence.objects.exists()


# ---------------------------------------------------------------- declared in code


def test_what_is_declared_becomes_a_row_and_the_same_again_is_none(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = quick(declare)
    Declared("daily", flow, every=minutes(5), anchor=now(), user="ann", input={"a": 1})
    assert syncing.sync(USING) == ["daily"]
    assert syncing.sync(USING) == []
    row = Schedule.objects.get()
    assert (row.origin, row.revision, row.user_label, row.user_id) == ("code", 1, "ann", None)
    clock.move(minutes=5, seconds=1)
    tick(worker)
    assert Occurrence.objects.get().tries == 1  # nobody is called ann yet
    person("ann")
    clock.move(seconds=16)
    tick(worker)
    assert Workflow.objects.values_list("user__username", "input").get() == ("ann", {"a": 1})


def test_a_changed_declaration_is_the_next_revision(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow, start = quick(declare), now()
    Declared("daily", flow, every=minutes(5), anchor=start)
    syncing.sync(USING)
    Declared("daily", flow, every=minutes(5), anchor=start, cap=3)
    assert syncing.sync(USING) == ["daily"]
    row = Schedule.objects.get()
    assert (row.revision, row.cap, row.next_at) == (2, 3, start + minutes(5))
    clock.move(minutes=7)
    Declared("daily", flow, every=minutes(6), anchor=start)
    syncing.sync(USING)
    row.refresh_from_db()
    assert (row.revision, row.next_at) == (3, start + minutes(12))


def test_what_is_not_declared_any_more_is_paused_at_migrate_only(worker: LocalWorker, declare: Declare) -> None:
    flow, start = quick(declare), now()
    one = Declared("daily", flow, every=minutes(5), anchor=start)
    after_migrate(using=USING)
    declarations.DECLARED.remove(one)
    assert syncing.sync(USING) == []
    assert Schedule.objects.get().paused_at is None
    after_migrate(using=USING)
    assert Schedule.objects.values_list("paused_by", "reason").get() == ("code", "no longer declared")
    Declared("daily", flow, every=minutes(5), anchor=start)
    assert syncing.sync(USING) == ["daily"]
    assert Schedule.objects.get().paused_at is None
    faces.pause("daily", reason="by hand")
    assert syncing.sync(USING) == []
    assert Schedule.objects.get().paused_at is not None


def test_a_schedule_of_the_record_stays_and_one_of_code_is_changed_there(worker: LocalWorker, declare: Declare) -> None:
    flow = quick(declare)
    made(flow)
    Declared(NAME, flow, every=minutes(9))
    assert syncing.sync(USING) == []
    assert Schedule.objects.values_list("origin", "expression").get() == ("record", "60")
    Declared("daily", flow, every=minutes(5))
    syncing.sync(USING)
    with pytest.raises(faces.ScheduleTaken, match="declared in code; change it there"):
        faces.change("daily", seen=1, cap=3)
    with pytest.raises(faces.ScheduleTaken, match="is declared in code; choose another name"):
        faces.create("daily", flow, every=minutes(5))


def test_what_cannot_be_read_is_left_as_it_was(worker: LocalWorker, declare: Declare, caplog: pytest.LogCaptureFixture) -> None:
    flow = quick(declare)
    Declared("bad", flow, cron="nonsense")
    Declared("good", flow, every=minutes(5))
    assert syncing.sync(USING) == ["good"]
    assert "schedule bad is left as it was" in caplog.text
