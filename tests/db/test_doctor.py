"""The doctor: each thing that is wrong is said once, with its level and a way out; a sound set-up has none; nothing is changed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

import flows
from flows import COMPLETE, Activity, End
from flows.models import Finding, Worker, Workflow
from flows.services import doctor, sweeps
from flows.services.doctor import Level, record
from flows.store import doctor as store
from flows.testing import Clock, LocalWorker, local_worker
from tasks import doctor as celery
from tests.factories import Line, work
from tests.support.commanding import cli

__all__ = ["cli"]

ROOT = Path(__file__).parents[2]
USING = "default"
TAMPERS = True


@pytest.fixture
def whole(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[LocalWorker]:
    """A worker that serves everything, and a clock that was just looked at."""
    with local_worker(["agents", "cleanup", "control", *sorted(record._of_flows())]) as made:
        sweeps.run_tick(USING)
        yield made


@contextmanager
def configured(**given: Any) -> Iterator[None]:
    """Celery with these settings."""
    before = {name: getattr(current_app.conf, name) for name in given}
    current_app.conf.update(given)
    try:
        yield
    finally:
        current_app.conf.update(before)


def codes(level: Level | None = None) -> list[str]:
    return [ill.code for ill in doctor.examine(using=USING).found if level in (None, ill.level)]


def ill(code: str) -> doctor.Ill:
    (found,) = [one for one in doctor.examine(using=USING).found if one.code == code]
    assert found.way_out
    return found


def test_a_sound_set_up_has_nothing(whole: LocalWorker) -> None:
    found = doctor.examine(using=USING)
    assert [one for one in found.found if one.code != "NO_DISPATCHER"] == []
    assert set(found.looked) == {"database", "server", "queues", "versions", "holds", "findings", "broker", "Celery's settings"}
    assert found.worst is None


def test_a_clock_that_nobody_looks_at(whole: LocalWorker) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE outlast_tick SET ticked_at = now() - interval '90 seconds'")
    found = ill("NO_TICK")
    assert (found.level, "90 s ago" in found.what, "Beat" in found.way_out) == (Level.ERROR, True, True)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM outlast_tick")
    assert "never" in ill("NO_TICK").what
    sweeps.run_tick(USING)


def test_nobody_works(transactional_db: None) -> None:
    sweeps.run_tick(USING)
    assert ill("NO_WORKER").level is Level.ERROR


def test_a_queue_that_nobody_serves(whole: LocalWorker) -> None:
    queues = [queue for queue in whole.queues if queue != "cleanup"]
    Worker.objects.update(queues=queues)
    found = ill("QUEUE_UNSERVED")
    assert (found.level, "'cleanup': what is owed is not serviced" in found.what) == (Level.ERROR, True)
    Line.start({})
    Workflow.objects.update(queue="gpu")
    assert codes().count("QUEUE_UNSERVED") == 2


def test_ready_work_that_stands(whole: LocalWorker) -> None:
    Line.start({})
    assert "READY_LONG" not in codes()
    Workflow.objects.update(updated_at="2020-01-01T00:00Z")
    assert ill("READY_LONG").level is Level.WARNING
    flows.hold("flow", "t-line", reason="on purpose")
    assert "READY_LONG" not in codes(), "what is held stands on purpose"
    assert (ill("HELD").level, "on purpose" in ill("HELD").what) == (Level.NOTE, True)


def test_a_version_and_a_release_that_nobody_offers(whole: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Line.start({})
    Workflow.objects.filter(pk=run.id).update(flow_version=7)
    found = ill("VERSION_UNOFFERED")
    assert (found.level, "t-line@7, of which 1 live runs are there (1 ready)" in found.what) == (Level.ERROR, True)
    Workflow.objects.filter(pk=run.id).update(flow_version=1)
    assert "VERSION_UNOFFERED" not in codes()
    monkeypatch.setattr(record.releasing, "stuck", lambda using: [(run.id, "one", "R1")])
    assert "R1" in ill("RELEASE_UNOFFERED").what


def test_findings_of_the_scan(whole: LocalWorker) -> None:
    for subject in ("a", "b"):
        Finding.objects.create(
            kind="unhinted", subject=subject, facts={}, first_seen="2026-01-01T00:00Z", last_seen="2026-01-01T00:00Z"
        )
    assert "2 unhinted" in ill("FINDINGS").what


def test_a_clock_that_was_moved_or_goes_wrong(whole: LocalWorker, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.move(hours=3)
    assert ill("CLOCK_MOVED").level is Level.ERROR
    real = store.server(USING)
    monkeypatch.setattr(record.store, "server", lambda using: store.Server(140_005, time.time() + 60, 0.0, 0.1))
    assert {"CLOCK_SKEW", "SERVER_TOO_OLD"} <= set(codes())
    assert real.version >= 150_000


def test_tables_that_are_missing_or_newer(whole: LocalWorker) -> None:
    recorder = MigrationRecorder(connection)
    (newest,) = (name for label, name in MigrationLoader(connection).graph.leaf_nodes() if label == "outlast_flows")
    recorder.record_unapplied("outlast_flows", newest)
    try:
        found = doctor.examine(using=USING)
        assert [(one.code, one.way_out) for one in found.found if one.code == "UNMIGRATED"] == [
            ("UNMIGRATED", "manage.py migrate")
        ]
        assert "queues" not in found.looked, "what needs the tables is not asked"
    finally:
        recorder.record_applied("outlast_flows", newest)
    recorder.record_applied("outlast_flows", "9999_of_the_future")
    try:
        assert ill("NEWER_TABLES").level is Level.WARNING
    finally:
        recorder.record_unapplied("outlast_flows", "9999_of_the_future")


def test_what_cannot_be_looked_at_is_said_and_the_rest_is_looked_at(whole: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_using: str) -> Iterator[doctor.Ill]:
        raise RuntimeError("no idea")
        yield

    monkeypatch.setitem(record.EXAMINATIONS, "queues", fails)
    found = ill("NOT_EXAMINED")
    assert "queues could not be looked at: RuntimeError: no idea" in found.what
    assert "versions" in doctor.examine(using=USING).looked


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("task_always_eager", True, Level.ERROR),
        ("accept_content", ["json", "pickle"], Level.ERROR),
        ("task_acks_late", True, Level.WARNING),
        ("task_reject_on_worker_lost", True, Level.ERROR),
        ("worker_cancel_long_running_tasks_on_connection_loss", True, Level.ERROR),
        ("task_publish_retry", False, Level.WARNING),
        ("task_publish_retry_policy", {"max_retries": 3}, Level.WARNING),
        ("broker_connection_max_retries", 100, Level.WARNING),
        ("broker_transport_options", {"socket_timeout": 10, "socket_connect_timeout": 3}, Level.ERROR),
        ("broker_transport_options", {"ack_emulation": False, "socket_connect_timeout": 3}, Level.WARNING),
        ("broker_transport_options", {"ack_emulation": False, "socket_timeout": 3}, Level.WARNING),
    ],
)
def test_settings_of_celery_that_are_dangerous(name: str, value: Any, level: Level) -> None:
    assert list(celery.settings(USING)) == []
    with configured(**{name: value}):
        (found,) = celery.settings(USING)
    assert (found.code, found.level) == ("CELERY_SETTING", level)
    assert found.way_out.startswith(name)


def test_hoarding_and_results() -> None:
    with configured(worker_prefetch_multiplier=4):
        assert list(celery.settings(USING)) == []
    with configured(worker_prefetch_multiplier=4, worker_disable_prefetch=False):
        assert ["hoards" in one.what for one in celery.settings(USING)] == [True]
    with configured(task_ignore_result=False):
        assert list(celery.settings(USING)) == []
    with configured(task_ignore_result=False, result_backend="redis://"):
        assert ["result backend" in one.what for one in celery.settings(USING)] == [True]


def test_beat_without_a_tick() -> None:
    with configured(beat_schedule={}):
        assert [one.code for one in celery.settings(USING)] == ["NO_TICK_ENTRY"]


def test_a_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def health(self) -> str:
            raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr(celery, "dispatcher", Away)
    (found,) = celery.broker(USING)
    assert (found.code, "nobody there" in found.what) == ("BROKER_AWAY", True)
    monkeypatch.setattr(celery, "dispatcher", lambda: None)
    assert [one.code for one in celery.broker(USING)] == ["NO_DISPATCHER"]


def test_a_redis_that_throws_away_or_piles_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(celery._redis()) == []
    monkeypatch.setattr(celery, "LONG_QUEUE", -1)
    assert [one.code for one in celery._redis()] == ["QUEUE_LONG"] * 3
    monkeypatch.setattr(celery, "LONG_QUEUE", 10_000)
    with current_app.connection_for_read() as connected:
        channel: Any = connected.default_channel
        client = channel.client
        before = {**client.config_get("maxmemory"), **client.config_get("maxmemory-policy")}
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            assert [one.code for one in celery._redis()] == ["BROKER_EVICTS"]
        finally:
            for name, value in before.items():
                client.config_set(name, value)


def test_the_command(cli: Any, whole: LocalWorker, declare: Any) -> None:
    ran = cli("doctor")
    assert (ran.code, ran.err.endswith(": nothing is wrong\n"), ran.out) == (0, True, "")
    flows.hold("key", "k", reason="x")
    ran = cli("doctor")
    assert (ran.code, ran.out.splitlines()[1]) == (0, "    way out: flows lift key k --reason …")
    Finding.objects.create(kind="unhinted", subject="a", facts={}, first_seen="2026-01-01T00:00Z", last_seen="2026-01-01T00:00Z")
    assert (cli("doctor").code, cli("doctor", "--strict").code) == (0, 1)
    Worker.objects.update(status="stopped", ended_at="2026-01-01T00:00Z")
    ran = cli("doctor", "--json")
    assert (ran.code, ran.json["worst"], ran.json["found"][0]["code"]) == (1, "error", "NO_WORKER")
    assert "Something is wrong." in ran.err


def test_it_changes_nothing(whole: LocalWorker, declare: Any) -> None:
    declare("t-examined", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    before = list(Workflow.objects.values())
    doctor.examine(using=USING)
    assert list(Workflow.objects.values()) == before


def test_every_code_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "how-to" / "doctor.md").read_text()
    rooms = ("flows/services/doctor/__init__.py", "flows/services/doctor/record.py", "tasks/doctor.py")
    known = {code for room in rooms for code in re.findall(r'Ill\(\s*"([A-Z_]+)"', (ROOT / room).read_text())}
    assert len(known) >= 19
    assert set(re.findall(r"`([A-Z]+_?[A-Z_]+)`", page.split("| code |")[1])) & known == known
