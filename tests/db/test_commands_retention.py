"""manage.py flows retention and archive: what would go, what went, and archived runs read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages

from flows.core import payload
from flows.core.retention import Retention
from flows.models import Archived, Workflow
from flows.services import stored
from flows.testing import Clock, LocalWorker
from tests.factories import Ask, Line
from tests.support.commanding import cli
from tests.support.keeping import query

__all__ = ["cli"]

pytestmark = pytest.mark.req("A4")

KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
CODEC = {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["setting:T_KEY"]}


@pytest.fixture
def rules(settings: Any, tmp_path: Path) -> Any:
    """Sets what retention goes by, from then on."""
    settings.STORAGES = {**settings.STORAGES, "kept": {"BACKEND": "django.core.files.storage.FileSystemStorage",
                                                       "OPTIONS": {"location": str(tmp_path)}}}  # fmt: skip
    settings.T_KEY = KEY

    def given(**rules: Any) -> None:
        settings.OUTLAST = {**settings.OUTLAST, "RETENTION": rules}

    return given


def test_a_dry_run_says_what_would_go_and_changes_nothing(worker: LocalWorker, clock: Clock, cli: Any, rules: Any) -> None:
    rules(days=30)
    Ask.start({"key": "a"})
    first = Line.start({"n": 1}, key="k")
    Line.start({"n": 2})
    worker.run()
    query(
        "INSERT INTO outlast_budget (workflow_id, kind, kept, spent, reserved, updated_at) VALUES (%s, 'cost', 0, 0, 1, flows_now())",
        first.id,
    )
    clock.move(days=31)
    found = cli("retention", "--dry-run", "--json")
    assert (found.code, found.json) == (0, [{"flow": "t-line", "due": 1, "kept": 1}])
    assert Workflow.objects.count() == 3
    query("UPDATE outlast_budget SET reserved = 0")
    done = cli("retention")
    assert (done.code, "2 runs deleted" in done.err) == (0, True)
    assert Workflow.objects.get().flow_name == "t-ask"
    assert cli("retention", "--once", "--json").json == {"deleted": 0, "rows": {}, "more": False}


@pytest.mark.parametrize("archive", ["table", "jsonl:runs"])
def test_an_archived_run_is_read_again(
    worker: LocalWorker, clock: Clock, cli: Any, rules: Any, settings: Any, archive: str
) -> None:
    rules(days=1, archive=archive, storage="kept")
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": CODEC}
    run = Line.start({"n": "\u202e1"}, key="k")
    other = Line.start({"n": 2})
    worker.run()
    clock.move(days=2)
    assert cli("retention").code == 0
    stored = Archived.objects.get(pk=run.id)
    assert (stored.record is None) == archive.startswith("jsonl")
    for text in ("t-line:k", run.id):
        shown = cli("archive", "show", text, "--json")
        assert shown.code == 0, shown.err
        assert shown.json["record"]["outlast_workflow"][0]["input"] == {"n": "\u202e1"}
    plain = cli("archive", "show", "t-line:k")
    assert ("\u202e" not in plain.out, "complete" in plain.out) == (True, True)
    listed = cli("archive", "list", "--flow", "t-line", "--json").json
    assert {row["id"] for row in listed} == {str(run.id), str(other.id)}
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": None}
    assert cli("archive", "show", "t-line:k").code == 1, "it is sealed"


def test_what_is_not_what_was_archived_is_said(worker: LocalWorker, clock: Clock, cli: Any, rules: Any) -> None:
    rules(days=1, archive="jsonl:runs", storage="kept")
    run = Line.start({"n": 1}, key="k")
    worker.run()
    clock.move(days=2)
    cli("retention")
    name = Archived.objects.get(pk=run.id).file
    path = Path(storages["kept"].path(name))
    path.write_text(path.read_text().replace('"n":1', '"n":2').replace('{"n": 1}', '{"n": 2}'))
    assert "is not what was archived" in cli("archive", "show", run.id).err
    path.write_text("")
    assert "does not have it" in cli("archive", "show", run.id).err
    path.unlink()
    assert "cannot be read" in cli("archive", "show", run.id).err


def test_what_was_deleted_without_an_archive_is_said(worker: LocalWorker, clock: Clock, cli: Any, rules: Any) -> None:
    rules(days=1)
    Line.start({"n": 1}, key="k")
    worker.run()
    clock.move(days=2)
    cli("retention")
    assert "and not archived" in cli("archive", "show", "t-line:k").err
    assert "there is none" in cli("archive", "show", "t-line:x").err
    assert "there is none" in cli("archive", "show", "nothing").err


def test_a_faulty_setting_is_refused(cli: Any, rules: Any) -> None:
    rules(days=0)
    found = cli("retention")
    assert (found.code, "Nothing was deleted" in found.err) == (1, True)


def test_values_are_opened_where_they_are_and_nowhere_else() -> None:
    sealed, strange = {"$outlast": "json", "data": {"$outlast": 1}}, {"deep": {"$outlast": "json", "data": 2}}
    kept = {
        "outlast_workflow": [{"input": sealed, "subject": "s"}],
        "outlast_wait": [{"evidence": {"id": "e", "events": [{"payload": sealed}, {"payload": strange}]}}, {"evidence": None}],
        "outlast_transition": [{"note": strange}],
    }
    assert stored.record(kept, payload.decode) == {
        "outlast_workflow": [{"input": {"$outlast": 1}, "subject": "s"}],
        "outlast_wait": [
            {"evidence": {"id": "e", "events": [{"payload": {"$outlast": 1}}, {"payload": strange}]}},
            {"evidence": None},
        ],
        "outlast_transition": [{"note": strange}],
    }
    assert stored.record(kept, lambda value: value) is kept
    assert Retention().days == 90
