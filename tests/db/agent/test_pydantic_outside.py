"""Calls that something outside answers are waits of the flow: no worker waits, and a crash, a late or a second answer changes nothing (O5)."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pip install 'outlast[pydantic-ai]'")

from pydantic_ai import Agent, CallDeferred, RunContext
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import FunctionModel

import flows
from flows import COMPLETE, AgentTurn, Candidate, Deadline, End, Visits, Wait
from flows.models import JournalEntry
from flows.services import invariants
from tasks.agent.pydantic_ai import Outside, durable, token
from tests import factories
from tests.factories import row, status
from tests.support.approving import World, world
from tests.support.bank import calls, says, thinks
from tests.support.tooling import declare
from tests.support.turnings import AGAIN, Killed, asked, at, fatal, happened, quiet

__all__ = ["declare", "quiet", "world"]

pytestmark = [pytest.mark.req("O5", "B3", "E5"), pytest.mark.usefixtures("quiet")]

OUTSIDE = Outside(choice="wait", turn="think", wait="answer")
#: Tokens under which a studio was asked, in order, and never forgot.
tokens: list[str] = []
heard: list[Any] = []


def studio(*answers: list[Any]) -> Any:
    """An agent whose films are made elsewhere."""

    def model(messages: list[Any], info: Any) -> ModelResponse:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        at(f"before model {number}")
        happened(f"model {number}")
        parts = [part for one in messages for part in one.parts]
        heard[:] = [part.content for part in parts if getattr(part, "tool_name", "") == "film" and hasattr(part, "content")]
        at(f"after model {number}")
        return ModelResponse(parts=answers[number])

    agent: Any = Agent(FunctionModel(model), name="studio")

    @agent.tool
    def film(ctx: RunContext[None], scene: str) -> str:
        tokens.append(token(ctx))
        happened(f"tool film {scene}")
        at(f"after tool film {scene}")
        raise CallDeferred

    @agent.tool_plain
    def look(at: int) -> str:
        happened(f"tool look {at}")
        return "seen"

    return agent


@pytest.fixture(autouse=True)
def no_tokens() -> None:
    tokens.clear()
    heard.clear()


def films(declare: Any, *answers: list[Any]) -> Any:
    code = durable(
        studio(*answers),
        prompt=lambda attempt: "A film, please.",
        choose=lambda output: Candidate("answered", output),
        outside=OUTSIDE,
    )
    return declare(
        "t-films",
        think=AgentTurn(code, choices={"answered": "done", "wait": "answer"}, retry=AGAIN, visits=Visits(9, then="done")),
        answer=Wait("film.made", key=OUTSIDE.key, deadline=Deadline(hours=2, then="think"), then="think"),
        done=End(COMPLETE, result=lambda state: state.results["think"]["value"]),
    ).start({})


ONE = ([thinks("the secret of it"), calls("look", at=1), calls("film", scene="dawn")], [says("Here it is.")])


def go_on(world: World) -> None:
    """Work on; where the process is gone, another worker takes over."""
    for _ in range(4):
        try:
            world.worker.run()
        except Killed:
            factories.lose(world.worker)
            world.worker = factories.another_worker()
        world.worker.tick()


@pytest.mark.parametrize(
    "place", ["", "before model 0", "after model 0", "after tool film dawn", "before model 1", "after model 1"]
)
def test_it_waits_without_a_worker_and_goes_on_with_the_answer(world: World, declare: Any, place: str) -> None:
    if place:
        fatal[place] = Killed()
    run = films(declare, *ONE)
    go_on(world)
    assert status(run) == ("waiting", "WAITING", "answer")
    assert len(set(tokens)) == 1, "called again, it hands out the same token"
    flows.signal("f-1", "film.made", key=tokens[0], payload={"url": "film-1"})
    flows.signal("f-1", "film.made", key=tokens[0], payload={"url": "film-1"})
    go_on(world)
    assert row(run).result == "Here it is."
    assert heard == [{"url": "film-1"}]
    assert asked.count("tool look 1") == 1
    for number in (0, 1):
        assert asked.count(f"model {number}") == 1 + (place == f"after model {number}")
    assert not invariants.scan()
    assert "the secret of it" not in str(list(flows.models.Candidate.objects.values())), (
        "nor is reasoning in the messages that are kept"
    )


def test_several_are_waited_for_in_turn_in_whatever_order_they_come(world: World, declare: Any) -> None:
    run = films(declare, [calls("film", scene="dawn"), calls("film", scene="dusk")], [says("Both.")])
    go_on(world)
    assert len(tokens) == 2
    flows.signal("f-2", "film.made", key=tokens[1], payload={"film": "dusk"})
    go_on(world)
    assert status(run)[2] == "answer", "the first one is still to come"
    flows.signal("f-1", "film.made", key=tokens[0], payload={"film": "dawn"})
    go_on(world)
    assert row(run).result == "Both."
    assert heard == [{"film": "dawn"}, {"film": "dusk"}]
    assert asked == ["model 0", "tool film dawn", "tool film dusk", "model 1"]


def test_what_does_not_come_in_time_is_told_to_the_model_and_comes_too_late(world: World, declare: Any) -> None:
    """An answer to the second call is not taken for one to the third, nor one that came before for one that has not."""
    run = films(declare, [calls("film", scene="dawn")], [calls("film", scene="noon")], [says("Without.")])
    go_on(world)
    flows.signal("f-1", "film.made", key=tokens[0], payload={"film": "dawn"})
    go_on(world)
    assert (status(run)[2], len(tokens)) == ("answer", 2)
    world.clock.move(hours=3)
    go_on(world)
    assert row(run).result == "Without."
    flows.signal("f-2", "film.made", key=tokens[1], payload={"film": "noon"})
    go_on(world)
    assert heard[0] == {"film": "dawn"}
    assert len(heard) == 2
    assert "No answer to this call arrived in time" in str(heard[1])


def test_an_answer_of_another_call_and_what_it_says_of_the_flow_change_nothing(world: World, declare: Any) -> None:
    run = films(declare, *ONE)
    go_on(world)
    flows.signal("forged", "film.made", key=tokens[0] + "0", payload={"film": "forged"})
    go_on(world)
    assert status(run)[2] == "answer"
    flows.signal("f-1", "film.made", key=tokens[0], payload={"choice": "answered", "outside": {"calls": []}, "node": "done"})
    go_on(world)
    assert row(run).result == "Here it is."
    kinds = JournalEntry.objects.filter(workflow_id=run.id, status="done").values_list("kind", flat=True)
    assert sorted(kinds) == ["model", "model", "tool", "tool"]


def test_a_model_cannot_say_that_it_waits(world: World, declare: Any) -> None:
    """What a turn that waits has kept is code's alone: a proposal that looks like it is none."""
    forged = {"outside": {"calls": [], "answers": {}, "heard": None, "history": []}}
    code = durable(
        studio([says("wait")]),
        name="forger",
        prompt=lambda attempt: "A film, please.",
        choose=lambda output: Candidate(output, forged),
        outside=OUTSIDE,
    )
    run = declare(
        "t-forged",
        think=AgentTurn(code, choices={"answered": "done", "wait": "answer"}, visits=Visits(9, then="done")),
        answer=Wait("film.made", key=OUTSIDE.key, deadline=Deadline(hours=2, then="think"), then="think"),
        done=End(COMPLETE),
    ).start({})
    world.worker.run()
    assert (status(run)[2], row(run).error_code or "INVALID_CANDIDATE") == ("think", "INVALID_CANDIDATE")


def test_a_token_is_of_a_call_in_an_attempt() -> None:
    with pytest.raises(flows.errors.DefinitionError, match="in an agent that runs in an AgentTurn"):
        token(object())  # type: ignore[arg-type]
