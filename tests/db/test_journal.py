"""The journal of an agent turn: what is on record is used again, what was in flight is made anew, and nothing else is paid twice."""

from __future__ import annotations

import asyncio
import base64
import logging
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction

import flows
from flows import Paid
from flows import budgets as verbs
from flows.core import payload
from flows.core.errors import (
    BudgetPending,
    CapacityUnavailable,
    DefinitionError,
    LostOwnership,
    PayloadError,
    Transient,
    VerificationFailed,
)
from flows.core.turn_errors import ToolFailed
from flows.core.turns import EntryKind, EntryStatus
from flows.models import Candidate, JournalEntry
from flows.models import Verdict as Record
from flows.services import invariants
from flows.services.replay import replay
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import another_worker, person, row, status
from tests.support.budgeting import amounts
from tests.support.budgeting import entries as booked
from tests.support.turning import Killed, Turn, asked, die, dies, does, entries, go, says

pytestmark = pytest.mark.req("O1", "A5", "B3")


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    asked.clear()


def turn(code: Any) -> Any:
    """A run whose agent turn is this code."""
    factories.does["think"] = code
    return Turn.start({})


def again(worker: LocalWorker) -> None:
    """Work, and once more when the retry is due."""
    worker.run()
    worker.tick()
    worker.run()


def test_each_call_is_an_entry_and_what_it_used_is_booked(worker: LocalWorker) -> None:
    def code(attempt: Any) -> Any:
        journal = attempt.journal
        first = journal.model("ask", says({"tool": "read"}, cost="0.02"), prompt="the prompt", model="m-1")
        read = journal.tool("read", {"path": "a.txt"}, does({"text": "hello"}))
        unit = journal.unit("index", lambda: 7, arguments=[1])
        return go([first, read, unit, [one.name for one in journal.entries]])

    run = turn(code)
    worker.run()
    assert row(run).result == [{"tool": "read"}, {"text": "hello"}, 7, ["ask", "read", "index"]]
    model, tool, unit = JournalEntry.objects.filter(workflow_id=run.id).order_by("number")
    assert (model.kind, model.name, model.status, model.attempt, model.model) == ("model", "ask", "done", 1, "m-1")
    assert model.request is None, "a prompt is kept by its hash alone"
    assert model.request_hash.startswith("sha256:")
    assert model.usage == {"input_tokens": 10, "output_tokens": 5, "cost": "0.02"}
    assert (tool.request, tool.answer, tool.answer_bytes) == ({"path": "a.txt"}, {"text": "hello"}, 16)
    assert (unit.kind, unit.answer, unit.ended_at is not None) == ("unit", 7, True)
    assert (amounts(run, "model_calls"), amounts(run, "model_tokens"), amounts(run, "tool_calls")) == ((1, 0), (15, 0), (1, 0))
    assert amounts(run, "cost") == (Decimal("0.02"), 0)
    assert booked(run, "model_tokens") == [("reserved", 100), ("spent", 15), ("settled", 0)]
    (artifact,) = Candidate.objects.filter(workflow_id=run.id)
    assert (artifact.choice, artifact.model, artifact.usage["count"], artifact.usage["input_tokens"]) == ("go", "m-1", 1, 10)
    assert artifact.prompt_hash == model.request_hash
    assert not [found.drift for found in replay([row(run)]) if found.drift is not None]


def test_after_a_crash_the_turn_goes_on_from_what_is_on_record(worker: LocalWorker) -> None:
    fatal = [True]

    def code(attempt: Any) -> Any:
        journal = attempt.journal
        journal.model("ask", says(1), prompt=f"another one each time {attempt.number}")
        journal.tool("read", {"n": 1}, does("read"))
        journal.model("ask", dies(says(2)) if fatal else says(2))
        return go()

    run = turn(code)
    worker = die(worker)
    assert amounts(run, "model_tokens") == (115, 0), "the call in flight counts with all that was set aside for it"
    fatal.clear()
    worker.run()
    assert status(run)[0] == "complete"
    assert asked == ["model 1", "tool read", "model 2", "model 2"], "only the call in flight is made anew"
    assert entries(run) == [
        (1, "model", "ask", "done", 1),
        (2, "tool", "read", "done", 1),
        (3, "model", "ask", "lost", 1),
        (4, "model", "ask", "done", 2),
    ]
    assert (amounts(run, "model_calls"), amounts(run, "model_tokens"), amounts(run, "tool_calls")) == ((3, 0), (130, 0), (1, 0))
    assert not invariants.scan(), "a ledger is what its entries add up to"


