"""manage.py flows operations, resolve, and the operations that show names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows.models import Operation, Resolution
from flows.services.resolve import seen_of
from flows.testing import Clock, LocalWorker
from tests.factories import Line, called, row, status
from tests.support import doubting
from tests.support.commanding import Ran, cli
from tests.support.doubting import PayByTwo, PayMended, PayPlain, in_doubt, operation_of, undoing

__all__ = ["cli"]

pytestmark = pytest.mark.req("B5", "B7")

EVIL = "a\x1b[31mred\u202egninrut\x9b2J"


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> Iterator[None]:
    """Ann and Bob may say what became of an operation, Cat may not."""
    doubting.forget()
    may = Permission.objects.get(codename="resolve_operation")
    for name in ("ann", "bob"):
        get_user_model().objects.create_user(name).user_permissions.add(may)
    get_user_model().objects.create_user("cat")
    yield
    doubting.forget()


def say(cli: Any, operation: Operation, verdict: str, *more: object, by: str = "ann", reason: str = "I asked.") -> Ran:
    ran: Ran = cli("resolve", operation.pk, "--verdict", verdict, "--reason", reason, "--by", by, *more)
    return ran


def again(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


# ---------------------------------------------------------------- operations


def test_operations_one_line_each_the_newest_run_first(cli: Any, worker: LocalWorker) -> None:
    settled = PayPlain.start({})
    worker.run()
    doubtful = in_doubt(worker)
    ran = cli("operations")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "2 shown\n")
    assert lines[0].split()[:5] == ["ID", "STATUS", "KIND", "FLOW", "CODE"]
    assert [line.split()[:4] for line in lines[1:]] == [
        [doubtful.pk, "uncertain", "effect", "t-doubt-plain@1"],
        [operation_of(settled).pk, "succeeded", "effect", "t-doubt-plain@1"],
    ]
    assert lines[1].split()[-1] == seen_of(doubtful)


def test_operations_can_be_narrowed(cli: Any, worker: LocalWorker) -> None:
    first = in_doubt(worker, key="a")
    failed = undoing(worker)
    second = in_doubt(worker)

    def ids(*arguments: object) -> list[str]:
        return [one["id"] for one in cli("operations", "--json", *arguments).json]

    assert ids("--uncertain") == [first.pk, second.pk], "the longest in doubt first"
    assert ids("--workflow", "t-doubt-plain:a") == ids("--uncertain", "--workflow", first.workflow_id) == [first.pk]
    assert ids("--workflow", failed.workflow_id) == [failed.of_id, failed.pk]
    assert ids("--limit", "1") == [second.pk]
    assert cli("operations", "--limit", "1").err == "1 shown; there may be more (--limit)\n"
    assert cli("operations", "--workflow", "t-doubt-plain:nothing").code == 1


def test_operations_as_json_is_all_that_is_known(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker, request={"amount": 4711})
    (found,) = cli("operations", "--json").json
    assert (found["request"], found["request_digest"]) == ({"amount": 4711}, operation.request_digest)
    assert (found["workflow"], found["flow"], found["node"]) == (str(operation.workflow_id), "t-doubt-plain", "pay")
    assert (found["status"], found["seen"], found["code"]) == ("uncertain", seen_of(operation), "NOT_RECONCILABLE")


def test_no_operations_are_nothing_on_stdout(cli: Any) -> None:
    assert cli("operations") == Ran(0, "", "0 shown\n")
    assert cli("operations", "--json").json == []


def test_an_id_is_never_cut(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker)
    long = f"{operation.workflow_id}/{'x' * 100}"
    Operation.objects.create(
        id=long, workflow_id=operation.workflow_id, activity_seq=9, node="x", kind="effect", status="planned", attempt=0, epoch=0,
        intent_version=1, external_id="",
    )  # fmt: skip
    assert long in cli("operations").out
    assert long in cli("show", operation.workflow_id).out


# ---------------------------------------------------------------- show


def test_show_names_the_operations_of_the_run(cli: Any, worker: LocalWorker) -> None:
    failed = undoing(worker)
    shown = cli("show", failed.workflow_id)
    lines = shown.out.split("\n\n")[-1].splitlines()
    assert lines[0].split()[:4] == ["OPERATION", "STATUS", "KIND", "CODE"]
    assert [line.split()[:3] for line in lines[1:]] == [
        [failed.of_id, "succeeded", "effect"],
        [failed.pk, "failed", "compensation"],
    ]
    found = cli("show", failed.workflow_id, "--json").json
    assert [one["id"] for one in found["operations"]] == [failed.of_id, failed.pk]
    assert found["id"] == str(failed.workflow_id)
    plain = Line.start({})
    assert "OPERATION" not in cli("show", plain.id).out
    assert cli("show", plain.id, "--json").json["operations"] == []


# ---------------------------------------------------------------- resolve


def test_it_happened(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker)
    ran = say(cli, operation, "happened", "--external-id", "r-1", "--evidence", '{"receipt": 1}')
    assert ran == Ran(0, "accepted\n", "Recorded; the workflow goes on from it.\n")
    worker.run()
    assert (row(operation.workflow_id).result, called("pay"), again(operation).external_id) == ({"receipt": 1}, 1, "r-1")
    kept = Resolution.objects.get()
    assert (kept.by_label, kept.reason) == ("ann", "I asked.")


def test_the_other_verdicts(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker)
    assert say(cli, operation, "cannot_tell").out == "kept\n"
    ran = say(cli, operation, "did_not_happen", "--json")
    assert (ran.code, ran.json) == (0, {"code": "accepted", "operation": operation.pk, "verdict": "did_not_happen"})
    worker.run()
    assert status(operation.workflow_id)[0] == "complete"
    failed = undoing(worker)
    assert say(cli, failed, "retry").out == "accepted\n"
    doubting.refund_does.append(doubting.denied)
    worker.run()
    assert say(cli, failed, "give_up").out == "accepted\n"
    assert status(failed.workflow_id)[0] == "cancelled"


def test_what_failed_may_have_been_done_by_hand(cli: Any, worker: LocalWorker) -> None:
    failed = undoing(worker)
    assert "says that it was done by hand" in cli("show", str(failed.workflow_id)).out
    assert say(cli, failed, "happened", "--external-id", "bank-1").out == "accepted\n"
    assert (Operation.objects.get(pk=failed.pk).external_id, status(failed.workflow_id)[0]) == ("bank-1", "cancelled")


def test_a_mended_probe_is_asked_again(cli: Any, worker: LocalWorker, clock: Clock) -> None:
    operation = in_doubt(worker, PayMended)
    assert say(cli, operation, "ask_again").out == "asked_anyway\n"
    for _ in range(2):
        clock.move(seconds=5)
        worker.run()
    ran = say(cli, operation, "ask_again")
    assert (ran.out, ran.err) == (
        "accepted\n",
        "Recorded; the provider is asked again on the cleanup queue, and the workflow goes on once it is known.\n",
    )
    doubting.probe_says.append(doubting.Happened())
    worker.run()
    assert Operation.objects.get(pk=operation.pk).status == "succeeded"


def test_a_second_person_is_asked_for(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker, PayByTwo)
    ran = say(cli, operation, "happened")
    assert (ran.code, ran.out) == (0, "needs_second\n")
    assert "a second person must say the same" in ran.err
    assert (say(cli, operation, "happened").code, say(cli, operation, "happened", by="bob").out) == (1, "accepted\n")


def test_a_refusal_is_exit_1_with_its_code_and_its_sentence(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker)
    for ran, code, sentence in (
        (say(cli, operation, "happened", by="cat"), "not_permitted", "You may not say what became of an operation: that needs"),
        (say(cli, operation, "give_up"), "not_offered", "That cannot be said of an operation in this status."),
        (say(cli, operation, "happened", "--seen", "uncertain:77"), "moved", "look again"),
        (say(cli, operation, "ask_again"), "nobody_to_ask", "declares no reconcile function"),
    ):
        assert (ran.code, ran.out) == (1, f"{code}\n")
        assert sentence in ran.err
    silent = say(cli, operation, "happened", reason=" ")
    assert (silent.code, silent.out) == (1, "")
    assert "Say how you know" in silent.err
    assert not Resolution.objects.exists()
    assert say(cli, operation, "happened", "--seen", seen_of(operation)).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing", "--verdict", "happened", "--reason", "x", "--by", "ann"], 1, "There is no operation nothing."),
        ([EVIL, "--verdict", "happened", "--reason", "x", "--by", "ann"], 1, "There is no operation"),
        (["a", "--verdict", "happened", "--reason", "x", "--by", "nobody"], 1, "There is no user 'nobody'."),
        (["a", "--verdict", "happened", "--reason", "x", "--by", ""], 1, "pass by=user"),
        (["a", "--verdict", "happened", "--reason", "x", "--by", "ann", "--evidence", "receipt"], 2, "--evidence is not JSON"),
        (["a", "--verdict", "retry", "--reason", "x", "--by", "ann", "--external-id", "r"], 2, "--external-id"),
        (["a", "--verdict", "happened", "--reason", "\ud800", "--by", "ann"], 2, "reason: [U+D800] is not text"),
        (["a", "--verdict", "perhaps", "--reason", "x", "--by", "ann"], 2, "invalid choice"),
        (["a", "--verdict", "happened", "--by", "ann"], 2, "--reason"),
        (["a", "--verdict", "happened", "--reason", "x"], 2, "--by"),
    ],
)
def test_what_makes_no_sense_is_said_in_words(cli: Any, arguments: list[str], code: int, message: str) -> None:
    ran = cli("resolve", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert not Resolution.objects.exists()


def test_nothing_in_the_data_can_act_on_a_terminal(cli: Any, worker: LocalWorker) -> None:
    operation = in_doubt(worker, request={EVIL: EVIL}, key=EVIL)
    outputs = [say(cli, operation, "happened", "--external-id", EVIL, "--evidence", json.dumps(EVIL), reason=EVIL)]
    outputs += [cli("operations"), cli("operations", "--json"), cli("show", operation.workflow_id)]
    outputs += [cli("show", operation.workflow_id, "--json"), cli("operations", "--workflow", EVIL)]
    for ran in outputs:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ran.out + ran.err)
    assert outputs[2].json[0]["external_id"] == EVIL, "programs get the data as it is"
