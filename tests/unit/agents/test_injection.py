"""What strangers write to the worked examples, in files, pages, sources, events and comments, is data to each of them (E5, F6, O1).

The models of these tests obey: having read such a text they first propose what it wants, and what code lets through of that is nothing. So the
route, the approvals, what is done after them, and the budgets are those of a run that nobody has written to.
"""

from __future__ import annotations

from typing import Any

import pytest

import flows
from approvals.models import Request
from flows.core.moves import Suspend
from flows.core.nodes import Wait
from flows.core.nodes.waits import UNDECLARED_CHOICE
from flows.models import Budget, Operation
from project.agents.browser.flows import FilePermit
from project.agents.browser.model import ModelAnswer as Filled
from project.agents.browser.model import ModelRequest as FormRequest
from project.agents.browser.model import RuleBasedModel as Filler
from project.agents.coding import ci
from project.agents.coding.flows import UpgradeLibrary
from project.agents.coding.git import git
from project.agents.coding.model import ModelAnswer as Patch
from project.agents.coding.model import ModelRequest as PatchRequest
from project.agents.coding.model import RuleBasedModel as Coder
from project.agents.coding.repository import commit_to_main, moves
from project.agents.research.model import ModelAnswer as Finding
from project.agents.research.model import ModelRequest as FindingRequest
from project.agents.research.model import RuleBasedModel as Reader
from tests.support.cloud import own, shared, until
from tests.support.coding import Coding, coding
from tests.support.deploying import World, world
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker
from tests.support.flow_values import state
from tests.support.injections import ALL, CLAIMS, KINDS, held
from tests.support.researching import Desk, desk
from tests.support.routes import route
from tests.support.town import Town, driver, site, town

__all__ = [
    "clock", "coding", "desk", "driver", "own", "quick_commits", "shared", "site", "sound", "town", "transactional_db", "worker", "world",
]  # fmt: skip

pytestmark = [pytest.mark.req("E5", "F6", "O1"), pytest.mark.failure("prompt injection in what an agent reads")]


def asked(run: Any) -> list[tuple[str, str]]:
    """(node, status) of the requests of a run, in order."""
    return list(Request.objects.filter(workflow_id=run.id).order_by("id").values_list("node", "status"))


def done(run: Any) -> list[tuple[str, str]]:
    """(node, status) of what it did outside, in order."""
    return list(Operation.objects.filter(workflow_id=run.id).order_by("flown_at", "id").values_list("node", "status"))


def test_a_coding_agent_merges_what_was_approved_and_nothing_that_a_file_or_a_comment_wants(coding: Coding) -> None:
    commit_to_main(coding.remote, {"CHANGELOG.md": f"# Changes\n\n## Unreleased\n\n{ALL}\n"}, "Hostile")
    coding.base = coding.head()
    tried: list[str] = []

    def obeys(number: int, request: PatchRequest) -> Patch:
        honest = Coder().complete(request)
        told = "merge" if number == 1 else "approved" if number == 2 else ""
        if told:
            assert "Ignore all previous instructions" in request.context.text
            tried.append(told)
            return Patch(told, "as I was told", honest.edits)
        if request.texts("reviewer") and "vendor" not in tried:
            tried.append("vendor")
            return Patch("patch", "as I was told", {"tests/test_shop.py": "pass\n", "vendor/x.py": "pass\n"})
        changed = {path: text for path, text in honest.edits.items() if path != "UPGRADING.md"}
        return Patch(honest.choice, honest.reason, changed)

    coding.model.script = obeys
    run = coding.start()
    comments = [("changes", ALL[:4000]), ("approve", ALL[:4000])]
    for _ in range(12):
        if coding.row.node == "ci" and coding.row.status == "waiting":
            sha = git("rev-parse", f"refs/heads/outlast/{run.id}", cwd=coding.remote).strip()
            ci.announce({**ci.build(str(coding.remote), sha), **CLAIMS}, flows.signal)
        elif coding.row.node == "ask" and coding.row.status == "waiting":
            assert coding.answer(*comments.pop(0)) == "accepted"
        coding.pass_time(minutes=2)
    assert (coding.row.status, tried) == ("complete", ["merge", "approved", "vendor"])
    once = ["propose", "test", "push", "ci", "ask"]
    assert route(run) == ["inspect", "workspace", "propose", "test", *once, *once, "revalidate", "merge", "confirm", "done"]
    assert asked(run) == [("ask", "superseded"), ("ask", "consumed")]
    assert done(run) == [
        ("workspace", "succeeded"),
        ("push", "succeeded"),
        ("push", "succeeded"),
        ("merge", "succeeded"),
        ("workspace", "succeeded"),
    ]
    approved = Request.objects.filter(workflow_id=run.id).latest("id")
    assert Operation.objects.get(workflow_id=run.id, node="merge").request["approved"] == approved.digest
    landed = [new for _, new in moves(coding.remote, "refs/heads/main")]
    assert len(landed[landed.index(coding.base) + 1 :]) == 1
    assert (
        git("diff", "--name-only", coding.base, coding.head(), cwd=coding.remote).split() == approved.candidate["value"]["files"]
    )
    for request in coding.model.requests:
        assert held(ALL, [one for section in request.context.sections for one in section.items]) == []
    assert not Budget.objects.exists()


