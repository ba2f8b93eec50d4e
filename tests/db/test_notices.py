"""Notices: owed by the arrow itself, sent at least once, safe codes only, given up after a long while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail

import flows
from flows import COMPLETE, FAILED, Activity, Deadline, End
from flows.errors import CompetenceFailure
from flows.models import Notice
from flows.services import notices, outbox
from flows.store import tick
from flows.testing import Clock, LocalWorker
from tasks import tasks
from tests import factories
from tests.factories import Dated, Line, does, failing, row

pytestmark = pytest.mark.req("B4")

USING = "default"
Declare = Callable[..., type[flows.Flow]]


@pytest.fixture
def robin(transactional_db: None) -> Any:
    return get_user_model().objects.create_user("robin", email="robin@example.com")


def owed() -> list[tuple[str, str]]:
    return list(Notice.objects.order_by("id").values_list("outcome", "code"))


def suspended(worker: LocalWorker, by: Any, **options: Any) -> Any:
    does["one"] = failing(1, lambda: CompetenceFailure("secret"))
    run = Line.start({}, by=by, **options)
    worker.run()
    return run


def test_a_suspension_tells_the_accountable_user(worker: LocalWorker, robin: Any, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ADMIN_URL": "https://admin.example/", "NOTICE_FROM": "outlast@example.com"}
    run = suspended(worker, robin, key="k1")
    assert owed() == [("HUMAN_REQUIRED", "COMPETENCE_FAILURE")]
    found = tick.look(2.0, 0.0, USING)
    assert found is not None
    assert found.notices
    assert notices.send_owed(USING) == 1
    (message,) = mail.outbox
    assert (message.to, message.from_email, message.subject) == (
        ["robin@example.com"],
        "outlast@example.com",
        "t-line k1: HUMAN_REQUIRED",
    )
    assert f"https://admin.example/outlast_flows/workflow/{run.id}/change/" in message.body
    assert "COMPETENCE_FAILURE" in message.body
    assert "Goal: t-line k1\nDecision: a person looks at COMPETENCE_FAILURE, then resumes or cancels\n" in message.body
    assert "secret" not in message.body
    assert notices.send_owed(USING) == 0
    assert Notice.objects.get().sent_at is not None
    found = tick.look(2.0, 0.0, USING)
    assert found is not None
    assert not found.notices


def test_the_clock_has_them_sent_by_a_task_of_their_own(worker: LocalWorker, robin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail server that hangs is not to stop the clock."""
    published = []
    monkeypatch.setattr(tasks.notices, "apply_async", lambda **how: published.append(how["queue"]))
    tasks.tick()
    assert published == []
    suspended(worker, robin)
    tasks.tick()
    assert (published, mail.outbox) == (["control"], [])
    tasks.notices()
    assert len(mail.outbox) == 1
    tasks.tick()
    assert published == ["control"]


