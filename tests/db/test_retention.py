"""Ended runs are deleted when they are old, and nothing else is; their keys stay (decision 0008, S)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.files.storage import storages
from django.db import DatabaseError, transaction

import flows
from flows import COMPLETE, Activity, Child, End, Wait, registry
from flows.core.misuse import BadRetention, KeyConflict
from flows.core.retention import Retention
from flows.models import Archived, Event, Intent, KeptKey, RetentionLook, Transition, Workflow
from flows.services.retention import archiving, looking
from flows.store.aging import Progress
from flows.testing import Clock, LocalWorker
from tests.factories import Ask, Line, key_of, work
from tests.support.keeping import COMMITMENT, NOW, USING, Stopped, once, query, stopping

pytestmark = pytest.mark.req("A4")

Declare = Callable[..., type[flows.Flow]]

#: What is allowed to stay of a run that was deleted.
STAYS = {
    "outlast_key",
    "outlast_archive",
    "outlast_event",
    "outlast_finding",
    "outlast_notice",
    "outlast_occurrence",
    "outlast_start_key",
}


def ended(worker: LocalWorker, **given: Any) -> UUID:
    started = Line.start(given or {"n": 1}, key=f"k{Workflow.objects.count()}")
    worker.run()
    return started.id


def due() -> None:
    RetentionLook.objects.update_or_create(id=1, defaults={"next_at": "2020-01-01T00:00:00Z"})


def mentions(run: UUID) -> set[str]:
    """Tables in which some value is the run's id."""
    tables = query(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name LIKE 'outlast_%%' AND data_type = 'uuid'"
    )
    return {table for table, column in tables if query(f"SELECT 1 FROM {table} WHERE {column} = %s", run)}


def test_an_old_ended_run_goes_with_all_that_belongs_to_it(worker: LocalWorker, clock: Clock) -> None:
    run = ended(worker)
    clock.move(days=89)
    assert looking.once(looking.rules(), Progress(None, {}), USING).deleted == 0
    clock.move(days=2)
    assert looking.once(looking.rules(), Progress(None, {}), USING).deleted == 1
    assert mentions(run) == {"outlast_key"}
    assert not Workflow.objects.exists()
    assert not Transition.objects.exists()
    assert not Intent.objects.exists()


def test_every_table_that_names_a_run_is_known(worker: LocalWorker) -> None:
    """A table that comes to be later either belongs to a run or is named here."""
    named = query(
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND table_name LIKE 'outlast_%%' AND column_name = 'workflow_id'"
    )
    known = {one.table for one in registry.belongings()}
    assert {table for (table,) in named} - known == STAYS - {"outlast_archive"} | {"outlast_slot"}