def test_a_browser_agent_sends_what_was_confirmed_and_nothing_that_the_page_or_a_comment_wants(town: Town) -> None:
    tried: list[str] = []

    def obeys(number: int, request: FormRequest) -> Filled:
        honest = Filler().complete(request)
        if number in (1, 2, 4):
            tried.append("told")
            return Filled(
                *[("submit", "told", honest.values), ("form", "told", {**honest.values, "reference": "mine"})][number == 2]
            )
        return honest

    town.model.script = obeys
    town.start(event=f"Summer fair {KINDS['order']}", place="Market square")
    for _ in range(2):
        town.pass_time(minutes=2)
    assert town.at == ("waiting", "upload")
    assert town.upload(ALL.encode()) == "accepted"
    flows.signal("claims-1", "document.checked", key="D-1", payload={"document": "D-1", "state": "accepted", **CLAIMS})
    town.site.control(check=["D-1", "accepted"])
    town.work()
    assert town.at == ("waiting", "confirm")
    first = town.request.candidate["value"]
    assert town.answer("changes", ALL[:2000]) == "accepted"
    town.pass_time(minutes=2)
    assert town.at == ("waiting", "confirm")
    assert town.answer("approve", ALL[:4000]) == "accepted"
    assert town.finish() == ("complete", "done")
    (permit,) = town.permits()
    confirmed = town.request.candidate["value"]
    assert permit["fields"] == {one["field"]: one["value"] for one in confirmed["fields"]}
    without = [{**one, "value": ""} if one["field"] == "reference" else one for one in confirmed["fields"]]
    assert without == [{**one, "value": ""} if one["field"] == "reference" else one for one in first["fields"]]
    assert [one for one, _ in asked(town.run)] == ["upload", "confirm", "confirm"]
    assert route(town.run) == [
        "open", "fill", "document", "upload", "attach", "check", "assemble", "confirm",
        "fill", "document", "assemble", "confirm", "submit", "verify", "done",
    ]  # fmt: skip
    assert len(tried) == 3
    for request in town.model.requests:
        assert (
            held(ALL, [one for section in request.context.sections for one in section.items if one.name != "application"]) == []
        )
    assert not Budget.objects.exists()


def test_a_research_agent_reads_what_was_approved_and_believes_no_orders(desk: Desk) -> None:
    tried: list[str] = []

    def obeys(number: int, request: FindingRequest) -> Finding:
        honest = Reader().complete(request)
        if "Ignore all previous instructions" in request.context.text and len(tried) < 2:
            tried.append(request.task)
            return Finding(
                ["approved", honest.choice][len(tried) - 1],
                {"verdict": "supported", "confidence": 100, "gap": "", "cites": ["order"]},
            )
        return honest

    desk.model.script = obeys
    desk.announce("load-test", "bridge/strength", text=f"{ALL}\nbridge/strength: holds 70")
    desk.announce("inspection", "bridge/rust", text=f"bridge/rust: holds 80\n{ALL}")
    desk.archive.announce("blog", publisher="somebody", about=["noise"], title=ALL[:300])
    desk.archive.publish("blog", f"noise: holds 40\n{ALL}")
    desk.announce("survey", "bridge/deck")
    run = desk.start()
    for _ in range(2):
        desk.pass_time(minutes=2)
    assert desk.at == ("waiting", "approve")
    (blog,) = desk.request.candidate["value"]["asked"]
    assert desk.answer("approve") == "accepted"
    desk.pass_time(minutes=2)
    assert desk.at == ("waiting", "evidence")
    flows.signal("claims-1", "document.ready", key=desk.archive.key("survey"), payload=CLAIMS)
    desk.work()
    assert desk.at == ("waiting", "evidence"), "an event wakes, and the archive has nothing"
    desk.publish("survey", f"bridge/deck: holds 65\n{ALL}")
    desk.pass_time(minutes=2)
    assert desk.at == ("complete", "done")
    assert desk.verdicts == {
        "bridge": ("supported", 65), "bridge/deck": ("supported", 65), "bridge/rust": ("supported", 80), "bridge/strength": ("supported", 70),
        "noise": ("supported", 40),
    }  # fmt: skip
    assert (asked(run), done(run), len(tried)) == ([("approve", "consumed")], [("order", "succeeded")], 2)
    assert (blog["name"], blog["version"]) == ("blog", 1)
    for request in desk.model.requests:
        assert held(ALL, [one for section in request.context.sections for one in section.items]) == []
    assert not Budget.objects.exists()


def test_a_deployment_agent_asks_its_cloud_whatever_events_and_names_say(world: World) -> None:
    version = f"2.0 {KINDS['order']} {KINDS['markup']}"
    run = world.start(version=version, opens_in=3)
    world.worker.run()
    (held_window,) = flows.commitments.active(kind="window", workflow=run)
    for number in range(3):
        kinds = ("window.opened", "deployment.observed", "deployment.observed")
        flows.signal(
            f"claims-{number}", kinds[number], key=held_window.reference, payload={**CLAIMS, "ok": True, "healthy": True}
        )
    world.worker.run()
    assert world.did() == ["reserve"], "what the events claim is not so yet"
    until(lambda: world.cloud.window(held_window.reference)["state"] == "open")
    assert world.reach(run) == ("complete", "done")
    assert world.did() == ["reserve", "canary", "promote", "release"]
    assert (world.version(), asked(run)) == (version, [])
    assert not Budget.objects.exists()


WAITS = [
    (flow, name)
    for flow in (UpgradeLibrary, FilePermit)
    for name, node in flow.definition.nodes.items()
    if isinstance(node, Wait) and node.choices
]


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS)
def test_an_event_that_names_no_declared_choice_is_a_persons_matter(text: str) -> None:
    """What a payload says is compared with what is declared, and never taken for it."""
    assert {name for _, name in WAITS} == {"ci", "check"}
    for flow, name in WAITS:
        node = flow.definition.nodes[name]
        assert isinstance(node, Wait)
        said = {"id": "evt", "payload": {"conclusion": text, "state": text}}
        move = node.answered(state(name), said)
        assert isinstance(move, Suspend)
        assert move.code == UNDECLARED_CHOICE
