"""Values of ended runs are erased for ever; the log, digests and ledgers stay, and the log says so (decision 0008, S)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, transaction

import flows
from flows import COMPLETE, ESCALATE, Activity, Child, Commits, Deadline, End, Wait
from flows.core import payload
from flows.core.misuse import KeyConflict, NobodyErases, NotPermitted, ReasonMissing
from flows.core.retention import Retention
from flows.models import Archived, Commitment, Event, Transition, Workflow
from flows.services import describe, erasing, replay
from flows.services.clock import now
from flows.services.retention import archiving
from flows.testing import LocalWorker
from tests.factories import Ask, Line, does, work
from tests.support.commanding import cli
from tests.support.keeping import USING, Stopped, once, query, stopping
from tests.support.races import overtaken, racers, together

__all__ = ["cli"]

pytestmark = pytest.mark.req("A4")

DAY = Deadline(days=1, then=ESCALATE)
SECRET = "4111 1111 1111 1111"


@pytest.fixture
def people(transactional_db: None) -> Any:
    """Ann's runs; Eve may erase."""
    eve = get_user_model().objects.create_user("eve")
    eve.user_permissions.add(Permission.objects.get(codename="erase_workflow"))
    return get_user_model().objects.create_user("ann"), eve


def everywhere(text: str) -> set[str]:
    """Tables in which the text stands."""
    tables = [row[0] for row in query("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'outlast_%%'")]
    return {name for name in tables if query(f"SELECT 1 FROM {name} t WHERE to_jsonb(t)::text LIKE %s LIMIT 1", f"%{text}%")}


def test_nothing_of_the_values_is_left_and_the_log_says_who_erased_them(worker: LocalWorker, people: Any) -> None:
    ann, eve = people
    does["after"] = lambda attempt: {"card": SECRET}
    run = Ask.start({"key": "k", "card": SECRET}, key="k", by=ann, goal=f"charge {SECRET}", subject=SECRET)
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload={"card": SECRET})
    worker.run()
    flows.signal("e2", "t.again", key="k", payload={"card": SECRET})
    worker.run()
    assert len(everywhere(SECRET)) >= 5
    before = list(Transition.objects.order_by("seq").values_list("seq", "trigger", "to_status"))
    digest = Workflow.objects.get().input_digest
    found = erasing.erase_user(ann, by=eve, reason="she asked for it")
    assert (found.runs, found.already, found.live) == ((run.id,), 0, ())
    assert everywhere(SECRET) == set()
    row = Workflow.objects.get()
    assert (payload.decode(row.input), payload.decode(row.result), row.input_digest) == ("(erased)", "(erased)", digest)
    log = list(Transition.objects.order_by("seq"))
    assert [(one.seq, one.trigger, one.to_status) for one in log[:-1]] == before
    assert (log[-1].trigger, log[-1].trigger_ref, log[-1].note) == ("erase", "eve", {"reason": "she asked for it"})
    assert list(describe.verify()) == [(run.id, [])]
    assert [one.unknown for one in replay.replay() if "was erased" in one.unknown]
    assert Event.objects.count() == 2
    assert describe.describe(run.id).timeline
    again = erasing.erase_user(ann, by=eve, reason="again")
    assert (again.runs, again.already) == ((), 1)
    assert Transition.objects.count() == len(log)
    with pytest.raises(KeyConflict):
        Ask.start({"key": "k", "card": "another"}, key="k")


def test_what_is_owed_stays(worker: LocalWorker, people: Any, declare: Callable[..., Any]) -> None:
    """Its release reads values: they are erased when that is over."""
    ann, eve = people
    owing = declare(
        "t-erase-owes",
        one=Activity(work, commits=Commits("lease", kind="thing", deferrable=True), then="done"),
        done=End(COMPLETE),
    ).start({"card": SECRET}, by=ann)
    worker.run()
    Commitment.objects.update(status="active", closed_at=None)  # an orphan: the run has ended without it
    found = erasing.erase_user(ann, by=eve, reason="now")
    assert (found.runs, found.live, SECRET in str(Workflow.objects.get(pk=owing.id).input)) == ((), (owing.id,), True)
    Commitment.objects.update(status="fulfilled", closed_at=now(USING))
    assert erasing.erase_user(ann, by=eve, reason="now").runs == (owing.id,)