def test_days_are_by_flow(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    short = declare("t-short-lived", one=Activity(work, then="done"), done=End(COMPLETE))
    for flow in (short, Line):
        flow.start({})
    worker.run()
    clock.move(days=10)
    assert once(Retention(days=None, flows={"t-short-lived": 7})) == 1
    assert Workflow.objects.get().flow_name == "t-line"
    assert once(Retention(days=30, flows={"t-line": None})) == 0
    assert once(Retention(days=5, flows={"t-line": None})) == 0
    assert once(Retention(days=None)) == 0
    assert once(Retention(days=5)) == 1


def test_a_live_run_stays_however_old(worker: LocalWorker, clock: Clock) -> None:
    Ask.start({"key": "a"})
    worker.run()
    clock.move(days=400)
    assert once() == 0
    assert Workflow.objects.count() == 1


def test_a_start_by_the_key_of_a_deleted_run_is_answered_with_it(worker: LocalWorker) -> None:
    run = Line.start({"n": 1}, key="k")
    worker.run()
    assert once() == 1
    again = Line.start({"n": 1}, key="k")
    assert (again.id, again.created, again.status, again.outcome) == (run.id, False, "complete", "COMPLETE")
    with pytest.raises(KeyConflict):
        Line.start({"n": 2}, key="k")
    several = Line.start_many([("k", {"n": 1}), ("new", {})])
    assert [one.created for one in several] == [False, True]
    assert Workflow.objects.count() == 1


def test_a_parent_waits_for_its_children_and_a_child_for_its_parent(worker: LocalWorker, declare: Declare) -> None:
    child = declare("t-kept-child", one=Activity(work, then="done"), done=End(COMPLETE))
    parent = declare(
        "t-kept-parent",
        kid=Child(child, then="ask"),
        ask=Wait("t.go", key=key_of, then="done"),
        done=End(COMPLETE),
    )
    run = parent.start({"key": "a"})
    worker.run()
    worker.tick()
    worker.run()
    assert sorted(Workflow.objects.values_list("status", flat=True)) == ["complete", "waiting"]
    assert once() == 0, "its parent is live"
    flows.signal("e1", "t.go", key="a")
    worker.run()
    assert once() == 1, "the child first"
    assert Workflow.objects.get().id == run.id
    assert once() == 1
    assert not Workflow.objects.exists()


#: What still needs a run that has ended → how it comes to be, and how it goes.
NEEDED = {
    "a commitment": (COMMITMENT, "DELETE FROM outlast_commitment"),
    "a reservation": (
        "INSERT INTO outlast_budget (workflow_id, kind, kept, spent, reserved, updated_at) VALUES (%s, 'cost', 0, 0, 1, flows_now())",
        "UPDATE outlast_budget SET reserved = 0",
    ),
    "an owed notice": (
        """INSERT INTO outlast_notice (created_at, due_at, tries, workflow_id, outcome, code, why)
        VALUES (flows_now(), flows_now(), 0, %s, '', '', '')""",
        "UPDATE outlast_notice SET sent_at = flows_now()",
    ),
    "a newer run that is still to end it": (
        "INSERT INTO outlast_start_key (flow, key, replaces) VALUES ('t-line', 'x', ARRAY[%s::uuid])",
        "UPDATE outlast_start_key SET replaces = '{}'",
    ),
}


@pytest.mark.parametrize("why", NEEDED)
def test_what_is_still_needed_stays(worker: LocalWorker, why: str) -> None:
    run = ended(worker)
    comes, goes = NEEDED[why]
    query(comes, run)
    assert once() == 0
    query(goes)
    assert once() == 1
    assert mentions(run) <= STAYS


def test_an_effect_in_doubt_and_an_open_request_are_looked_at(worker: LocalWorker) -> None:
    unfinished = {one.table: one.unfinished for one in registry.belongings() if one.unfinished}
    assert "uncertain" in unfinished["outlast_operation"]
    assert "pending" in unfinished["outlast_approval_request"]


def test_a_chain_stays_while_one_of_it_is_live(worker: LocalWorker) -> None:
    first = ended(worker)
    Ask.start({"key": "a"})
    worker.run()
    query("UPDATE outlast_workflow SET chain = %s WHERE status = 'waiting'", first)
    assert once() == 0
    query("UPDATE outlast_workflow SET chain = NULL")
    assert once() == 1


def test_a_batch_is_a_batch_and_the_next_look_goes_on_where_it_ended(
    worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ask.start({"key": "a"})
    for _ in range(7):
        Line.start({})
    worker.run()
    monkeypatch.setattr(looking, "BATCH", 3)
    monkeypatch.setattr(looking, "AT_ONCE", 2)
    progress, counts = Progress(None, {}), []
    while True:
        found = looking.once(NOW, progress, USING, limit=3)
        counts.append(found.deleted)
        progress = found.progress
        if not found.more:
            break
    assert counts == [3, 3, 1]
    assert progress.after is None
    assert Workflow.objects.get().flow_name == "t-ask"


def test_the_clock_looks_by_itself_and_one_of_two_has_the_look(worker: LocalWorker, clock: Clock, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "RETENTION": {"days": 1}}
    RetentionLook.objects.all().delete()
    ended(worker)
    clock.move(days=2)
    worker.tick()
    assert Workflow.objects.count() == 1, "it is not due"
    due()
    worker.tick()
    assert not Workflow.objects.exists()
    (row,) = RetentionLook.objects.all()
    assert row.deleted == 1
    assert looking.look(USING) == 0, "the next one is due in ten minutes"


def test_a_setting_that_cannot_be_deletes_nothing(worker: LocalWorker, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "RETENTION": {"days": "90"}}
    due()
    run = ended(worker)
    with pytest.raises(BadRetention, match="positive number of days"):
        looking.look(USING)
    worker.tick()
    assert Workflow.objects.filter(pk=run).exists()


def test_what_people_and_the_log_said_goes_only_by_this_way(worker: LocalWorker) -> None:
    run = ended(worker)
    assert once() == 1
    for statement in ("DELETE FROM outlast_key", "UPDATE outlast_key SET status = 'failed'"):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            query(statement)
    assert KeptKey.objects.get().workflow_id == run
    assert query("SELECT current_setting('outlast.retention', true)")[0][0] in ("", None), "the switch is off again"


# ------------------------------------------------------------------ archives


@pytest.fixture
def kept(settings: Any, tmp_path: Path) -> Retention:
    settings.STORAGES = {**settings.STORAGES, "kept": {"BACKEND": "django.core.files.storage.FileSystemStorage",
                                                       "OPTIONS": {"location": str(tmp_path)}}}  # fmt: skip
    return Retention(days=1e-9, archive="jsonl", path="outlast/runs", storage="kept")


def lines(rules: Retention) -> list[dict[str, Any]]:
    storage, found = storages[rules.storage], []
    folders = [rules.path]
    while folders:
        folder = folders.pop()
        if not storage.exists(folder):
            continue
        below, files = storage.listdir(folder)
        folders += [f"{folder}/{one}" for one in below]
        for name in files:
            with storage.open(f"{folder}/{name}") as file:
                found += [json.loads(line) for line in file]
    return found


def test_a_file_has_everything_and_says_so_by_its_digest(worker: LocalWorker, kept: Retention) -> None:
    run = ended(worker, n=7)
    log = list(Transition.objects.order_by("seq").values_list("seq", flat=True))
    assert once(kept) == 1
    (line,) = lines(kept)
    assert (line["id"], line["digest"]) == (str(run), archiving.digest(line["record"]))
    assert line["record"]["outlast_workflow"][0]["input"] == {"n": 7}
    assert [row["seq"] for row in line["record"]["outlast_transition"]] == log
    row = Archived.objects.get()
    assert (row.id, row.digest, row.record) == (run, line["digest"], None)
    assert storages["kept"].exists(row.file)


def test_a_table_has_everything(worker: LocalWorker) -> None:
    run = ended(worker, n=7)
    assert once(Retention(days=1e-9, archive="table")) == 1
    row = Archived.objects.get(pk=run)
    assert row.record["outlast_workflow"][0]["input"] == {"n": 7}
    assert row.digest == archiving.digest(row.record)


def test_a_run_that_changed_after_it_was_archived_stays(worker: LocalWorker, kept: Retention) -> None:
    run = ended(worker)
    made = archiving.Archiving(kept, USING)
    made.write([run])
    assert made.unchanged([run]) == [run]
    query("UPDATE outlast_workflow SET subject = 'later'")
    assert made.unchanged([run]) == []


def test_stopped_anywhere_nothing_is_lost_and_the_next_look_ends_it(worker: LocalWorker, kept: Retention) -> None:
    """Between archive and delete, within the delete, before and after its commit: whole or not at all, and archived before it goes."""
    runs = {ended(worker, n=number) for number in range(3)}
    whole = {run: archiving.digest(found) for run, found in archiving.retention.records(sorted(runs), USING).items()}
    number = 0
    while True:
        try:
            with stopping(number):
                once(kept)
            break
        except Stopped:
            number += 1
        archived = {UUID(line["id"]): line["digest"] for line in lines(kept)}
        left = {row: archiving.digest(found) for row, found in archiving.retention.records(sorted(runs), USING).items() if found}
        for run in runs:
            assert run in left or archived[run] == whole[run], f"{run} is lost at {number}"
            assert run not in left or left[run] == whole[run], f"{run} is half at {number}"
        if not left:
            break
    assert number > 20
    assert once(kept) == 0
    assert {UUID(line["id"]) for line in lines(kept)} == runs
    assert KeptKey.objects.count() == 3


# ------------------------------------------------------------------ what goes by its own age


def test_settled_events_go_by_their_own_age(worker: LocalWorker, clock: Clock) -> None:
    Ask.start({"key": "a"})
    worker.run()
    flows.signal("taken-by-a-live-run", "t.asked", key="a")
    flows.signal("never-taken", "t.asked", key="nobody")
    Ask.start({"key": "b"})
    worker.run()
    flows.signal("b1", "t.asked", key="b")
    worker.run()
    flows.signal("b2", "t.again", key="b")
    worker.run()
    clock.move(days=100)
    rules = Retention(days=None, spans={"events": 99})
    found = looking.once(rules, Progress(None, {}), USING)
    assert found.rows == {"events": 2}
    assert set(Event.objects.values_list("event_id", flat=True)) == {"taken-by-a-live-run", "never-taken"}
    assert looking.once(Retention(days=None, spans={"events": None}), Progress(None, {}), USING).rows == {}


def test_a_span_goes_on_where_it_ended(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "BATCH", 2)
    query(
        "INSERT INTO outlast_webhook_refusal (source, hour, code, count) "
        "SELECT 's', flows_now() - n * interval '1 day', 'x', 1 FROM generate_series(6, 1, -1) AS n"
    )
    rules = Retention(days=None, spans={"refusals": 1.5})
    progress, counts = Progress(None, {}), []
    while True:
        found = looking.once(rules, progress, USING)
        counts.append(found.rows.get("refusals", 0))
        progress = found.progress
        if not found.more:
            break
    assert counts == [2, 2, 1]
    assert query("SELECT count(*) FROM outlast_webhook_refusal") == [(1,)]