def test_a_third_attempt_uses_what_the_second_has_made_anew(worker: LocalWorker) -> None:
    left = [1, 2, 3]

    def code(attempt: Any) -> Any:
        journal = attempt.journal
        for number in range(3):
            deadly = len(left) == 3 - number
            if deadly:
                left.pop()
            journal.model("ask", dies() if deadly else says(number), prompt=f"{attempt.number} {number}")
        return go()

    run = turn(code)
    for _ in range(3):
        worker = die(worker)
    worker.run()
    assert asked == ["model 0", "model 1", "model 2"]
    assert [one[3] for one in entries(run)] == ["lost", "done", "lost", "done", "lost", "done"]


def test_a_failed_call_of_a_model_is_made_anew_and_is_free_where_its_error_says_so(worker: LocalWorker) -> None:
    errors: list[Exception] = [ConnectionResetError("gone after it was sent"), Transient("503")]

    def ask() -> Any:
        if errors:
            raise errors.pop()
        return says("yes")()

    def code(attempt: Any) -> Any:
        for _ in range(2):  # a library's own retry is another call
            try:
                return go(attempt.journal.model("ask", ask))
            except Transient:
                continue
        raise AssertionError

    run = turn(code)
    again(worker)
    assert status(run)[0] == "complete"
    found = JournalEntry.objects.filter(workflow_id=run.id).order_by("number")
    assert [(one.status, one.code, one.attempt) for one in found] == [
        ("failed", "TRANSIENT", 1),
        ("failed", "UNCLASSIFIED_ERROR", 1),
        ("done", "", 2),
    ]
    assert amounts(run, "model_calls") == (3, 0)
    assert amounts(run, "model_tokens") == (115, 0), "503 is free, what was sent and not answered is not"


def test_a_tools_own_error_is_an_answer_now_and_later(worker: LocalWorker) -> None:
    fatal = [True]
    seen: list[tuple[str, str]] = []

    def code(attempt: Any) -> Any:
        journal = attempt.journal
        with pytest.raises(ToolFailed) as caught:
            journal.tool("read", {}, does(VerificationFailed("no\x00 such file")))
        seen.append((caught.value.code, caught.value.said))
        if fatal:
            raise Killed
        return go()

    run = turn(code)
    worker = die(worker)
    fatal.clear()
    worker.run()
    assert status(run)[0] == "complete"
    assert seen == [("VERIFICATION_FAILED", "no\ufffd such file")] * 2
    assert len(asked) == 1
    (entry,) = JournalEntry.objects.filter(workflow_id=run.id)
    assert (entry.status, entry.code, entry.answer["said"]) == ("failed", "VERIFICATION_FAILED", "no\ufffd such file")


def test_a_fatal_error_of_a_tool_ends_the_attempt_and_the_next_one_calls_anew(worker: LocalWorker) -> None:
    errors = [Transient("away")]

    def call() -> str:
        if errors:
            raise errors.pop()
        return "there"

    run = turn(lambda attempt: go(attempt.journal.tool("read", {}, call, fatal=(Transient,))))
    again(worker)
    assert row(run).result == "there"
    assert [(one[3], one[4]) for one in entries(run)] == [("failed", 1), ("done", 2)]


def test_where_the_code_takes_another_way_what_is_behind_is_set_aside(
    worker: LocalWorker, caplog: pytest.LogCaptureFixture
) -> None:
    names = [["read", "write"], ["read", "list"]]

    def code(attempt: Any) -> Any:
        journal = attempt.journal
        journal.model("ask", says(1))
        for name in names[attempt.number - 1]:
            journal.tool(name, {"for": name}, does(name))
        journal.model("ask", says(2))
        if attempt.number == 1:
            raise Killed
        return go()

    run = turn(code)
    worker = die(worker)
    with caplog.at_level(logging.WARNING, "outlast.journal"):
        worker.run()
    assert "AGENT_DIVERGED" in caplog.text
    assert asked == ["model 1", "tool read", "tool write", "model 2", "tool list", "model 2"]
    assert [one[2:4] for one in entries(run)] == [
        ("ask", "done"), ("read", "done"), ("write", "stale"), ("ask", "stale"), ("list", "done"), ("ask", "done"),
    ]  # fmt: skip


