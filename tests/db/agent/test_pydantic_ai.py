"""An agent of Pydantic AI as an agent turn: unchanged, and nothing is paid or done twice, wherever its worker is lost (O1, B3, B5, F6)."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest
from django.db import connection

pytest.importorskip("pydantic_ai", reason="pip install 'outlast[pydantic-ai]'")

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel

from approvals.models import Request
from approvals.tools import Guard
from flows import (
    Budget,
    Candidate,
    Effect,
    Spend,
    budgets,
)
from flows.errors import DefinitionError
from flows.models import JournalEntry, Operation
from tasks.agent.pydantic_ai import durable
from tests.factories import row, status
from tests.support import bank
from tests.support.approving import ROLE, World, world
from tests.support.bank import calls, cashier, says, scripted, thinks
from tests.support.budgeting import amounts
from tests.support.tooling import declare
from tests.support.turnings import (
    MONEY,
    PLACES,
    Killed,
    ask_provider,
    asked,
    at,
    entries,
    fatal,
    flow_of,
    go_on,
    happened,
    quiet,
    tell_again,
)

__all__ = ["declare", "quiet", "world"]

pytestmark = [pytest.mark.req("O1", "B3", "B5", "F6"), pytest.mark.usefixtures("quiet")]


def support(declare: Any) -> Any:
    """The three lines that an agent needs, beside the flow it is for: the import above, this, and the node."""
    return flow_of(
        declare,
        durable(
            bank.support_agent,
            name="support_agent",  # the documentation gives it none, and what is on record is found by it
            prompt=lambda attempt: attempt.input["question"],
            deps=lambda attempt: bank.SupportDependencies(customer_id=123, db=bank.DatabaseConn()),
            choose=lambda output: Candidate("answered", output.model_dump()),
        ),
    )


def test_the_agent_of_the_documentation_runs_as_it_is(world: World, declare: Any) -> None:
    with bank.support_agent.override(model=bank.support_model()):
        run = support(declare).start({"question": "What is my balance?"})
        world.worker.run()
    assert row(run).result == {"support_advice": "Your balance is 123.45.", "block_card": False, "risk": 1}
    assert asked == ["model 0", "tool customer_balance", "model 1"]


def test_names_of_units_are_persisted_and_stay(world: World, declare: Any) -> None:
    """Who renames one of these strands what runs now: its journal goes on with other calls."""
    with bank.support_agent.override(model=bank.support_model()):
        run = support(declare).start({"question": "What is my balance?"})
        world.worker.run()
    assert entries(run) == [
        ("model", "support_agent__model.request.function:scripted", "done"),
        ("tool", "support_agent__function_toolset__<agent>.call_tool:customer_balance", "done"),
        ("model", "support_agent__model.request.function:scripted", "done"),
    ]


# ---------------------------------------------------------------- crashes, approvals, effects

SCRIPT = (
    [thinks("the secret of it"), calls("lookup", order=7)],
    [calls(MONEY, order=7), calls("tell", customer="ann"), calls("lookup", order=8)],
    [thinks("the secret of it"), says("All is well.")],
)


def refunds(declare: Any, agent: Any = None, **more: Any) -> Any:
    """A cashier whose refunds people allow, and who tells each customer once."""
    code = durable(
        agent or cashier(scripted(*SCRIPT)),
        prompt=lambda attempt: "Please pay order 7 back.",
        choose=lambda output: Candidate("answered", output),
        approvals={MONEY: Guard(role=ROLE)},
        effects={MONEY: Effect(reconcile=ask_provider), "tell": Effect(reconcile=tell_again)},
    )
    return flow_of(declare, code, **more)


@pytest.mark.parametrize("place", ["", *PLACES])
def test_a_worker_that_is_lost_anywhere_repeats_no_effect_and_pays_for_one_call_at_most(
    world: World, declare: Any, place: str
) -> None:
    if place:
        fatal[place] = Killed()
    run = refunds(declare).start({}, by=world.robin)
    go_on(world, run)
    assert row(run).result == "All is well."
    assert asked.count(f"tool {MONEY} 7 1.00") == asked.count("tool tell ann") == 1, asked
    models = [one for one in asked if one.startswith("model")]
    again = 1 if place.startswith("after model") else 0
    assert sorted(models) == sorted(["model 0", "model 1", "model 2"] + again * [place.removeprefix("after ")])
    lookups = [one for one in asked if one.startswith("tool lookup")]
    assert len(lookups) == 2 + (place == "after tool lookup"), "a tool that only reads may be asked again"
    lost = [one for one in entries(run) if one[2] == "lost"]
    assert len(lost) <= 1
    assert set(Operation.objects.filter(workflow_id=run.id).values_list("status", flat=True)) == {"succeeded"}
    assert Request.objects.filter(workflow_id=run.id).count() == 1, "people are asked once"


# ---------------------------------------------------------------- what people say


def test_people_are_asked_about_what_is_executed_with_its_defaults(world: World, declare: Any) -> None:
    run = refunds(declare).start({}, by=world.robin)
    world.worker.run()
    (request,) = Request.objects.filter(workflow_id=run.id)
    assert request.candidate["value"]["arguments"] == {"order": 7, "amount": "1.00"}
    assert request.candidate["choice"] == f"cashier.{MONEY}"
    assert [one for one in asked if MONEY in one] == []


def test_several_calls_are_asked_about_at_once_and_a_no_is_an_answer_to_the_model(world: World, declare: Any) -> None:
    heard: list[Any] = []

    def model(messages: list[Any], info: Any) -> Any:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        if number == 0:
            return ModelResponse(parts=[calls(MONEY, order=1), calls(MONEY, order=2, amount="5.00")])
        heard.extend(part.content for part in messages[-1].parts if getattr(part, "tool_name", "") == MONEY)
        return ModelResponse(parts=[says("so be it")])

    run = refunds(declare, cashier(FunctionModel(model))).start({}, by=world.robin)
    world.worker.run()
    one, two = Request.objects.filter(workflow_id=run.id).order_by("id")
    world.decide(one, "deny", comment="Not this customer.")
    world.decide(two)
    world.worker.run()
    assert row(run).result == "so be it"
    assert asked == [f"tool {MONEY} 2 5.00"]
    assert "Not this customer." in heard[0]
    assert heard[1] == "paid back 5.00"


def test_a_tool_for_which_somebody_is_named_requires_approval_also_where_it_does_not_say_so(world: World, declare: Any) -> None:
    code = durable(
        cashier(scripted([calls("lookup", order=7)], [says("done")])),
        name="careful",
        prompt=lambda attempt: "Look.",
        choose=lambda output: Candidate("answered", output),
        approvals={"lookup": Guard(role=ROLE)},
    )
    run = flow_of(declare, code).start({}, by=world.robin)
    world.worker.run()
    assert asked == ["model 0"]
    world.decide(world.request_of(run))
    world.worker.run()
    assert asked == ["model 0", "tool lookup 7", "model 1"]


def test_a_tool_that_requires_approval_of_nobody_is_an_error_that_says_what_to_write(
    world: World, declare: Any, caplog: Any
) -> None:
    code = durable(
        cashier(scripted([calls(MONEY, order=7)])),
        name="lax",
        prompt=lambda attempt: "",
        choose=lambda output: Candidate("answered"),
    )
    run = flow_of(declare, code).start({}, by=world.robin)
    world.worker.run()
    assert status(run)[1] == "HUMAN_REQUIRED"
    assert 'approvals={"pay_back": Guard(role="…")}' in caplog.text
    assert [one for one in asked if MONEY in one] == []


# ---------------------------------------------------------------- money, providers, reasoning


def test_tokens_and_calls_go_to_the_budget(world: World, declare: Any) -> None:
    budget = Budget(model_tokens=5000, model_calls=2, tool_calls=50)
    run = refunds(declare, budget=budget, each=Spend(model_tokens=1000)).start({}, by=world.robin)
    world.worker.run()
    world.decide(world.request_of(run))
    world.worker.run()
    assert status(run)[1] == "HUMAN_REQUIRED"
    assert asked[-1] != "model 2", "there is no budget for a third call"
    assert amounts(run, "model_calls") == (2, 0)
    assert 0 < amounts(run, "model_tokens")[0] < 1000, "what was said to be used, and not what was set aside"
    assert amounts(run, "tool_calls") == (3, 0)
    budgets.raise_(row(run), "model_calls", by_amount=5, by=world.sue, reason="Let it finish")
    go_on(world, run)
    assert asked.count("model 0") == asked.count("model 1") == asked.count("model 2") == 1
    assert asked.count(f"tool {MONEY} 7 1.00") == 1


def test_what_a_model_thought_is_nowhere_in_the_database(world: World, declare: Any) -> None:
    run = refunds(declare).start({}, by=world.robin)
    go_on(world, run)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" AS t WHERE t::text LIKE %s', ["%the secret of it%"])
            assert cursor.fetchone() == (0,), table
    assert JournalEntry.objects.filter(workflow_id=run.id, kind="model", status="done").count() == 3


def busy(status_code: int, **headers: str) -> ModelHTTPError:
    """As a model of the library raises what its client has raised."""

    class APIStatusError(Exception):
        def __init__(self) -> None:
            self.status_code, self.response = status_code, type("Response", (), {"headers": headers})()

    error = ModelHTTPError(status_code, "scripted", body="the provider's text")
    error.__cause__ = APIStatusError()
    return error


@pytest.mark.parametrize(
    ("error", "code", "seconds_to_wait"),
    [
        (busy(429, **{"retry-after": "33"}), "CAPACITY_UNAVAILABLE", 33),
        (busy(503), "TRANSIENT", None),
        (busy(401), "POLICY_DENIED", None),
        (busy(400), "COMPETENCE_FAILURE", None),
    ],
)
def test_what_a_provider_refuses_is_on_record_as_what_it_means(
    world: World, declare: Any, error: Exception, code: str, seconds_to_wait: int | None
) -> None:
    raised: list[Any] = []
    code_of = durable(
        cashier(scripted([calls("lookup", order=7)], error)),
        name="unlucky",
        prompt=lambda attempt: "Look.",
        choose=lambda output: Candidate("answered", output),
    )

    async def noting(attempt: Any) -> Any:
        try:
            return await code_of(attempt)
        except Exception as found:
            raised.append(found)
            raise

    run = flow_of(declare, noting).start({}, by=world.robin)
    world.worker.run()
    assert raised[0].code == code
    assert raised[0].retry_after == seconds_to_wait
    failed = JournalEntry.objects.get(workflow_id=run.id, status="failed", attempt=1)
    assert (failed.kind, failed.code) == ("model", code)
    assert asked.count("model 0") == 1, "what was answered before is not asked again"
    assert "the provider's text" not in str(failed.answer)


def test_a_request_that_was_sent_and_not_answered_is_made_anew_and_charged(world: World, declare: Any) -> None:
    errors: list[Exception] = [TimeoutError("read"), ConnectionRefusedError()]

    def model(messages: list[Any], info: Any) -> Any:
        if errors:
            raise errors.pop(0)
        return ModelResponse(parts=[says("so be it")])

    code = durable(
        cashier(FunctionModel(model)),
        name="patient",
        prompt=lambda attempt: "Look.",
        choose=lambda output: Candidate("answered", output),
    )
    budget = Budget(model_tokens=5000, model_calls=9)
    run = flow_of(declare, code, budget=budget, each=Spend(model_tokens=1000)).start({}, by=world.robin)
    go_on(world, run)
    assert row(run).result == "so be it"
    failed = JournalEntry.objects.filter(workflow_id=run.id, status="failed").order_by("number")
    assert [one.code for one in failed] == ["ACTIVITY_TIMEOUT", "TRANSIENT"]
    spent, left_open = amounts(run, "model_tokens")
    assert (1000 < spent < 1200, left_open) == (True, 0), "all that the first call may have used, and nothing of the second"
    assert amounts(run, "model_calls") == (3, 0)


def test_a_streamed_answer_is_on_record_whole_and_read_again(world: World, declare: Any) -> None:
    seen: list[str] = []

    async def stream(messages: list[Any], info: Any) -> Any:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        happened(f"model {number}")
        if number == 0:
            yield {0: DeltaToolCall(name="lookup", json_args='{"order": 7}')}
            return
        yield {0: DeltaThinkingPart(content="the secret of it")}
        for word in ("All ", "is ", "well."):
            yield word
        at("after model 1")

    async def listen(ctx: Any, events: Any) -> None:
        async for event in events:
            seen.append(type(event).__name__)

    code = durable(
        cashier(FunctionModel(stream_function=stream)),
        name="streaming",
        prompt=lambda attempt: "Look.",
        choose=lambda output: Candidate("answered", output),
        event_stream_handler=listen,
    )
    fatal["after model 1"] = Killed()
    run = flow_of(declare, code).start({}, by=world.robin)
    go_on(world, run)
    assert row(run).result == "All is well."
    assert asked == ["model 0", "tool lookup 7", "model 1", "model 1"]
    assert [name for kind, name, _ in entries(run) if kind == "model"] == 3 * ["streaming__model.request_stream"]
    assert "PartStartEvent" in seen
    (answer,) = JournalEntry.objects.filter(workflow_id=run.id, kind="model", status="done").order_by("-number")[:1]
    response = answer.answer.get("response", answer.answer)  # as releases before 2.60 keep it
    assert [part["content"] for part in response["parts"]] == ["All is well."]
    assert "the secret of it" not in str(list(JournalEntry.objects.values_list("answer", flat=True)))


def test_a_tool_that_is_a_plain_function_leaves_no_connection_behind(world: World, declare: Any) -> None:
    agent: Any = Agent(scripted([calls("count")], [says("done")]), name="counting")
    threads: list[Any] = []

    @agent.tool_plain
    def count() -> int:
        threads.append((threading.get_ident(), connection.connection))
        found = JournalEntry.objects.count()
        threads.append(connection.connection)
        return found

    code = durable(agent, prompt=lambda attempt: "", choose=lambda output: Candidate("answered", output))
    run = flow_of(declare, code).start({}, by=world.robin)
    world.worker.run()
    assert row(run).result == "done"
    assert threads[0][0] != threading.get_ident()
    assert threads[1].closed


def test_outside_an_attempt_the_agent_is_what_it_was() -> None:
    agent = cashier(scripted([calls("lookup", order=7)], [says("done")]))
    durable(agent, name="elsewhere", prompt=lambda attempt: "", choose=lambda output: Candidate("answered", output))
    assert asyncio.run(agent.run("Look.")).output == "done"
    assert asked == ["model 0", "tool lookup 7", "model 1"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "two words"}, "recorded under its name"),
        ({"approvals": "finance"}, "approvals= of cashier"),
        ({"effects": {"tell": True}}, "effects= of cashier"),
        ({"user_prompt": "x"}, "prompt="),
    ],
)
def test_what_could_not_work_is_said_when_it_is_written(given: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(problem)):
        durable(cashier(scripted()), prompt=lambda attempt: "", choose=lambda output: Candidate("answered"), **given)