def test_a_child_whose_parent_lives_is_left(worker: LocalWorker, people: Any, declare: Callable[..., Any]) -> None:
    ann, eve = people
    declare("t-erase-leaf", one=Activity(work, then="done"), done=End(COMPLETE, result=lambda state: dict(state.input)))
    nodes = {"leaf": Child("t-erase-leaf", input=lambda state: dict(state.input), deadline=DAY, then="wait"),
             "wait": Wait("t.erase", key="w", deadline=DAY, then="done"), "done": End(COMPLETE)}  # fmt: skip
    parent = declare("t-erase-root", **nodes).start({"card": SECRET}, by=ann)
    worker.run()
    child = Workflow.objects.get(parent_id=parent.id)
    assert (child.status, set(erasing.erase_user(ann, by=eve, reason="now").live)) == ("complete", {parent.id, child.pk})
    flows.signal("w1", "t.erase", key="w")
    worker.run()
    assert set(erasing.erase_user(ann, by=eve, reason="now").runs) == {parent.id, child.pk}
    assert everywhere(SECRET) == set()


def test_who_may_and_why(worker: LocalWorker, people: Any) -> None:
    ann, eve = people
    with pytest.raises(NobodyErases):
        erasing.erase_user(ann, by=None, reason="x")
    with pytest.raises(NotPermitted):
        erasing.erase_user(ann, by=ann, reason="x")
    with pytest.raises(ReasonMissing):
        erasing.erase_user(ann, by=eve, reason=" ")


def test_a_live_run_is_left_and_said(worker: LocalWorker, people: Any, cli: Any) -> None:
    ann, _ = people
    live = Ask.start({"key": "k"}, by=ann)
    done = Line.start({"n": SECRET}, by=ann, key="x")
    Line.start({"n": SECRET})
    worker.run()
    ran = cli("erase", "--user", "ann", "--by", "eve", "--reason", "x", "--json")
    assert (ran.code, "1 runs have not ended" in ran.err) == (1, True)
    assert (ran.json["runs"], ran.json["live"]) == ([str(done.id)], [str(live.id)])
    assert Workflow.objects.get(pk=live.id).input == {"key": "k"}
    assert len(query("SELECT 1 FROM outlast_workflow WHERE input::text LIKE %s", f"%{SECRET}%")) == 1, "of nobody else"
    by_key = cli("erase", "--key", "t-line:x", "--by", "eve", "--reason", "x")
    assert (by_key.code, "1 had been before" in by_key.err) == (0, True)
    assert cli("erase", "--key", "t-line", "--by", "eve", "--reason", "x").code == 2
    assert cli("erase", "--key", "t-line:x", "--by", "ann", "--reason", "x").code == 1


def test_children_are_erased_with_their_parent(worker: LocalWorker, declare: Callable[..., Any], people: Any) -> None:
    child = declare("t-erased-child", one=Activity(work, then="done"), done=End(COMPLETE, result=lambda state: {"card": SECRET}))
    parent = declare("t-erased-parent", kid=Child(child, then="done"), done=End(COMPLETE))
    parent.start({"card": SECRET}, key="p")
    worker.run()
    worker.tick()
    worker.run()
    assert everywhere(SECRET)
    found = erasing.erase_key("t-erased-parent", "p", by=people[1], reason="x")
    assert len(found.runs) == 2
    assert everywhere(SECRET) == set()