def test_parallel_calls_are_found_by_what_they_ask(worker: LocalWorker) -> None:
    """In another order, and with equal ones among them; the one that was in flight is no divergence."""

    def code(attempt: Any) -> Any:
        async def tool(n: int, *, dead: bool = False) -> Any:
            async def call() -> int:
                await asyncio.sleep(0)
                if dead:
                    raise Killed
                asked.append(f"tool {n}")
                return n

            return await attempt.journal.atool("read", {"n": n}, call)

        async def all_of() -> Any:
            first = attempt.number == 1
            await attempt.journal.amodel("ask", asynchronous(1))
            calls = [tool(1), tool(2), tool(1), tool(3, dead=first)]
            found = await asyncio.gather(*(calls if first else reversed(calls)))
            return go([found, await attempt.journal.amodel("ask", asynchronous(2))])

        return all_of()

    def asynchronous(answer: int) -> Any:
        async def call() -> int:
            asked.append(f"model {answer}")
            return answer

        return call

    run = turn(code)
    worker = die(worker)
    worker.run()
    assert row(run).result == [[3, 1, 2, 1], 2]
    assert asked == ["model 1", "tool 1", "tool 2", "tool 1", "tool 3", "model 2"]
    assert [one[3] for one in entries(run)] == ["done", "done", "done", "done", "lost", "done", "done"]


def test_what_is_inside_a_call_is_found_inside_it(worker: LocalWorker) -> None:
    """A tool of two steps: the crash in the second; an equal call after it has steps of its own."""
    fatal = [True]

    def code(attempt: Any) -> Any:
        journal = attempt.journal

        def publish() -> Any:
            saved = journal.unit("save", does("saved"))
            return [saved, journal.unit("check", dies() if fatal else does("checked"))]

        one = journal.tool("publish", {}, publish)
        two = journal.tool("publish", {}, publish)
        return go([one, two, [entry.name for entry in journal.entries], journal.model("ask", says("end"))])

    run = turn(code)
    worker = die(worker)
    fatal.clear()
    factories.does["think"], whole = (lambda attempt: [code(attempt), dies()()]), code
    worker = die(worker)
    factories.does["think"] = whole
    worker.run()
    assert row(run).result == [["saved", "checked"], ["saved", "checked"], ["publish", "publish"], "end"]
    assert asked == ["tool saved", "tool checked", "tool saved", "tool checked", "model end"]


def test_a_turn_without_room_waits_and_pays_nothing_again(worker: LocalWorker, declare: Any) -> None:
    from flows import COMPLETE, AgentTurn, Budget, End, Spend

    flow = declare(
        "t-turn-small",
        meta={"budget": Budget(model_tokens=250)},
        think=AgentTurn(factories.work, choices={"go": "done"}, each=Spend(model_tokens=100)),
        done=End(COMPLETE),
    )
    caught: list[BaseException] = []

    def code(attempt: Any) -> Any:
        for number in range(3):
            try:
                attempt.journal.model("ask", says(number, input_tokens=95))
            except BaseException as error:  # noqa: BLE001 - as the worst of libraries does: the turn ends all the same
                caught.append(error)
        return go()

    factories.does["think"] = code
    ann = person("ann")
    ann.is_superuser = True
    ann.save()
    run = flow.start({}, by=ann)
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "think")
    assert row(run).error_code == "BUDGET_EXHAUSTED"
    assert {type(error) for error in caught} == {BudgetPending}
    assert [one[3] for one in entries(run)] == ["done", "done"]
    assert amounts(run, "model_tokens") == (200, 0)
    (artifact,) = Candidate.objects.filter(workflow_id=run.id)
    assert (artifact.refused, artifact.usage["count"]) == ("BUDGET_EXHAUSTED", 2)
    assert Record.objects.filter(workflow_id=run.id, verdict="BUDGET_EXHAUSTED").exists()
    assert verbs.raise_(run, "model_tokens", by_amount=100, by=ann, reason="It is nearly there")
    worker.run()
    assert status(run)[0] == "complete"
    assert asked == ["model 0", "model 1", "model 2"], "nothing is paid again"
    assert [(one[3], one[4]) for one in entries(run)] == [("done", 1), ("done", 1), ("done", 2)]
    assert amounts(run, "model_tokens") == (300, 0)
    assert not [found.drift for found in replay([row(run)]) if found.drift is not None]


