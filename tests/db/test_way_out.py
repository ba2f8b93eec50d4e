"""What a notice says of what it is about: which operation, its page, and the command that settles it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.management import call_command

import flows
from flows import COMPLETE, Activity, Commits, End, commitments
from flows.core.effects import Effect, OperationStatus
from flows.models import Commitment, Notice, Operation
from flows.services import notices, settling, way_out
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support import doubting
from tests.support.doubting import PayMended, in_doubt, undoing

pytestmark = pytest.mark.req("B4", "B5")

USING = "default"
SITE = "https://admin.example/admin"


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    doubting.forget()
    yield
    doubting.forget()


@pytest.fixture
def robin(transactional_db: None, settings: Any) -> Any:
    settings.OUTLAST = {**settings.OUTLAST, "ADMIN_URL": SITE}
    return get_user_model().objects.create_superuser("robin", email="robin@example.com")


def sent() -> str:
    mail.outbox.clear()
    assert notices.send_owed(USING) == 1
    return str(mail.outbox[0].body)


def command(body: str, number: int = -1) -> list[str]:
    """The command in it, as somebody would paste it."""
    line = [line for line in body.splitlines() if "manage.py flows resolve" in line][number]
    return line.partition("manage.py ")[2].split()


def test_it_names_the_effect_its_page_and_the_command(worker: LocalWorker, robin: Any) -> None:
    operation = in_doubt(worker, key="order-7", by=robin)
    body = sent()
    assert "effect t-doubt-plain.pay, key order-7: uncertain, code NOT_RECONCILABLE" in body
    assert f"In the admin: {SITE}/outlast_flows/operation/{quote(operation.pk)}/change/" in body
    assert f"In the admin: {SITE}/outlast_flows/workflow/{operation.workflow_id}/change/" in body
    assert f"flows show {operation.workflow_id}" in body
    words = command(body)
    assert words[:4] == ["flows", "resolve", operation.pk, "--verdict"]
    assert words[4] == "happened|did_not_happen|cannot_tell"
    call_command(*words[:4], "happened", "--reason", "I asked.", "--by", "robin")
    assert Operation.objects.get(pk=operation.pk).status == "succeeded"


def test_without_the_admins_address_it_says_where_in_the_admin(worker: LocalWorker, robin: Any, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ADMIN_URL": ""}
    operation = in_doubt(worker, by=robin)
    body = sent()
    assert f"In the admin: outlast_flows/operation/{quote(operation.pk)}/change/" in body
    assert str(operation.workflow_id) in body.split("uncertain")[0]


def test_what_can_be_asked_again_says_so(worker: LocalWorker, clock: Clock, robin: Any) -> None:
    in_doubt(worker, PayMended, by=robin)
    for _ in range(2):
        clock.move(seconds=5)
        worker.run()
    assert command(sent())[4] == "happened|did_not_happen|cannot_tell|ask_again"


def test_a_refund_that_failed(worker: LocalWorker, robin: Any) -> None:
    refund = undoing(worker, by=robin)
    body = sent()
    assert f"compensation t-doubt.pay, {refund.workflow_id}: failed" in body
    assert command(body)[2:5] == [refund.pk, "--verdict", "happened|retry|give_up"]


def test_a_named_effect_and_no_other(worker: LocalWorker, robin: Any, declare: Any) -> None:
    def both(attempt: Any) -> Any:
        with attempt.effect("label") as one:
            one.call(lambda: 1)
        with attempt.effect("mail"):
            raise ConnectionResetError

    two = {"label": Effect(), "mail": Effect()}
    flow = declare("t-way-out", pay=Activity(factories.work, effects=two, then="done"), done=End(COMPLETE))
    does["pay"] = both
    flow.start({}, by=robin)
    worker.run()
    body = sent()
    assert "effect t-way-out.pay (mail)" in body
    assert "label" not in body


def test_what_was_settled_meanwhile_is_not_named(worker: LocalWorker, robin: Any) -> None:
    operation = in_doubt(worker, by=robin)
    flows.cancel(operation.workflow_id)
    call_command("flows", "resolve", operation.pk, "--verdict", "did_not_happen", "--reason", "x", "--by", "robin")
    assert "flows resolve" not in sent()


def test_a_commitment_that_only_a_person_can_end(worker: LocalWorker, robin: Any, declare: Any) -> None:
    hold = Activity(factories.work, commits=(Commits("hold"), Commits("lease", deferrable=True)), then="done")
    run = declare("t-way-hold", hold=hold, done=End(COMPLETE)).start({}, key="k-1", by=robin)
    worker.run()
    held = Commitment.objects.get(name="hold")
    body = sent()
    assert "commitment hold of t-way-hold.hold, key k-1: active" in body
    assert f"{SITE}/outlast_flows/commitment/{held.pk}/change/" in body
    assert f"flows commitments fulfil {held.pk} --reason" in body
    assert "lease" not in body
    assert commitments.fulfil(held.pk, by=robin, reason="used")
    assert status(run)[0] == "complete"


def test_a_breach_names_its_commitment(worker: LocalWorker, clock: Clock, robin: Any, declare: Any) -> None:
    until = flows.Deadline(hours=1, then=flows.ESCALATE)
    hold = Activity(factories.work, commits=Commits("hold", release=doubting.release, deadline=until), then="go")
    go = flows.Wait("t.way", key="k", deadline=flows.Deadline(days=9, then=flows.ESCALATE), then="done")
    declare("t-way-breach", hold=hold, go=go, done=End(COMPLETE)).start({}, by=robin)
    worker.run()
    clock.move(hours=2)
    worker.tick()
    assert "commitment hold of t-way-breach.hold" in sent()


def test_an_effect_that_came_late(worker: LocalWorker, robin: Any) -> None:
    operation = in_doubt(worker, by=robin)
    Notice.objects.all().delete()
    call_command("flows", "resolve", operation.pk, "--verdict", "did_not_happen", "--reason", "x", "--by", "robin")
    assert not settling.settle(
        operation.pk, operation.workflow_id, status=OperationStatus.SUCCEEDED, source="attempt", attempt=1, using=USING
    )
    body = sent()
    assert f"effect t-doubt-plain.pay, {operation.workflow_id}: planned" in body
    assert "flows resolve" not in body, "nothing can be said of it any more"


def test_what_hides_in_a_key_is_shown(worker: LocalWorker, robin: Any) -> None:
    operation = in_doubt(worker, key="a\n\u202eevil", by=robin)
    body = sent()
    assert "\u202e" not in body
    assert operation.pk in body
    assert row(operation.workflow_id).key not in body


@pytest.mark.parametrize("pk", ["0a/pay/1", "a_b", 'x":/_#?;@&=+$,[]<>%\n\\', "ä 1"])
def test_addresses_are_those_of_the_admin(settings: Any, pk: str) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ADMIN_URL": ""}
    assert way_out.admin_path("operation", pk) == f"outlast_flows/operation/{quote(pk)}/change/"
