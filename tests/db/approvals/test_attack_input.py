"""Input that is well formed and still no good: moments that only one side knows, an answer that says two things, the same cleaning twice."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage

from approvals.api import BadDelegation, BadPart, BadPeriod, delegate, remove_unreferenced, waiting
from approvals.models import Request, Review
from approvals.services import uploads
from flows import COMPLETE, ESCALATE, Ask, Deadline, End, Field, Flow, Sleep
from flows.models import Workflow
from flows.services.clock import now
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.db.approvals.test_standing_in import permit
from tests.support.api import api
from tests.support.approving import ROLE, World
from tests.support.commanding import approvals_cli
from tests.support.filling import OrderParts, file, fill

__all__ = ["api", "approvals_cli"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F2", "F3")]

#: Python knows offsets of less than a day, PostgreSQL of less than sixteen hours.
EAST, WEST = (timezone(sign * timedelta(hours=23, minutes=59)) for sign in (1, -1))


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize("zone", [EAST, WEST])
def test_a_delegation_takes_a_moment_of_any_zone(world: World, zone: timezone) -> None:
    permit(world.rita, "delegate_own")
    starts, until = ((now("default") + timedelta(hours=hours)).astimezone(zone) for hours in (1, 2))
    made = delegate(world.rita, world.vera, starts=starts, until=until, reason="x", by=world.rita)
    made.refresh_from_db()
    assert (made.starts_at, made.ends_at) == (starts, until)


@pytest.mark.parametrize(
    "moment", [datetime.max.replace(tzinfo=WEST), datetime.min.replace(tzinfo=EAST), "2030-01-01T00:00:00Z", None, 7]
)
def test_what_is_no_moment_is_said_so(world: World, moment: Any) -> None:
    permit(world.rita, "delegate_own")
    for given in ({"until": moment}, {"until": now("default") + timedelta(hours=1), "starts": moment or "x"}):
        with pytest.raises(BadDelegation, match="with a time zone"):
            delegate(world.rita, world.vera, reason="x", by=world.rita, **given)


@pytest.mark.parametrize("zone", [EAST, WEST])
def test_so_does_the_api(world: World, api: Any, zone: timezone) -> None:
    permit(world.rita, "delegate_own")
    until = (now("default") + timedelta(days=2)).astimezone(zone).isoformat()
    found = api("rita").post("/delegations", {"to": "vera", "until": until, "reason": "x"})
    assert found.status == 201
    assert datetime.fromisoformat(found.data["ends_at"]) == datetime.fromisoformat(until)


@pytest.mark.parametrize("zone", [EAST, WEST])
@pytest.mark.parametrize("year", ["0001", "2030", "9999"])
def test_a_cursor_that_somebody_wrote_leads_to_a_page_or_is_none(world: World, api: Any, zone: timezone, year: str) -> None:
    request = world.ask()
    moment = datetime(int(year), 12 if year == "9999" else 1, 31 if year == "9999" else 1, tzinfo=zone)
    text = json.dumps(["mine", 1, moment.isoformat()])
    found = api("rita").get("/requests", cursor=base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))
    assert found.status in (200, 400)
    if found.status == 200:
        assert [row["id"] for row in found.data["requests"]] in ([], [request.pk])


def test_a_period_may_be_of_any_zone(world: World) -> None:
    world.ask()
    end = (now("default") + timedelta(hours=1)).astimezone(EAST)
    assert waiting(since=end - timedelta(days=1), until=end.astimezone(WEST)).audiences
    with pytest.raises(BadPeriod, match="with a time zone"):
        waiting(since=datetime(2030, 1, 1), until=end)  # noqa: DTZ001 - that is the mistake


# ---------------------------------------------------------------- questions that cannot be kept


class AskWhatCannotBeKept(Flow):
    """The author's code makes text that no database takes."""

    ask = Ask([Field("x")], why=lambda state: "a\x00b", role=ROLE, deadline=Deadline(hours=1, then=ESCALATE), then="done")
    done = End(COMPLETE)


class AskWhoCannotBe(Flow):
    """And a name that nobody can have."""

    ask = Ask([Field("x")], to=lambda state: "ri\x00ta", deadline=Deadline(hours=1, then=ESCALATE), then="done")
    done = End(COMPLETE)


class SleepFarEast(Flow):
    """And a moment of a zone that only Python knows."""

    sleep = Sleep(until=lambda state: (state.now + timedelta(hours=1)).astimezone(EAST), then="done")
    done = End(COMPLETE)