STOPS = [
    ("TURN_CALLS", lambda journal, n: journal.model("ask", says(n, input_tokens=0)), 6),
    ("TURN_TOKENS", lambda journal, n: journal.model("ask", says(n, input_tokens=95)), 5),
    ("TURN_TOOLS", lambda journal, n: journal.tool("read", {"n": n}, does(n)), 6),
    ("TURN_REPEATS", lambda journal, n: journal.tool("read", {}, does("same")), 2),
]


@pytest.mark.parametrize(("code", "call", "most"), STOPS, ids=[stop[0] for stop in STOPS])
def test_a_rule_stops_the_turn_and_a_person_grants_as_much_again(worker: LocalWorker, code: str, call: Any, most: int) -> None:
    def think(attempt: Any) -> Any:
        for number in range(20):
            call(attempt.journal, number)

    run = turn(think)
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "think")
    assert row(run).error_code == code
    assert len(entries(run)) == most
    flows.resume(run)
    worker.run()
    assert row(run).error_code == code
    assert len(entries(run)) == 2 * most, "what is on record is used, and then as much again"
    assert len(asked) == 2 * most


def test_a_tool_whose_answer_changes_may_be_polled(worker: LocalWorker) -> None:
    run = turn(lambda attempt: go([attempt.journal.tool("poll", {}, does(n)) for n in range(5)]))
    worker.run()
    assert row(run).result == [0, 1, 2, 3, 4]


def test_time_stops_a_turn_over_its_attempts(worker: LocalWorker, clock: Clock) -> None:
    def think(attempt: Any) -> Any:
        attempt.journal.model("ask", says(attempt.number))
        clock.move(minutes=40)
        if attempt.number == 1:
            raise Transient
        return go(attempt.journal.tool("read", {}, does("late")))

    run = turn(think)
    again(worker)
    assert row(run).error_code == "TURN_TIME"
    assert [one[2] for one in entries(run)] == ["ask"]


def test_a_stopped_turn_goes_where_its_author_says(worker: LocalWorker, declare: Any) -> None:
    from flows import COMPLETE, AgentTurn, End, Stop

    flow = declare(
        "t-turn-stopped",
        think=AgentTurn(factories.work, choices={"go": "done"}, stop=Stop(calls=1), stopped="gave_up"),
        done=End(COMPLETE),
        gave_up=End(COMPLETE, result=lambda state: "gave up"),
    )
    factories.does["think"] = lambda attempt: [attempt.journal.model("ask", says(n)) for n in range(3)]
    run = flow.start({})
    worker.run()
    assert (status(run)[2], row(run).result) == ("gave_up", "gave up")


REASONING = [
    {"parts": [{"part_kind": "thinking", "content": "secret"}]},
    [{"type": "reasoning", "summary": "secret"}],
    {"choices": [{"message": {"reasoning_content": "secret"}}]},
    {"choices": [{"message": {"role": "assistant", "content": "yes", "reasoning": "secret"}}]},
    {"choices": [{"message": {"role": "assistant", "reasoning_details": [{"text": "secret"}]}}]},
    {"message": {"role": "assistant", "content": "yes", "thinking": "secret"}},
    {"candidates": [{"content": {"parts": [{"text": "secret", "thought": True}, {"text": "yes"}]}}]},
]


@pytest.mark.parametrize("answer", REASONING)
@pytest.mark.req("O7")
def test_reasoning_is_refused_and_charged(worker: LocalWorker, answer: Any) -> None:
    run = turn(lambda attempt: go(attempt.journal.model("ask", says(answer))))
    worker.run()
    assert row(run).error_code == "PAYLOAD_INVALID"
    (entry,) = JournalEntry.objects.filter(workflow_id=run.id)
    assert (entry.status, entry.answer, entry.code) == ("failed", None, "PAYLOAD_INVALID")
    assert amounts(run, "model_tokens") == (100, 0)


@pytest.mark.req("O7")
def test_a_field_of_a_tool_that_is_called_so_is_none(worker: LocalWorker) -> None:
    said = {"calls": [{"name": "note", "arguments": {"reasoning": "as the schema asks", "thinking": "aloud"}}]}
    run = turn(lambda attempt: go(attempt.journal.model("ask", says(said))))
    worker.run()
    assert row(run).result == said


