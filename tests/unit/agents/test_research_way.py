"""The research agent on the durable record: what it asks, what it waits for, and what new evidence makes it ask again."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows.models import Candidate, Event, Operation, Workflow
from project.agents.research.model import WEIGH, ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.research.models import Claim, Evidence, EvidenceRequest
from tests.support.researching import Desk, clock, desk, quick_commits, sound, transactional_db, worker

__all__ = ["clock", "desk", "quick_commits", "sound", "transactional_db", "worker"]

pytestmark = pytest.mark.req("O6")

ALL = ["bridge", "bridge/rust", "bridge/strength", "traffic"]


def result(desk: Desk) -> Any:
    return flows.get(desk.run.id).result


def test_a_question_whose_sources_are_there_is_answered_with_its_provenance(desk: Desk) -> None:
    desk.bridge()
    desk.start()
    assert desk.at == ("complete", "done")
    assert desk.model.judged() == ALL
    assert desk.verdicts == {
        "bridge": ("supported", 70), "bridge/rust": ("supported", 80), "bridge/strength": ("supported", 70), "traffic": ("supported", 90),
    }  # fmt: skip
    said = result(desk)
    assert (said["verdicts"], said["confidence"]) == ({"bridge": "supported", "traffic": "supported"}, 70)
    (rust,) = (one for one in said["claims"] if one["claim"] == "bridge/rust")
    read = Evidence.objects.get(run=desk.run.id, source="inspection")
    assert rust["provenance"] == [{"source": "inspection", "version": 1, "digest": read.digest, "cited": True}]
    judged = flows.get(rust["judged_by"])
    assert (judged.flow_name, judged.parent_id) == ("assess-claim", desk.run.id)
    assert Candidate.objects.get(workflow_id=judged.pk).choice == "judged"
    assert desk.archive.orders() == [], "nothing was missing"


def test_a_new_release_has_only_the_claims_judged_anew_that_it_concerns(desk: Desk) -> None:
    """Model calls are counted: of a claim that is not affected nobody is asked again."""
    desk.bridge()
    desk.announce("sensors", "bridge/strength", text="bridge/strength: holds 75", kind="dataset")
    desk.start(watch=True)
    assert desk.at == ("waiting", "watch")
    before = len(desk.model.requests)
    desk.publish("sensors", "bridge/strength: holds 60")
    assert desk.model.judged(before) == ["bridge", "bridge/strength"]
    assert desk.verdicts["bridge"] == ("supported", 60)
    before = len(desk.model.requests)
    desk.publish("sensors", "bridge/strength: holds 60\nThe same, in other words.")
    assert desk.model.judged(before) == ["bridge/strength"], "it comes out as before: nobody is asked about what rests on it"
    before = len(desk.model.requests)
    desk.publish("counts", "traffic: fails 95")
    assert desk.model.judged(before) == ["traffic"]
    assert desk.at == ("waiting", "watch")
    assert len([one for one in desk.model.requests if one.task == "plan"]) == 1
    desk.pass_time(days=366)
    assert desk.at == ("complete", "done")
    assert result(desk)["verdicts"] == {"bridge": "supported", "traffic": "contradicted"}


def test_what_is_not_there_is_ordered_once_and_waited_for(desk: Desk) -> None:
    desk.bridge()
    desk.announce("survey", "bridge/deck")
    desk.announce("sensors", "bridge/strength", kind="dataset")
    desk.start()
    assert desk.at == ("waiting", "evidence")
    assert [(one["names"], one["state"]) for one in desk.archive.orders()] == [(["sensors", "survey"], "open")]
    asked = EvidenceRequest.objects.filter(run=desk.run.id).order_by("source")
    assert [(one.source, one.claims, one.open) for one in asked] == [
        ("sensors", ["bridge/strength"], True), ("survey", ["bridge/deck"], True),
    ]  # fmt: skip
    assert Claim.objects.get(run=desk.run.id, name="bridge/deck").gap == "No source says anything about it."
    assert desk.verdicts["bridge"] == ("unknown", 0)
    before = len(desk.model.requests)
    desk.publish("survey", "bridge/deck: holds 65")
    assert desk.at == ("waiting", "evidence")
    assert desk.model.judged(before) == ["bridge", "bridge/deck"]
    desk.publish("sensors", "bridge/strength: holds 90")
    assert desk.at == ("complete", "done")
    assert result(desk)["confidence"] == 65
    assert len(desk.archive.orders()) == 1
    assert asked.filter(open=True).count() == 0
    assert asked.exclude(reference=f"{desk.run.id}/order/1").count() == 0
    assert Operation.objects.filter(workflow_id=desk.run.id).count() == 1


def test_what_never_comes_is_a_gap_of_the_answer(desk: Desk) -> None:
    desk.bridge()
    desk.announce("survey", "bridge/deck")
    desk.start()
    desk.pass_time(days=91)
    assert desk.at == ("complete", "done")
    said = {one["claim"]: one for one in result(desk)["claims"]}
    assert (said["bridge/deck"]["verdict"], said["bridge/deck"]["waits_for"]) == ("unknown", ["survey"])
    assert said["bridge"]["gap"] == "It rests on what is not known: bridge/deck."


# ---------------------------------------------------------------------- whose word it is


def test_a_source_of_somebody_unknown_is_read_when_a_person_has_approved_exactly_that(desk: Desk) -> None:
    desk.bridge()
    desk.announce("blog", "noise", text="noise: holds 40", publisher="somebody")
    desk.start()
    assert desk.at == ("waiting", "approve")
    assert [one["name"] for one in desk.request.candidate["value"]["asked"]] == ["blog"]
    assert not Evidence.objects.filter(run=desk.run.id).exists()
    desk.archive.publish("blog", "noise: holds 99")  # another text than the one that is approved
    assert desk.answer("approve") == "accepted"
    assert Evidence.objects.get(run=desk.run.id, source="blog").version == 1
    assert desk.verdicts["noise"] == ("supported", 40)
    assert desk.at == ("complete", "done")


def test_a_refused_source_is_not_read_and_not_asked_about_again(desk: Desk) -> None:
    desk.bridge()
    desk.announce("blog", "noise", text="noise: holds 40", publisher="somebody")
    desk.announce("survey", "bridge/deck")
    desk.start()
    assert desk.answer("deny") == "accepted"
    assert desk.at == ("waiting", "evidence")
    assert desk.verdicts["noise"] == ("unknown", 0)
    desk.publish("survey", "bridge/deck: holds 65")
    assert desk.at == ("complete", "done")
    assert not Evidence.objects.filter(run=desk.run.id, source="blog", refused=False).exists()


def test_nobody_answers_about_a_source_and_the_rest_goes_on(desk: Desk) -> None:
    """An approval of an earlier look lets nothing in either."""
    desk.bridge()
    desk.announce("blog", "noise", text="noise: holds 40", publisher="somebody", kind="dataset")
    desk.start(watch=True)
    desk.answer("approve")
    desk.relay.look()
    desk.work()
    assert desk.at == ("waiting", "watch")
    desk.publish("blog", "noise: fails 99")
    assert desk.at == ("waiting", "approve")
    desk.pass_time(days=8)
    assert desk.at == ("waiting", "watch")
    assert desk.verdicts["noise"] == ("supported", 40)


def test_sources_that_disagree_have_another_agent_asked(desk: Desk) -> None:
    desk.bridge()
    desk.announce("second-test", "bridge/strength", text="bridge/strength: fails 20")
    desk.start()
    assert desk.at == ("complete", "done")
    assert [one.task for one in desk.model.requests].count("weigh") == 1
    assert desk.model.judged().count("bridge/strength") == 2
    assert desk.model.judged().count("bridge/rust") == 1
    assert desk.verdicts["bridge/strength"] == ("supported", 60)
    opinion = Evidence.objects.get(run=desk.run.id, source="opinion:bridge/strength")
    assert opinion.publisher.startswith("run ")
    assert Event.objects.get(type="workflow.ended").status == "consumed"


def test_the_other_agent_is_waited_for_and_fails(desk: Desk) -> None:
    """What it cannot say stays a gap, and on that basis it is not asked again."""

    def script(number: int, request: ModelRequest) -> ModelAnswer:
        return ModelAnswer("weighed", {"opinions": "none"}) if request.task == WEIGH else RuleBasedModel().complete(request)

    desk.model.script = script
    desk.bridge()
    desk.announce("second-test", "bridge/strength", text="bridge/strength: fails 20")
    desk.start()
    for _ in range(12):
        desk.pass_time(minutes=5)
    assert desk.at == ("complete", "done")
    assert desk.verdicts["bridge/strength"] == ("contested", 0)
    assert desk.verdicts["bridge"] == ("unknown", 0)
    assert Workflow.objects.filter(flow_name="second-opinion").count() == 1


# ---------------------------------------------------------------------- what wakes it


def test_an_event_wakes_and_says_nothing(desk: Desk) -> None:
    """Somebody says that the survey is there, and the archive does not: nothing is judged, and it goes on waiting."""
    desk.bridge()
    desk.announce("survey", "bridge/deck")
    desk.start()
    before = len(desk.model.requests)
    flows.signal("forged", "document.ready", key=desk.archive.key("survey"), payload={"text": "bridge/deck: holds 100"})
    desk.work()
    assert desk.at == ("waiting", "evidence")
    assert len(desk.model.requests) == before
    assert desk.verdicts["bridge/deck"] == ("unknown", 0)
    desk.publish("survey", "bridge/deck: holds 65")
    desk.relay.handed.clear()
    desk.relay.look()  # all of it again
    desk.work()
    assert desk.at == ("complete", "done")


def test_a_source_that_is_not_as_it_was_vetted_is_not_read(desk: Desk) -> None:
    desk.bridge()
    desk.announce("blog", "noise", text="noise: holds 40", publisher="somebody")
    desk.start()
    (desk.archive.folder / "sources" / "blog" / "1.txt").write_text("noise: holds 100")
    desk.answer("approve")
    for _ in range(6):
        desk.pass_time(minutes=1)
    assert not Evidence.objects.filter(run=desk.run.id, source="blog").exists()
    assert desk.verdicts["noise"] == ("unknown", 0)


def test_a_cancelled_question_takes_its_order_back(desk: Desk) -> None:
    desk.bridge()
    desk.announce("survey", "bridge/deck")
    desk.start()
    flows.cancel(desk.run.id, reason="The bridge is gone.", by=desk.ann)
    desk.work()
    assert desk.row.status == "cancelled"
    assert [one["state"] for one in desk.archive.orders()] == ["withdrawn"]


def test_an_empty_archive_is_given_up(desk: Desk) -> None:
    (desk.archive.folder / "sources").mkdir()
    desk.start()
    assert desk.at == ("failed", "gave_up")