@pytest.mark.parametrize("flow", [AskWhatCannotBeKept, AskWhoCannotBe])
def test_a_question_that_cannot_be_kept_stops_for_a_person(world: World, flow: type[Flow]) -> None:
    run = flow.start({}, by=world.robin)
    world.worker.run()
    row = Workflow.objects.get(pk=run.id)
    assert (row.outcome, row.error_code) == ("HUMAN_REQUIRED", "DEFINITION_FAULT")
    assert not Request.objects.exists()


def test_a_form_that_is_too_large_to_be_kept_stops_for_a_person(world: World, settings: Any) -> None:
    settings.OUTLAST = {"MAX_RESULT_BYTES": 300}
    run = OrderParts.start({}, by=world.robin)
    world.worker.run()
    row = Workflow.objects.get(pk=run.id)
    assert (row.outcome, row.error_code) == ("HUMAN_REQUIRED", "DEFINITION_FAULT")
    assert not Request.objects.exists()


def test_a_sleep_ends_at_a_moment_of_any_zone(world: World) -> None:
    run = SleepFarEast.start({}, by=world.robin)
    world.worker.run()
    assert Workflow.objects.get(pk=run.id).status == "waiting"
    world.clock.move(hours=1, seconds=1)
    world.worker.tick()
    world.worker.run()
    assert Workflow.objects.get(pk=run.id).status == "complete"


# ---------------------------------------------------------------- an answer that says two things


@pytest.mark.parametrize("verdict", ["approve", "deny", "changes"])
@pytest.mark.parametrize("keep", [[0], []])
def test_who_keeps_a_part_does_not_approve_the_whole(
    world: World, api: Any, approvals_cli: Any, verdict: str, keep: list[int]
) -> None:
    """A front end that sends what was ticked with the wrong verdict must not have all of it approved."""
    request = world.ask(FILES, flow=DeleteFiles)
    with pytest.raises(BadPart, match="belongs to the verdict"):
        world.decide(request, verdict, keep=keep, comment="x")
    found = api("rita").post(
        f"/requests/{request.pk}/decide", {"verdict": verdict, "keep": keep, "comment": "x"}, seen=request.digest
    )
    assert (found.status, found.code) == (422, "BAD_PART")
    if keep:
        by = ("--by", "rita", "--digest", request.digest, "--comment", "x")
        assert "belongs to the verdict" in approvals_cli("decide", request.pk, "--verdict", verdict, "--keep", *keep, *by).err
    assert (world.status(request), Review.objects.count()) == ("pending", 0)


@pytest.mark.req("C6")
@pytest.mark.parametrize("name", ["note", "title", "urgent", "size", "wanted_by", "count"])
def test_a_file_where_none_is_asked_for_is_not_lost_without_a_word(
    world: World, settings: Any, tmp_path: Path, name: str
) -> None:
    settings.MEDIA_ROOT = tmp_path
    request = world.ask(flow=OrderParts)
    told = fill(world, request, files={name: file()}, **{name: None})
    assert (told.code, set(told.errors)) == ("ANSWER_INVALID", {name})
    assert (world.status(request), Review.objects.count()) == ("pending", 0)
    assert not list(tmp_path.rglob("*.*"))


# ---------------------------------------------------------------- two who clean up


@pytest.mark.req("C6")
def test_two_who_remove_the_same_leftovers_remove_them_once(
    world: World, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = tmp_path
    request = world.ask(flow=OrderParts)
    for number in range(3):
        uploads.keep(request.pk, {"contract": uploads.measured("contract", file(b"%d" % number), 100)})
    assert fill(world, request, files={"contract": file()})
    real, other = FileSystemStorage.get_modified_time, []

    def overtaken(self: FileSystemStorage, name: str) -> datetime:
        """The other one is faster by one look."""
        if not other:
            other.append(0)
            other[0] = remove_unreferenced(older_than=timedelta(0))
        return real(self, name)

    monkeypatch.setattr(FileSystemStorage, "get_modified_time", overtaken)
    assert (remove_unreferenced(older_than=timedelta(0)), other) == (0, [3])
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1, "what the answer names stays"


class Objects(FileSystemStorage):
    """As a store of objects does it: there are names with slashes in them, and no folders."""

    def exists(self, name: str) -> bool:
        return Path(self.path(name)).is_file()


@pytest.mark.req("C6")
def test_leftovers_are_found_where_there_are_no_folders(world: World, settings: Any, tmp_path: Path) -> None:
    backend = {"BACKEND": f"{__name__}.Objects", "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = {**settings.STORAGES, "default": backend}
    assert remove_unreferenced(older_than=timedelta(0)) == 0
    request = world.ask(flow=OrderParts)
    uploads.keep(request.pk, {"contract": uploads.measured("contract", file(), 100)})
    assert fill(world, request, files={"contract": file()})
    assert remove_unreferenced(older_than=timedelta(0)) == 1
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