@pytest.mark.req("A2")
def test_a_call_that_its_provider_had_no_room_for_is_none_that_a_rule_counts(worker: LocalWorker, clock: Clock) -> None:
    """Ten times too busy, and `Stop(calls=6)`: the turn waits each time, and then goes on."""
    left = [CapacityUnavailable("busy", retry_after=30) for _ in range(10)]

    def ask() -> str:
        if left:
            raise left.pop()
        return "there"

    run = turn(lambda attempt: go([attempt.journal.model("first", says(1)), attempt.journal.model("ask", ask)]))
    for _ in range(40):
        worker.run()
        if status(run)[0] == "complete":
            break
        assert status(run)[:2] == ("waiting", "WAITING")
        clock.move(minutes=5)
        worker.tick()
    assert row(run).result == [1, "there"]
    assert asked == ["model 1"], "what was answered is not asked again"
    assert [one[3] for one in entries(run)] == ["done", *10 * ["failed"], "done"]
    assert amounts(run, "model_tokens") == (115, 0), "what was refused costs nothing"


@pytest.mark.parametrize("intervene", ["cancel", "supersede"])
def test_what_ends_a_run_while_its_model_answers_has_its_answer_dropped(worker: LocalWorker, intervene: str) -> None:
    def code(attempt: Any) -> Any:
        def call() -> str:
            if intervene == "cancel":
                flows.cancel(run)
            else:
                flows.supersede(row(run).intent, goal="Something else", by=None)
            asked.append("called")
            return "too late"

        return go(attempt.journal.model("ask", call))

    run = turn(code)
    worker.run()
    assert asked == ["called"]
    assert [one[3] for one in entries(run)] == ["begun"], "its answer is dropped"
    assert amounts(run, "model_tokens") == (100, 0), "and what was set aside counts"
    assert status(run)[0] == {"cancel": "cancelled", "supersede": "superseded"}[intervene]
    assert not invariants.scan()


ODD_USAGE = [
    {"input_tokens": -5}, {"input_tokens": "many"}, {"input_tokens": True}, {"input_tokens": 1.5}, {"cost": "NaN"}, {"cost": "-1"},
    {"cost": 0.1}, {"of": {"node": "done"}}, {"input_tokens": 10**30},
]  # fmt: skip


@pytest.mark.parametrize("usage", ODD_USAGE, ids=str)
@pytest.mark.req("N1")
def test_what_a_provider_says_that_was_used_cannot_give_a_budget_more(worker: LocalWorker, usage: Any) -> None:
    run = turn(lambda attempt: go(attempt.journal.model("ask", lambda: Paid("yes", usage=usage))))
    worker.run()
    spent, open_ = amounts(run, "model_tokens")
    assert (spent >= 0, open_) == (True, 0)
    assert status(run)[0] == "waiting", "a number that is none is a fault that somebody sees"
    (entry,) = JournalEntry.objects.filter(workflow_id=run.id)
    assert (entry.status, entry.code) == ("failed", "PAYLOAD_INVALID")


def test_a_result_that_cannot_be_stored_is_an_answer_to_the_model(worker: LocalWorker) -> None:
    def code(attempt: Any) -> Any:
        with pytest.raises(ToolFailed, match="PAYLOAD_INVALID"):
            attempt.journal.tool("read", {}, lambda: "x" * 300_000)
        return go()

    run = turn(code)
    worker.run()
    assert status(run)[0] == "complete"


def test_who_lost_the_workflow_begins_nothing_and_records_nothing(worker: LocalWorker) -> None:
    done: list[str] = []

    def before(attempt: Any) -> Any:
        flows.cancel(run)
        return attempt.journal.model("ask", says("never"))

    run = turn(before)
    worker.run()
    assert entries(run) == []
    assert asked == []

    def meanwhile(attempt: Any) -> Any:
        def call() -> str:
            flows.cancel(other)
            done.append("called")
            return "too late"

        return attempt.journal.model("ask", call)

    other = turn(meanwhile)
    worker.run()
    assert done == ["called"]
    assert [one[3] for one in entries(other)] == ["begun"], "its answer is dropped"
    assert amounts(other, "model_tokens") == (100, 0), "and what was set aside counts"
    assert status(other)[0] == "cancelled"


