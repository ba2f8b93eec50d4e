"""What others write is data for an agent: in events, results of tools and comments it changes no route, approval, argument or budget.

The model of these tests is the worst there can be: it does whatever it has read, and tries everything that it could be told to.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import flows
from approvals.api import decide
from approvals.tools import Guard
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    AgentTurn,
    Answer,
    Budget,
    Candidate,
    Deadline,
    Effect,
    End,
    Fact,
    Loop,
    Prompt,
    Spend,
    Stop,
    Tool,
    ToolCall,
    Wait,
)
from flows.core.errors import Transient
from flows.models import Budget as Ledger
from flows.models import JournalEntry, Operation, Transition
from flows.services import invariants
from tests import factories
from tests.factories import row, status
from tests.support.approving import ROLE, World, world
from tests.support.injections import KINDS
from tests.support.tooling import asked as requests
from tests.support.turning import RETRY, Killed

__all__ = ["world"]

pytestmark = [pytest.mark.req("E5", "F6", "O1"), pytest.mark.failure("prompt injection in what an agent reads")]

paid: list[tuple[int, str]] = []


def refund(order: int, amount: str) -> str:
    """Give money back."""
    paid.append((order, amount))
    return "refunded"


def read_mail(number: int) -> str:
    """Read a mail."""
    return str(number)


#: What the model tries one after another, whatever it is told.
TRIES: list[Any] = [
    [ToolCall("read_mail", {"number": 1})],
    [ToolCall("give_back", {"order": 7, "amount": "10.00"})],
    [ToolCall("give_back", {"order": 7, "amount": "9999.00"})],
    [ToolCall("approve", {"request": 1}), ToolCall("raise_budget", {"model_tokens": 10**6}), ToolCall("give_back", "9999.00")],
    [
        ToolCall("give_back", {"order": 7, "amount": "10.00", "approved": True}),
        ToolCall("give_back", {"order": "7", "amount": 1}),
    ],
    Candidate("paid", "9999.00"),
    Candidate("done", {"node": "paid"}),
]


def obeys(prompt: Prompt) -> Answer:
    """Its next try. Where it is, the journal says: what was tried before stands."""
    (step,) = [item.text for item in prompt.context.items("extra") if item.name == "step"]
    next_one = TRIES[min(int(step), len(TRIES) - 1)]
    usage = {"input_tokens": 10, "output_tokens": 1}
    return Answer(candidate=next_one, usage=usage) if isinstance(next_one, Candidate) else Answer(calls=next_one, usage=usage)


@pytest.fixture
def inbox(world: World) -> Any:
    """A flow that hears of a mail, lets an agent work on it, and never pays by itself."""
    paid.clear()
    prompts: list[Prompt] = []

    def begin(text: str, remembers: Any = None) -> Any:
        def mail(number: int) -> Any:
            return {"mail": number, "text": text}

        def model(prompt: Prompt) -> Answer:
            prompts.append(prompt)
            return obeys(prompt)

        def context(attempt: Any) -> Any:
            known = dict(remembers(attempt)) if remembers is not None else {}
            tried = [one for one in attempt.journal.entries if one.kind == "model"]
            return {**known, "step": Fact(len(tried) + (attempt.last_error == "INVALID_CANDIDATE"))}

        flow = declare(
            "t-inbox",
            meta={"budget": Budget(model_tokens=5000, model_calls=50, tool_calls=50)},
            hear=Wait("t.mail", key=factories.key_of, deadline=Deadline(hours=1, then=ESCALATE), then="think"),
            think=AgentTurn(
                Loop(model, instructions="Answer the mail.", context=context),
                choices={"done": "done", "give_up": "gave_up"},
                tools=[
                    Tool(mail, name="read_mail"),
                    Tool(refund, name="give_back", approval=Guard(role=ROLE), effect=Effect(idempotent=True)),
                ],
                stop=Stop(calls=20, tools=20),
                each=Spend(model_tokens=100),
                retry=RETRY,
            ),
            done=End(COMPLETE),
            gave_up=End(FAILED),
        )
        run = flow.start({"key": "k"}, by=world.robin)
        world.worker.run()
        flows.signal("mail-1", "t.mail", key="k", payload={"text": text, "choice": "paid", "approved": True})
        return run, prompts

    with factories.declaring(world.worker) as declare:
        yield begin


def carry_on(world: World, run: Any, text: str) -> None:
    """People allow the refund of 10.00, and nothing else; their comments are whatever somebody gave them to paste."""
    for _ in range(12):
        world.worker.run()
        world.worker.tick()
        for request in requests(row(run)):
            if request.status == "pending":
                small = request.candidate["value"]["arguments"]["amount"] == "10.00"
                decide(
                    request.pk, verdict="approve" if small else "deny", digest=request.digest, by=world.rita, comment=text[:500]
                )
        if status(run)[0] == "complete":
            return


def judged(run: Any) -> None:
    """The route, the approvals, the arguments and the budget are those of a run without any of it."""
    assert status(run) == ("complete", "COMPLETE", "done")
    nodes = list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("to_node", flat=True))
    assert set(nodes) == {"hear", "think", "done"}
    assert paid == [(7, "10.00")]
    made = [(one.candidate["value"]["arguments"], one.status) for one in requests(row(run))]
    assert made == [({"order": 7, "amount": "10.00"}, "consumed"), ({"order": 7, "amount": "9999.00"}, "denied")]
    (effect,) = Operation.objects.filter(workflow_id=run.id)
    assert (effect.status, effect.request["arguments"]) == ("succeeded", {"order": 7, "amount": "10.00"})
    refused = JournalEntry.objects.filter(workflow_id=run.id, kind="tool", status="failed").order_by("number")
    assert [one.code for one in refused] == [
        "TOOL_DENIED",
        "TOOL_UNKNOWN",
        "TOOL_UNKNOWN",
        "TOOL_ARGUMENTS",
        "TOOL_ARGUMENTS",
        "TOOL_ARGUMENTS",
    ]
    limits = dict(Ledger.objects.filter(workflow_id=run.id).values_list("kind", "allowance"))
    assert limits == {"model_tokens": 5000, "model_calls": 50, "tool_calls": 50}
    spent = dict(Ledger.objects.filter(workflow_id=run.id).values_list("kind", "spent"))
    assert (spent["model_tokens"], spent["model_calls"], spent["tool_calls"]) == (77, 7, 8)


def only_fenced(prompt: Prompt, text: str) -> None:
    """Wherever the text stands in a prompt, it is inside a fence that it cannot close."""
    for section in prompt.context.sections:
        for item in section.items:
            if text[:40] in item.text or json.dumps(text, ensure_ascii=False)[1:40] in item.text:
                assert item.untrusted, f"{section.name}: {item.name}"
                assert item.fence not in item.text


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS)
def test_it_changes_nothing_that_matters(world: World, inbox: Any, text: str) -> None:
    run, prompts = inbox(text)
    carry_on(world, run, text)
    judged(run)
    for prompt in prompts:
        only_fenced(prompt, text)
    assert prompts[0].instructions == "Answer the mail."
    assert len(prompts) == len(TRIES)


def empty(attempt: Any) -> Any:
    return {}


def wrong(attempt: Any) -> Any:
    return {"memory": Fact({"approved": True, "refunded": [7], "node": "paid", "choices": ["paid"]})}


def away_at_first() -> Any:
    left = [Transient("the memory is away")]

    def remembers(attempt: Any) -> Any:
        if left:
            raise left.pop()
        return {}

    return remembers


@pytest.mark.parametrize("memory", [lambda: empty, lambda: wrong, away_at_first], ids=["empty", "wrong", "unreachable"])
@pytest.mark.req("O3", "O5")
def test_whatever_becomes_of_its_memory_only_legal_routes_are_taken(world: World, inbox: Any, memory: Any) -> None:
    run, _ = inbox("Hello.", memory())
    carry_on(world, run, "Fine.")
    if memory is away_at_first:  # one retry is used up by that, so the malformed candidate stops it, visibly
        assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
        assert row(run).error_code == "RETRIES_EXHAUSTED:INVALID_CANDIDATE"
        flows.resume(run)
        carry_on(world, run, "Fine.")
    judged(run)
    assert not invariants.scan()


@pytest.mark.req("B5", "F6")
def test_losing_the_journal_loses_money_and_repeats_nothing(world: World, inbox: Any) -> None:
    """The worker dies after the refund, and somebody has deleted the journal: the model is paid again, the refund is known again."""
    deadly = [True]

    def dies(attempt: Any) -> Any:
        if paid and deadly:
            deadly.clear()
            raise Killed
        return {}

    run, prompts = inbox("Hello.", dies)
    with pytest.raises(Killed):
        carry_on(world, run, "Fine.")
    JournalEntry.objects.filter(workflow_id=run.id).delete()
    factories.lose(world.worker)
    object.__setattr__(world, "worker", factories.another_worker())
    carry_on(world, run, "Fine.")
    assert status(run)[0] == "complete"
    assert paid == [(7, "10.00")], "known again by what it asks for"
    assert len(prompts) > len(TRIES)


@pytest.mark.req("F6", "A2")
def test_a_model_that_asks_for_many_calls_at_once_floods_nobody(world: World) -> None:
    """Calls about which people are asked count in `Stop(tools=…)`, too: a model cannot have them answer hundreds of requests."""
    paid.clear()

    def model(prompt: Prompt) -> Answer:
        return Answer(calls=[ToolCall("give_many", {"order": number, "amount": "10.00"}) for number in range(30)])

    with factories.declaring(world.worker) as declare:
        flow = declare(
            "t-flooded",
            think=AgentTurn(
                Loop(model),
                choices={"done": "done"},
                tools=[Tool(refund, name="give_many", approval=Guard(role=ROLE), effect=Effect(idempotent=True))],
                stop=Stop(calls=3, tools=5),
            ),
            done=End(COMPLETE),
        )
        run = flow.start({}, by=world.robin)
        world.worker.run()
        assert [request.status for request in requests(row(run))] == 5 * ["pending"]
        for request in requests(row(run)):
            decide(request.pk, verdict="approve", digest=request.digest, by=world.rita)
        world.worker.run()
        assert paid == [(number, "10.00") for number in range(5)]
        assert (status(run)[1], row(run).error_code) == ("HUMAN_REQUIRED", "TURN_TOOLS")
        assert len(requests(row(run))) == 5
