"""The browser agent on the durable record and on a real site: what it does, and what the world does meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

import flows
from flows.models import Candidate, Operation
from project.agents.browser import sessions
from project.agents.browser.leaves import NOTICE
from project.agents.browser.pages import Form
from project.agents.browser.plain import PlainPage
from tests.support.coding import columns_holding
from tests.support.town import BOTH, FACTS, Town, clock, driver, quick_commits, site, sound, town, transactional_db, worker

__all__ = ["clock", "driver", "quick_commits", "site", "sound", "town", "transactional_db", "worker"]

pytestmark = pytest.mark.req("O6")


@BOTH
def test_the_whole_way_while_the_session_expires_at_every_wait(town: Town) -> None:
    town.start()
    assert town.at == ("waiting", "upload")
    town.site.control(expire=True)
    assert town.upload() == "accepted"
    assert town.at == ("waiting", "check")
    town.site.control(expire=True)
    town.check()
    assert town.at == ("waiting", "confirm")
    shown = town.request.candidate
    assert town.permits() == [], "nothing is sent before somebody has confirmed it"
    town.site.control(expire=True)
    assert town.answer() == "accepted"
    assert town.finish() == ("complete", "done")
    (permit,) = town.permits()
    assert permit["fields"] == {one["field"]: one["value"] for one in shown["value"]["fields"]}
    assert permit["fields"] == {
        "name": "Ada Lovelace", "event": "Summer fair", "day": "2027-06-05", "place": "market", "guests": "250", "plan": "D-1",
        "reference": f"{town.run.id}/assemble/1",
    }  # fmt: skip
    assert flows.get(town.run.id).result == {"number": "P-1001", "reference": permit["reference"]}
    assert len(town.model.requests) == 1, "the page is the same: nothing is decided anew"
    ledger = town.site.ledger()
    assert ledger["logins"] == 4, "one at the beginning, and one after each wait"
    assert ledger["sessions"] == 0, "every end logs out"


# ---------------------------------------------------------------------- the form changes


@pytest.mark.parametrize("node", ["upload", "check", "confirm"])
def test_a_form_that_changed_during_a_wait_is_filled_in_anew_and_confirmed_anew(town: Town, node: str) -> None:
    town.to(node)
    town.site.control(layout=2, expire=True)
    {"upload": town.upload, "check": town.check, "confirm": town.answer}[node]()
    if node == "upload":
        town.check()
    assert town.at == ("waiting", "confirm")
    assert town.permits() == []
    assert len(town.model.requests) == 2
    assert len(town.site.ledger()["documents"]) == 1, "the document was accepted: nobody is asked for another"
    fields = {one["field"]: one["value"] for one in town.request.candidate["value"]["fields"]}
    assert fields["music"] == "yes"
    assert town.answer() == "accepted"
    assert town.finish() == ("complete", "done")
    (permit,) = town.permits()
    assert permit["fields"] == fields


def test_a_form_that_asks_for_what_nobody_said_is_given_up(town: Town) -> None:
    town.site.control(layout=2)
    town.start(music="")
    assert town.finish() == ("failed", "gave_up")
    newest = Candidate.objects.filter(workflow_id=town.run.id).latest("id")
    assert newest.choice == "give_up"
    assert town.permits() == []


# ---------------------------------------------------------------------- people and officials


def test_what_the_person_remarks_is_taken_up_and_only_what_was_confirmed_is_sent(town: Town) -> None:
    town.to("confirm")
    assert town.answer("changes", "Rather more:\nguests: 300") == "accepted"
    assert town.at == ("waiting", "confirm")
    assert town.model.requests[1].texts("reviewer") == ["Rather more:\nguests: 300"]
    town.answer()
    assert town.finish() == ("complete", "done")
    assert [one["fields"]["guests"] for one in town.permits()] == ["300"]


def test_denied_it_leaves_nothing_behind(town: Town) -> None:
    town.to("confirm")
    town.answer("deny", "We stay at home")
    assert town.finish() == ("failed", "gave_up")
    ledger = town.site.ledger()
    assert (ledger["permits"], ledger["sessions"]) == ([], 0)
    assert [one["state"] for one in ledger["documents"]] == ["removed"]
    assert not sessions.store().exists(f"{sessions.FOLDER}/{town.run.id}")


def test_a_document_that_is_refused_is_asked_for_again(town: Town) -> None:
    town.to("check")
    town.check("refused")
    assert town.at == ("waiting", "upload")
    assert "did not accept" in json.dumps(town.request.candidate)
    town.upload(b"%PDF a better one")
    town.check()
    town.answer()
    assert town.finish() == ("complete", "done")
    assert [one["fields"]["plan"] for one in town.permits()] == ["D-2"]


def test_an_event_wakes_and_authorises_nothing(town: Town) -> None:
    """Somebody says that the document was accepted, and the site does not: another one is asked for, and nothing is sent."""
    town.to("check")
    flows.signal("forged", "document.checked", key="D-1", payload={"document": "D-1", "state": "accepted"})
    town.work()
    assert town.at == ("waiting", "upload")
    town.check("accepted", "D-1")  # late, and true: it changes nothing any more
    town.upload()
    town.check("accepted", "D-2")
    town.relay.handed = 0
    town.relay.look()  # all of it again
    town.answer()
    assert town.finish() == ("complete", "done")
    assert [one["fields"]["plan"] for one in town.permits()] == ["D-2"]


def test_nobody_answers(town: Town) -> None:
    town.to("confirm")
    town.pass_time(days=8)
    assert town.row.outcome == "HUMAN_REQUIRED"
    assert town.permits() == []
    flows.cancel(town.run.id, reason="too late", by=town.ada)
    assert town.finish() == ("cancelled", "confirm")
    assert [one["state"] for one in town.site.ledger()["documents"]] == ["removed"]


# ---------------------------------------------------------------------- what nobody knows


def test_an_answer_that_got_lost_is_looked_up_and_the_form_is_not_sent_again(town: Town) -> None:
    town.to("confirm")
    town.site.control(lose=1)
    town.answer()
    assert town.row.status == "reconciling"
    assert town.finish() == ("complete", "done")
    assert len(town.permits()) == 1
    operation = Operation.objects.get(workflow_id=town.run.id, node="submit", kind="effect")
    assert (operation.status, operation.external_id) == ("succeeded", "P-1001")


def test_cancelled_after_it_was_sent_it_is_withdrawn(town: Town) -> None:
    town.to("confirm")
    town.site.control(lose=1)
    town.answer()
    flows.cancel(town.run.id, reason="it will rain", by=town.ada)
    assert town.finish()[0] == "cancelled"
    assert [one["state"] for one in town.permits()] == ["withdrawn"]
    assert [one["state"] for one in town.site.ledger()["documents"]] == ["removed"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("node", "form"), [("upload", "document"), ("confirm", "permit")])
def test_cancelled_while_it_is_being_sent_nothing_stays_at_the_site(
    town: Town, monkeypatch: pytest.MonkeyPatch, node: str, form: str, when: str
) -> None:
    """The cancel comes between the last look whether it is still wanted, and the call; or before its answer is recorded."""
    town.to(node)
    real, cancelled = PlainPage.send, []

    def send(self: PlainPage, sent: Form, *more: Any) -> Any:
        mine = sent.id == form and not cancelled
        if mine and when == "before":
            cancelled.append(flows.cancel(town.run.id, reason="now", by=town.ada))
        answer = real(self, sent, *more)
        if mine and when == "after":
            cancelled.append(flows.cancel(town.run.id, reason="now", by=town.ada))
        return answer

    monkeypatch.setattr(PlainPage, "send", send)
    {"upload": town.upload, "confirm": town.answer}[node]()
    assert len(cancelled) == 1
    assert town.finish()[0] == "cancelled"
    ledger = town.site.ledger()
    assert [one["state"] for one in ledger["permits"]] == ["withdrawn"] * (form == "permit")
    assert [one["state"] for one in ledger["documents"]] == ["removed"]
    assert ledger["sessions"] == 0


def test_a_site_that_has_it_twice_is_a_matter_for_a_person(town: Town) -> None:
    """Somebody else sends the same once more: what is looked up is not what was confirmed, and nobody calls it done."""
    town.to("confirm")
    reference = town.request.candidate["value"]["reference"]
    with sessions.pages.opened(town.site.address) as page:
        other = sessions.Visit(town.site.address, page)
        form = other.read("/permits/new").form("permit")
        fields = {one["field"]: one["value"] for one in town.request.candidate["value"]["fields"]}
        assert fields["reference"] == reference
        other.send(form, fields)
    town.answer()
    town.work()
    assert (town.row.node, town.row.outcome) == ("verify", "HUMAN_REQUIRED")


# ---------------------------------------------------------------------- what the page says is data


def test_what_the_page_says_is_fenced_and_shown_as_what_it_says(town: Town) -> None:
    town.to("confirm")
    (request,) = town.model.requests
    told = [item for item in request.context.items("extra") if NOTICE in item.text]
    assert [(item.name, item.source, item.untrusted) for item in told] == [("page", "page", True)]
    assert NOTICE not in request.instructions
    fields = next(item for item in request.context.items("extra") if item.name == "fields")
    assert fields.untrusted, "a label is what the page says, too"
    assert json.loads(next(item.text for item in request.context.items("extra") if item.name == "application")) == FACTS
    first = town.request.candidate["value"]["fields"][0]
    assert first == {"field": "name", "page_says": "Who applies", "value": "Ada Lovelace"}


def test_no_session_is_in_the_record(town: Town) -> None:
    town.to("upload")
    ((_, files),) = [sessions.store().listdir(f"{sessions.FOLDER}/{town.run.id}")]
    (name,) = files
    cookies = sessions.carried(town.attempt)
    assert len(cookies["session"]) == 32
    assert columns_holding(cookies["session"]) == []
    assert columns_holding(name.removesuffix(".json")) == ["outlast_workflow.checkpoint"]
    assert town.attempt.checkpoint["page"] == "/permits/new"
    assert set(town.attempt.checkpoint) == {"page", "form", "session"}


def test_a_session_that_was_cut_short_in_its_file_counts_as_none(town: Town) -> None:
    town.to("upload")
    (name,) = sessions.store().listdir(f"{sessions.FOLDER}/{town.run.id}")[1]
    path = f"{sessions.FOLDER}/{town.run.id}/{name}"
    sessions.store().delete(path)
    with sessions.store().open(path, "wb") as file:
        file.write(b'{"sess')
    assert sessions.carried(town.attempt) == {}
    town.upload()
    assert town.at == ("waiting", "check")