def test_a_late_owner_is_fenced(worker: LocalWorker) -> None:
    lost: list[bool] = []

    def code(attempt: Any) -> Any:
        if attempt.number == 1:
            with pytest.raises(LostOwnership):
                attempt.journal.model("ask", lambda: factories.lose_and_complete(run, worker))
            lost.append(True)
            raise LostOwnership
        return go(attempt.journal.model("ask", says("second")))

    run = turn(code)
    worker.run()
    assert lost
    assert row(run).result == "second"
    assert [(one[3], one[4]) for one in entries(run)] == [("lost", 1), ("done", 2)]


def test_it_is_refused_where_it_cannot_be(worker: LocalWorker) -> None:
    def code(attempt: Any) -> Any:
        with pytest.raises(DefinitionError, match="inside a transaction"), transaction.atomic():
            attempt.journal.model("ask", says(1))
        with pytest.raises(PayloadError, match="one line"):
            attempt.journal.tool("two\nlines", {}, does(1))
        with pytest.raises(PayloadError, match="not JSON"):
            attempt.journal.tool("read", {"at": object()}, does(1))
        return go()

    run = turn(code)
    worker.run()
    assert status(run)[0] == "complete"
    assert entries(run) == []

    factories.does["one"] = lambda attempt: attempt.journal
    other = factories.Line.start({})
    worker.run()
    assert row(other).error_code == "DEFINITION_ERROR"


def test_the_journal_has_a_bound(worker: LocalWorker, settings: Any) -> None:
    settings.OUTLAST = {**getattr(settings, "OUTLAST", {}), "MAX_JOURNAL_ENTRIES": 3}
    run = turn(lambda attempt: go([attempt.journal.unit("u", lambda: 1, arguments=n) for n in range(4)]))
    worker.run()
    assert row(run).error_code == "TURN_ENTRIES"
    assert len(entries(run)) == 3


def test_entries_say_what_they_are() -> None:
    assert {kind.value for kind in EntryKind} == {"model", "tool", "unit"}
    assert {status.value for status in EntryStatus} == {"begun", "waiting", "done", "failed", "lost", "stale"}
    assert another_worker is not None


@pytest.mark.req("O7")
def test_what_a_codec_seals_is_found_again_and_reads_as_nothing(worker: LocalWorker, settings: Any) -> None:
    settings.KEY_OF_TEST = base64.b64encode(bytes(range(32))).decode()
    codec = {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["setting:KEY_OF_TEST"]}
    settings.OUTLAST = {**getattr(settings, "OUTLAST", {}), "CODEC": codec}
    fatal = [True]

    def code(attempt: Any) -> Any:
        said = attempt.journal.model("ask", says({"secret": "swordfish"}))
        found = attempt.journal.tool("read", {"of": "swordfish"}, does(["swordfish"]))
        with pytest.raises(ToolFailed, match="UNCLASSIFIED_ERROR") as caught:
            attempt.journal.tool("fail", {}, does(ValueError("swordfish")))
        if fatal:
            raise Killed
        seen = [one.answer for one in attempt.journal.entries]
        return go([said, found, caught.value.said, seen])

    try:
        run = turn(code)
        worker = die(worker)
        fatal.clear()
        worker.run()
        assert len(asked) == 3, "nothing is called again"
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM outlast_journal j WHERE j::text LIKE '%%swordfish%%'")
            assert cursor.fetchone() == (0,)
        secret = {"secret": "swordfish"}
        failed = {"error": "UNCLASSIFIED_ERROR", "said": "swordfish"}
        assert payload.decode(row(run).result) == [secret, ["swordfish"], "swordfish", [secret, ["swordfish"], failed]]
    finally:
        payload.use(None)


@pytest.mark.req("O7")
def test_no_table_holds_a_models_reasoning(worker: LocalWorker) -> None:
    """Refused parts, and what the prompt was: nothing of it is anywhere in the record."""
    secret = "the-model-thinks-so"

    def code(attempt: Any) -> Any:
        attempt.journal.model("ask", says({"text": "yes"}), prompt=f"prompt {secret}")
        return go(attempt.journal.model("think", says({"parts": [{"part_kind": "thinking", "content": secret}]})))

    run = turn(code)
    worker.run()
    assert row(run).error_code == "PAYLOAD_INVALID"
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'outlast%%'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{secret}%"])
            assert cursor.fetchone() == (0,), table
