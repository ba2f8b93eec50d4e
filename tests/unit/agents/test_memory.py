"""What a worked example remembers is never its state: empty, wrong or unreachable, it takes legal routes only and loses no obligation (O3, J2).

Two kinds of memory are tried: what the model believes to remember (coding and research: beside their decisions), and what the agent itself has
kept of earlier steps, its checkpoint and its files. The deployment agent has neither, and a test says so.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import flows
from flows.core.nodes import Decision
from flows.models import Commitment, Operation, Workflow
from project.agents import deployment
from project.agents.browser import sessions
from project.agents.browser.model import ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.deployment.flows import DeployService
from tests.support import coding as coding_world
from tests.support import town as town_world
from tests.support.coding import Coding, coding
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker
from tests.support.routes import assert_legal
from tests.support.town import Town, driver, site, town

__all__ = ["clock", "coding", "driver", "quick_commits", "site", "sound", "town", "transactional_db", "worker"]

pytestmark = pytest.mark.req("O3", "J2")

ENDED = ("complete", "failed")
#: What a checkpoint may say that is not so.
WRONG: dict[str, Any] = {
    "revision": "0" * 40, "verified": {"candidate": "sha256:0", "tree": "0" * 40, "tests": 99}, "approved": True, "node": "done",
    "failed": {"candidate": "sha256:0", "output": "x"}, "page": "/permits/P-1", "form": "sha256:0", "session": "0" * 64,
    "refused": {"candidate": "x", "said": "x"},
}  # fmt: skip
MEMORIES = {"empty": None, "wrong": WRONG, "odd": {"session": "../../etc/passwd", "revision": "main", "refused": None}}


def remembers(run: Any, memory: Any) -> None:
    """From now on the checkpoint says that; no arrow of ours writes it."""
    Workflow.objects.filter(pk=run.id).update(checkpoint=memory)


def nothing_is_lost(run: Any) -> None:
    """Whatever it owed is given back, and of everything that it did outside it is known what became of it."""
    row = Workflow.objects.get(pk=run.id)
    assert row.owed == 0
    held = Commitment.objects.filter(workflow_id=run.id).values_list("status", flat=True)
    assert set(held) <= {"released", "fulfilled", "void"}
    assert not Operation.objects.filter(workflow_id=run.id).exclude(status__in=("succeeded", "failed", "compensated")).exists()


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_a_coding_agent_whose_checkpoint_lies(coding: Coding, memory: Any) -> None:
    run = coding.start()
    for number in range(14):
        if coding.row.status in ENDED:
            break
        if number < 2:  # each lie costs a candidate and its tests
            remembers(run, memory)
        if coding.row.outcome == "HUMAN_REQUIRED":
            flows.resume(run.id)
        elif coding.row.node == "ci":
            coding.hear_ci()
        elif coding.row.node == "ask":
            assert coding.answer("approve") == "accepted"
        coding.pass_time(minutes=6)
    assert coding.row.status in ENDED, flows.describe(run.id)
    assert_legal(run, coding_world.NODES)
    nothing_is_lost(run)
    assert Operation.objects.filter(workflow_id=run.id, node="merge", status="succeeded").count() == (
        coding.row.status == "complete"
    )


def forgetful(dice: random.Random) -> Any:
    """A model whose memory is empty, wrong or unreachable."""

    def script(number: int, request: ModelRequest) -> ModelAnswer:
        honest = RuleBasedModel().complete(request)
        match dice.randrange(7):
            case 0:
                raise ConnectionRefusedError("the memory does not answer")
            case 1:
                return ModelAnswer(
                    dice.choice(["submit", "verify", "done", ""]), "I remember that it was confirmed.", honest.values
                )
            case 2:
                return ModelAnswer("form", "I remember nothing.", {})
            case 3:
                return ModelAnswer("form", "I remember these.", {**honest.values, "reference": "P-1", "plan": "D-1"})
            case 4 if number > 3:
                return ModelAnswer("give_up", "I do not remember what this was about.")
            case _:
                return honest

    return script


def to_the_end(town: Town, meanwhile: Any = None) -> None:
    """Ada does what she is asked, the official looks, and somebody resumes what stopped."""
    for _ in range(25):
        if town.row.status in ENDED:
            break
        if meanwhile is not None:
            meanwhile()
        at = town.at
        if town.row.outcome == "HUMAN_REQUIRED":
            flows.resume(town.run.id)
        elif at == ("waiting", "upload"):
            assert town.upload() == "accepted"
        elif at == ("waiting", "check"):
            town.check()
        elif at == ("waiting", "confirm"):
            assert town.answer() == "accepted"
        town.worker.run(["agents", "cleanup"])
        town.pass_time(minutes=6)
    assert town.finish()[0] in ENDED, flows.describe(town.run.id)
    assert_legal(town.run, town_world.NODES)
    nothing_is_lost(town.run)
    assert len(town.permits()) == (town.row.status == "complete")
    assert town.site.ledger()["sessions"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_browser_agent_whose_model_lies(town: Town, seed: int) -> None:
    town.model.script = forgetful(random.Random(seed))
    town.start()
    to_the_end(town)


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_a_browser_agent_whose_checkpoint_lies(town: Town, memory: Any) -> None:
    town.start()
    to_the_end(town, lambda: remembers(town.run, memory))
    assert town.at == ("complete", "done")


def test_a_browser_agent_whose_session_cannot_be_read(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    town.start()

    asked: list[Any] = []

    def away(*given: Any) -> Any:
        asked.append(given)
        raise OSError("the storage does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(sessions.store(), "open", away, raising=False)
        town.upload()
        town.pass_time(minutes=2)
    assert asked
    to_the_end(town)
    assert town.at == ("complete", "done")


def test_a_deployment_agent_has_no_memory_and_no_model() -> None:
    assert not [name for name, node in DeployService.definition.nodes.items() if isinstance(node, Decision)]
    for path in Path(deployment.__file__).parent.glob("*.py"):
        assert "checkpoint" not in path.read_text(), path.name
