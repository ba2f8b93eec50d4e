"""Answers to a form that meet other answers, a cancel and a new goal, with files: one winner, a defined loser, and no file without an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

import flows
from approvals.api import Answered, decide
from approvals.models import Request, Review
from flows.models import Wait
from tests.race.test_approvals import in_background, together, until_blocked
from tests.support.approving import World, world
from tests.support.filling import OrderParts, file, fill

__all__ = ["world"]

pytestmark = pytest.mark.req("C6")

ROUNDS = 25


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def kept(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def named() -> set[str]:
    return {values["contract"]["path"] for values in Review.objects.filter(refused="").values_list("values", flat=True)}


def answering(world: World, request: Request, by: Any, **values: Any) -> Callable[[], Answered]:
    return lambda: fill(world, request, by=by, files={"contract": file(by.username.encode())}, **values)


def test_of_two_who_answer_at_once_the_second_loses(world: World, folder: Path) -> None:
    for _ in range(ROUNDS):
        request = world.ask(flow=OrderParts)
        told = together(answering(world, request, world.rita, count=1), answering(world, request, world.ron, count=2))
        assert sorted(one.code for one in told) == ["ANSWERED_BEFORE", "accepted"]
        winner = next(number for number, one in enumerate(told) if one)
        taken = Review.objects.get(request=request, refused="")
        assert (taken.by_label, taken.values["count"]) == (("rita", "ron")[winner], winner + 1)
        assert Wait.objects.get(pk=request.wait_id).evidence["answer"] == taken.values
        assert world.refusals(request) == ["ANSWERED_BEFORE"]
        assert kept(folder) == named(), "the loser's file is gone"
    world.worker.run()


def test_of_two_clicks_at_once_the_second_loses_nothing(world: World, folder: Path) -> None:
    for _ in range(ROUNDS):
        request = world.ask(flow=OrderParts)
        told = together(answering(world, request, world.rita), answering(world, request, world.rita))
        assert sorted(one.code for one in told) == ["accepted", "already"]
        assert Review.objects.filter(request=request).count() == 1
        assert kept(folder) == named()


def test_who_waits_for_the_first_one_holds_no_lock_and_loses(world: World, folder: Path) -> None:
    request, pids = world.ask(flow=OrderParts), dict[str, int]()
    with transaction.atomic():
        assert fill(world, request)
        second = in_background(answering(world, request, world.ron), pids, "ron")
        until_blocked(pids, "ron")
        assert not second.done()
    assert second.result(20).code == "ANSWERED_BEFORE"
    assert kept(folder) == set()


@pytest.mark.parametrize("ending", ["cancel", "supersede"])
def test_an_answer_that_meets_the_end_of_its_workflow_never_runs(world: World, folder: Path, ending: str) -> None:
    for _ in range(ROUNDS):
        request = world.ask(flow=OrderParts)
        end = (
            (lambda run=request.workflow: flows.cancel(run))
            if ending == "cancel"
            else (lambda run=request.workflow: flows.supersede(run, goal="Other parts"))
        )
        told, ended = together(answering(world, request, world.rita), end)
        assert ended
        if told:
            assert world.status(request) == "answered"
        else:
            assert told.code == ("WORKFLOW_ENDED" if ending == "cancel" else "INTENT_SUPERSEDED")
            assert world.status(request) == "cancelled"
        world.worker.run()
        row = world.workflow(request)
        assert (row.status, row.result) == ("cancelled" if ending == "cancel" else "superseded", None)
        assert kept(folder) == named()


def test_whoever_approves_while_somebody_fills_in_approves_nothing(world: World, folder: Path) -> None:
    for _ in range(ROUNDS // 5):
        request = world.ask(flow=OrderParts)
        approve = {"verdict": "approve", "digest": request.digest, "by": world.ron}
        told, decided = together(
            answering(world, request, world.rita), lambda row=request, given=approve: decide(row.pk, **given)
        )
        assert told
        assert decided.code in ("ANSWER_NOT_OFFERED", "ANSWERED_BEFORE")
        assert world.status(request) == "answered"
