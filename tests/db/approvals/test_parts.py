"""A part of a candidate that a reviewer keeps: a new candidate, asked about anew; what is executed is exactly that part."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.api import BadPart
from approvals.models import Request, Review
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Deadline, Decision, End, Flow, Gate, Visits
from flows.models import Wait
from tests.support import approving
from tests.support.approving import ROLE, World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5")]


class DeleteFiles(Flow):
    """Reviewers may keep a part of the list."""

    propose = Decision(approving.propose, choices={"release": "ask"}, visits=Visits(6, then="stopped"))
    ask = Approval(
        candidate="propose",
        role=ROLE,
        subset="files",
        expires=Deadline(hours=24, then=ESCALATE),
        approved="publish",
        changes="propose",
        denied="stopped",
    )
    publish = Activity(approving.publish, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE, result=lambda state: state.results)
    stopped = End(FAILED)


FILES = {"files": ["a", "b", "c"], "why": "old"}


def keep(world: World, request: Request, *numbers: int, **more: Any) -> Any:
    return world.decide(request, "narrow", keep=list(numbers), comment="Not those.", **more)


def test_what_was_kept_is_asked_about_and_executed(world: World) -> None:
    whole = world.ask(FILES, flow=DeleteFiles)
    said = keep(world, whole, 0, 2)
    assert (said.code, said.ends, world.status(whole)) == ("accepted", True, "superseded")
    world.worker.run()
    part = world.request_of(world.workflow(whole))
    assert (part.status, part.revision, part.candidate["value"]) == ("pending", 2, {"files": ["a", "c"], "why": "old"})
    assert part.digest != whole.digest
    assert part.evidence == whole.evidence, "it was given with the proposal"
    assert world.decide(part, digest=whole.digest).code == "STALE_CANDIDATE", "the whole is not what is asked about"
    keep(world, part, 1)
    world.worker.run()
    last = world.request_of(world.workflow(whole))
    assert (last.revision, last.candidate["value"]["files"]) == (3, ["c"])
    assert world.decide(last), "who kept it may approve it: by its own digest"
    world.worker.run()
    row = world.workflow(whole)
    assert row.status == "complete"
    assert row.result["publish"] == {"published": {"files": ["c"], "why": "old"}, "digest": last.digest}
    assert [world.status(one) for one in (whole, part, last)] == ["superseded", "superseded", "consumed"]


def test_a_new_proposal_is_asked_about_as_a_whole(world: World) -> None:
    whole = world.ask(FILES, {"files": ["d", "e"]}, flow=DeleteFiles)
    keep(world, whole, 0)
    world.worker.run()
    part = world.request_of(world.workflow(whole))
    world.decide(part, "changes", comment="Propose others.")
    world.worker.run()
    other = world.request_of(world.workflow(whole))
    assert other.candidate["value"] == {"files": ["d", "e"]}
    world.decide(other)
    world.worker.run()
    assert world.workflow(whole).result["publish"]["published"] == {"files": ["d", "e"]}


def test_the_same_proposal_once_more_is_asked_about_as_a_whole(world: World) -> None:
    whole = world.ask(FILES, FILES, flow=DeleteFiles)
    keep(world, whole, 0)
    world.worker.run()
    world.decide(world.request_of(world.workflow(whole)), "changes", comment="Once more.")
    world.worker.run()
    assert world.request_of(world.workflow(whole)).candidate["value"] == FILES


def test_no_part_changes_nothing(world: World) -> None:
    request = world.ask(FILES, flow=DeleteFiles)
    with pytest.raises(BadPart, match="keep= takes some of the numbers 0 to 2"):
        keep(world, request, 0, 1, 2)
    assert (world.status(request), Review.objects.count()) == ("pending", 0)
    assert Wait.objects.get(pk=request.wait_id).evidence is None


def test_it_is_offered_only_where_it_is_declared(world: World) -> None:
    request = world.ask(FILES)
    assert keep(world, request, 0).code == "ANSWER_NOT_OFFERED"
    assert world.decide(world.ask(FILES, flow=DeleteFiles), "narrow", keep=[0]).code == "COMMENT_REQUIRED"