def test_archived_children_are_erased_with_their_archived_parent(
    worker: LocalWorker, declare: Callable[..., Any], people: Any
) -> None:
    child = declare(
        "t-archived-child", one=Activity(work, then="done"), done=End(COMPLETE, result=lambda state: {"card": SECRET})
    )
    parent = declare("t-archived-parent", kid=Child(child, then="done"), done=End(COMPLETE))
    parent.start({"card": SECRET}, key="p")
    worker.run()
    worker.tick()
    worker.run()
    kept = Retention(days=1e-9, archive="table")
    assert once(kept) + once(kept) == 2
    assert (Workflow.objects.count(), everywhere(SECRET)) == (0, {"outlast_archive"})
    assert erasing.erase_key("t-archived-parent", "p", by=people[1], reason="x").archived == 2
    assert everywhere(SECRET) == set()


def test_archives_in_the_table_are_erased_and_files_are_named(
    worker: LocalWorker, people: Any, settings: Any, tmp_path: Any
) -> None:
    ann, eve = people
    settings.STORAGES = {**settings.STORAGES, "kept": {"BACKEND": "django.core.files.storage.FileSystemStorage",
                                                       "OPTIONS": {"location": str(tmp_path)}}}  # fmt: skip
    Line.start({"n": SECRET}, by=ann, goal=SECRET)
    worker.run()
    assert once(Retention(days=1e-9, archive="table")) == 1
    Line.start({"n": SECRET}, by=ann)
    worker.run()
    assert once(Retention(days=1e-9, archive="jsonl", path="runs", storage="kept")) == 1
    found = erasing.erase_user(ann, by=eve, reason="x")
    assert (found.archived, len(found.files)) == (1, 1)
    row = Archived.objects.get(file="")
    assert SECRET not in json.dumps(row.record)
    assert row.digest == archiving.digest(row.record)
    assert row.record["outlast_transition"]
    assert erasing.erase_user(ann, by=eve, reason="x").archived == 0


def test_stopped_anywhere_a_run_is_erased_whole_or_not_at_all(worker: LocalWorker, people: Any) -> None:
    ann, eve = people
    for _ in range(2):
        Line.start({"n": SECRET}, by=ann)
    worker.run()
    number = 0
    while True:
        try:
            with stopping(number):
                erasing.erase_user(ann, by=eve, reason="x")
            break
        except Stopped:
            number += 1
        erased = {row[0] for row in query("SELECT workflow_id FROM outlast_transition WHERE trigger = 'erase'")}
        left = {row[0] for row in query("SELECT id FROM outlast_workflow WHERE input::text LIKE %s", f"%{SECRET}%")}
        assert not erased & left
        assert len(erased | left) == 2
    assert number > 10
    assert everywhere(SECRET) == set()


def test_of_two_that_erase_one_writes_the_row(worker: LocalWorker, people: Any) -> None:
    ann, eve = people
    with racers(2) as threads:
        for number in range(10):
            Line.start({"n": number}, by=ann)
            worker.run()
            found = together(*((one, lambda: erasing.erase_user(ann, by=eve, reason="x")) for one in threads))
            assert sorted(len(one.runs) for one in found) == [0, 1], found
    assert Transition.objects.filter(trigger="erase").count() == 10


def test_retention_leaves_what_is_just_being_erased(worker: LocalWorker, people: Any) -> None:
    ann, eve = people
    Line.start({"n": 1}, by=ann)
    worker.run()
    met = overtaken(lambda: erasing.erase_user(ann, by=eve, reason="x"), once)
    assert (len(met.first.runs), met.second) == (1, 0)
    assert once() == 1


def test_the_switch_lets_nothing_but_values_be_written(worker: LocalWorker) -> None:
    Line.start({"n": 1})
    worker.run()
    for statement in (
        "UPDATE outlast_transition SET note = '{}'",
        "UPDATE outlast_transition SET trigger = 'x'",
        "DELETE FROM outlast_transition",
    ):
        with transaction.atomic(USING):
            query("SELECT set_config('outlast.rewrite', 'on', true)")
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(USING):
                query(statement)