def test_while_one_sender_has_a_notice_the_clock_and_others_leave_it_alone(
    worker: LocalWorker, clock: Clock, robin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However old it is: the mail server is slow today."""
    suspended(worker, robin)
    clock.move(days=2)
    send, met = notices.send_mail, []

    def slow(*args: Any) -> int:
        clock.move(seconds=20)
        found = tick.look(2.0, 0.0, USING)
        assert found is not None
        met.append((found.notices, notices.send_owed(USING)))
        return int(send(*args))

    monkeypatch.setattr(notices, "send_mail", slow)
    assert notices.send_owed(USING) == 1
    assert (met, len(mail.outbox)) == ([(False, 0)], 1)


def test_what_there_was_no_time_for_is_left_to_others(worker: LocalWorker, robin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        suspended(worker, robin)
    moments = iter([0.0, 0.0, 1.0, outbox.CLAIMED])
    with monkeypatch.context() as late:
        late.setattr(outbox, "monotonic", lambda: next(moments, outbox.CLAIMED))
        assert notices.send_owed(USING) == 1
    assert sorted(Notice.objects.values_list("tries", flat=True)) == [0, 0, 1]
    assert notices.send_owed(USING) == 2


def test_a_failed_end_tells_and_a_good_one_does_not(worker: LocalWorker, robin: Any, declare: Declare) -> None:
    declare("t-fails", one=Activity(factories.work, then="no"), no=End(FAILED)).start({}, by=robin)
    declare("t-works", one=Activity(factories.work, then="yes"), yes=End(COMPLETE)).start({}, by=robin)
    worker.run()
    assert owed() == [("FAILED", "ENDED_AT:no")]


def test_an_expired_deadline_tells(worker: LocalWorker, clock: Clock, robin: Any) -> None:
    Dated.start({"key": "k"}, by=robin)
    worker.run()
    clock.move(days=3)
    worker.tick()
    worker.run()
    assert owed() == [("HUMAN_REQUIRED", "DEADLINE_EXPIRED")]


def test_a_deadline_that_cancels_tells(worker: LocalWorker, clock: Clock, robin: Any, declare: Declare) -> None:
    """Nobody asked for this cancel; the accountable user learns of it."""
    deadline = Deadline(hours=1, then=flows.CANCEL)
    ask = flows.Wait("t.n", key="k", deadline=deadline, then="done")
    declare("t-cancels", ask=ask, done=End(COMPLETE)).start({}, by=robin)
    worker.run()
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert owed() == [("CANCELLED", "WAIT_EXPIRED")]


def test_what_a_person_did_is_not_told_back(worker: LocalWorker, robin: Any) -> None:
    flows.cancel(Line.start({}, by=robin), by=robin)
    flows.supersede(Line.start({}, by=robin), goal="x", by=robin)
    assert owed() == []


def test_without_a_user_nobody_is_told(worker: LocalWorker) -> None:
    suspended(worker, None)
    assert owed() == []


def test_a_user_without_an_address_is_not_tried_for_ever(worker: LocalWorker) -> None:
    suspended(worker, get_user_model().objects.create_user("nomail"))
    notices.send_owed(USING)
    assert mail.outbox == []
    assert Notice.objects.get().sent_at is not None


def test_a_subject_is_one_line(worker: LocalWorker, robin: Any) -> None:
    suspended(worker, robin, key="a\nBcc: all@example.com")
    assert notices.send_owed(USING) == 1
    assert mail.outbox[0].subject == "t-line a Bcc: all@example.com: HUMAN_REQUIRED"


def test_a_mail_server_that_is_away_for_hours_loses_no_notice(
    worker: LocalWorker, clock: Clock, robin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = suspended(worker, robin)
    tries = []

    def away(*args: Any) -> None:
        tries.append(args)
        raise ConnectionRefusedError

    with monkeypatch.context() as broken:
        broken.setattr(notices, "send_mail", away)
        for _ in range(40):
            clock.move(seconds=2)
            notices.send_owed(USING)
        assert 2 <= len(tries) <= 6
        for _ in range(12):
            clock.move(minutes=10)
            notices.send_owed(USING)
    assert Notice.objects.get().gave_up_at is None
    clock.move(hours=5)
    assert notices.send_owed(USING) == 1
    assert row(run).outcome == "HUMAN_REQUIRED"


def test_a_notice_that_nobody_takes_is_given_up_visibly(
    worker: LocalWorker, clock: Clock, robin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended(worker, robin)

    def away(*args: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(notices, "send_mail", away)
    for _ in range(20):
        clock.move(hours=8)
        notices.send_owed(USING)
    notice = Notice.objects.get()
    assert notice.gave_up_at is not None
    assert notice.sent_at is None
    assert (notice.tries, notice.why) == (outbox.MAX_TRIES, "ConnectionRefusedError")


def test_one_broken_notice_does_not_hold_up_the_others(worker: LocalWorker, robin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        suspended(worker, robin)
    send, count = notices.send_mail, []

    def sometimes(*args: Any) -> int:
        count.append(1)
        if len(count) == 1:
            raise ConnectionRefusedError
        return int(send(*args))

    monkeypatch.setattr(notices, "send_mail", sometimes)
    assert notices.send_owed(USING) == 2


def test_notices_of_a_rolled_back_arrow_are_not_owed(worker: LocalWorker, robin: Any) -> None:
    run = Line.start({}, by=robin)
    owned = factories.take_one(worker)
    flows.cancel(run)
    factories.fail(owned, CompetenceFailure())
    assert owed() == []
