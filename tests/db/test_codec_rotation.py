"""A new key: every value is sealed with it, beside workers that write, and the old one is needed no more (decision 0008, S)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

import flows
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.misuse import NoCodec
from flows.core.retention import Retention
from flows.models import Archived, Event, Workflow
from flows.services import resealing
from flows.services.retention import archiving, reading
from flows.services.webhooks import bodies
from flows.testing import LocalWorker
from tests.factories import Ask, Line, does, status
from tests.support.commanding import cli
from tests.support.keeping import USING, Stopped, once, query, stopping
from tests.support.races import overtaken

__all__ = ["cli"]

Use = Callable[..., None]


@pytest.fixture
def use(settings: Any) -> Use:
    settings.OLD_KEY = base64.b64encode(b"o" * 32).decode()
    settings.NEW_KEY = base64.b64encode(b"n" * 32).decode()

    def use(*keys: str) -> None:
        codec = {"BACKEND": "flows.codecs.AesGcm", "KEYS": [f"setting:{key}" for key in keys]}
        settings.OUTLAST = {**settings.OUTLAST, "CODEC": codec if keys else None}

    return use


def rotated() -> dict[str, tuple[int, int]]:
    return {one.table: (one.sealed, one.busy) for one in resealing.rotate(using=USING) if one.sealed or one.busy}


def told(worker: LocalWorker) -> Any:
    """A run that waits for its second event, and one that has ended."""
    does["after"] = lambda attempt: {"card": "4711"}
    run = Ask.start({"key": "k"}, key="k")
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload={"card": "4711"})
    Line.start({"n": 1})
    worker.run()
    return run


def test_every_value_is_sealed_with_the_newest_key_and_read_without_the_old_one(worker: LocalWorker, use: Use, cli: Any) -> None:
    use()
    told(worker)
    use("OLD_KEY")
    run = Ask.start({"key": "j"}, key="j")
    worker.run()
    flows.signal("e2", "t.asked", key="j", payload={"card": "4711"})
    worker.run()
    use("NEW_KEY", "OLD_KEY")
    dry = cli("codec", "rotate", "--dry-run", "--json").json
    assert sum(one["sealed"] for one in dry) > 8
    done = cli("codec", "rotate", "--json")
    assert (done.code, [one["sealed"] for one in done.json]) == (0, [one["sealed"] for one in dry])
    assert rotated() == {}
    use("NEW_KEY")
    assert payload.decode(Workflow.objects.get(pk=run.id).input) == {"key": "j"}
    assert {payload.decode(one.payload)["card"] for one in Event.objects.all()} == {"4711"}
    tables = [row[0] for row in query("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'outlast_%%'")]
    assert [name for name in tables if query(f"SELECT 1 FROM {name} t WHERE to_jsonb(t)::text LIKE '%%4711%%'")] == []
    flows.signal("e3", "t.again", key="j", payload={})
    worker.run()
    assert status(run)[0] == "complete"


def test_a_key_that_is_not_listed_stops_it_and_nothing_is_lost(worker: LocalWorker, use: Use) -> None:
    use("OLD_KEY")
    told(worker)
    use("NEW_KEY")
    with pytest.raises(PayloadError, match="does not list"):
        rotated()
    use("OLD_KEY")
    assert all(payload.decode(one.input) for one in Workflow.objects.all())
    use()
    with pytest.raises(NoCodec):
        rotated()


def test_a_row_that_a_worker_has_is_passed_over_and_keeps_what_the_worker_wrote(worker: LocalWorker, use: Use) -> None:
    use("OLD_KEY")
    told(worker)
    use("NEW_KEY", "OLD_KEY")

    def held() -> None:
        with transaction.atomic():
            query("UPDATE outlast_workflow SET checkpoint = input")

    met = overtaken(held, rotated)
    assert not met.blocked
    assert met.second["outlast_workflow"] == (0, 2)
    assert rotated() == {"outlast_workflow": (2, 0)}
    assert all(payload.decode(one.checkpoint) == payload.decode(one.input) for one in Workflow.objects.all())


def test_stopped_anywhere_every_value_is_whole_and_the_next_call_goes_on(
    worker: LocalWorker, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resealing, "PAGE", 1)
    use("OLD_KEY")
    told(worker)
    use("NEW_KEY", "OLD_KEY")
    number = 0
    while True:
        try:
            with stopping(number):
                list(resealing.rotate(using=USING))
            break
        except Stopped:
            number += 7
        assert {str(payload.decode(one.input)) for one in Workflow.objects.all()} == {"{'key': 'k'}", "{'n': 1}"}
    assert rotated() == {}


def test_archives_in_the_table_are_sealed_anew_too(worker: LocalWorker, use: Use) -> None:
    use("OLD_KEY")
    run = Line.start({"n": 1})
    worker.run()
    assert once(Retention(days=1e-9, archive="table")) == 1
    use("NEW_KEY", "OLD_KEY")
    assert rotated() == {"outlast_archive": (1, 0)}
    use("NEW_KEY")
    assert reading.find(str(run.id), USING).record["outlast_workflow"][0]["input"] == {"n": 1}
    row = Archived.objects.get()
    assert row.digest == archiving.digest(row.record)


def test_what_a_stranger_sends_is_never_taken_for_an_envelope(worker: LocalWorker, use: Use) -> None:
    """Neither in what a wait was told, nor in an archive."""
    use()
    sent = {"card": {payload.ENVELOPE: "aes", "key": "none"}, "list": [{payload.ENVELOPE: "json"}]}
    run = Ask.start({"key": "k"})
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload=sent)
    worker.run()
    flows.signal("e2", "t.again", key="k", payload={})
    worker.run()
    use("NEW_KEY")
    assert rotated()["outlast_wait"] == (2, 0)
    assert rotated() == {}
    assert once(Retention(days=1e-9, archive="table")) == 1
    assert rotated() == {}
    waits = reading.find(str(run.id), USING).record["outlast_wait"]
    assert [one["evidence"]["payload"] for one in waits if one["evidence"]] == [sent, {}]


def test_bodies_of_deliveries_are_sealed_anew_too(worker: LocalWorker, use: Use) -> None:
    use("OLD_KEY")
    kept = [bodies.PLAIN + b"\x00plain", bodies.packed(b"sealed")]
    for number, body in enumerate(kept):
        query(
            """INSERT INTO outlast_webhook_delivery (source, delivery_id, body_digest, unsigned_id, body, headers, verdict, code,
            event_id, events, times, conflicts, secret, received_at, seen_at, mapped_by, reason)
            VALUES ('s', %s, 'd', false, %s, '{}', 'unmapped', '', '', 0, 1, 0, 0, flows_now(), flows_now(), '', '')""",
            str(number),
            body,
        )
    use("NEW_KEY", "OLD_KEY")
    assert rotated() == {"outlast_webhook_delivery": (2, 0)}
    use("NEW_KEY")
    found = [bodies.unpacked(row[0]) for row in query("SELECT body FROM outlast_webhook_delivery ORDER BY id")]
    assert found == [b"\x00plain", b"sealed"]


def test_every_column_that_is_sealed_is_known(worker: LocalWorker, use: Use) -> None:
    """After a rotation, no table has a value left that only the old key opens."""
    use("OLD_KEY")
    told(worker)
    use("NEW_KEY", "OLD_KEY")
    rotated()
    use("OLD_KEY")  # whose id is in each envelope that it has sealed
    key = payload.reseal({"a": 1})["key"]
    tables = [row[0] for row in query("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'outlast_%%'")]
    left = [name for name in tables if query(f"SELECT 1 FROM {name} t WHERE to_jsonb(t)::text LIKE %s LIMIT 1", f"%{key}%")]
    assert left == []
