"""An agent of the OpenAI Agents SDK as an agent turn: unchanged, and nothing is paid or done twice, wherever its worker is lost."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

pytest.importorskip("agents", reason="pip install 'outlast[openai-agents]'")

from agents import Agent, LocalShellTool, ModelProvider, RunConfig, function_tool, handoff

from approvals.models import Request
from approvals.tools import Guard
from flows import Candidate, Effect
from flows.errors import DefinitionError
from flows.models import JournalEntry, Operation
from tasks.agent.openai_agents import durable
from tests.factories import row, status
from tests.support.approving import ROLE, World, world
from tests.support.shop import Script, calls, cashier, says, thinks
from tests.support.tooling import declare
from tests.support.turnings import MONEY, PLACES, Killed, ask_provider, asked, entries, fatal, flow_of, go_on, quiet, tell_again

__all__ = ["declare", "quiet", "world"]

pytestmark = [pytest.mark.req("O1", "B3", "B5", "F6"), pytest.mark.usefixtures("quiet")]


def script() -> Script:
    return Script(
        [thinks("the secret of it"), calls("lookup", order=7)],
        [calls(MONEY, order=7), calls("tell", customer="ann"), calls("lookup", order=8)],
        [thinks("the secret of it"), says("All is well.")],
    )


def turn(agent: Any, **more: Any) -> Any:
    return durable(agent, prompt=lambda attempt: "Please pay back.", choose=lambda output: Candidate("answered", output), **more)


def refunds(declare: Any, agent: Any = None, **more: Any) -> Any:
    """A cashier whose payments people allow, and who tells each customer once."""
    said = {MONEY: Effect(reconcile=ask_provider), "tell": Effect(reconcile=tell_again)}
    return flow_of(declare, turn(agent or cashier(script()), approvals={MONEY: Guard(role=ROLE)}, effects=said), **more)


def test_names_of_units_are_persisted_and_stay(world: World, declare: Any) -> None:
    run = refunds(declare).start({}, by=world.robin)
    go_on(world, run)
    assert entries(run) == [
        ("model", "clerk__model.request", "done"),
        ("tool", "clerk__tool:lookup", "done"),
        ("model", "clerk__model.request", "done"),
        ("tool", "clerk__tool:tell", "done"),
        ("tool", "clerk__tool:lookup", "done"),
        ("tool", "clerk__tool:pay_back", "done"),
        ("model", "clerk__model.request", "done"),
    ]
    first = JournalEntry.objects.filter(workflow_id=run.id).earliest("number")
    assert (first.model, first.usage) == ("scripted", {"input_tokens": 10, "output_tokens": 5} | first.usage)


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
    again = [place.removeprefix("after ")] if place.startswith("after model") else []
    assert sorted(one for one in asked if one.startswith("model")) == sorted(["model 0", "model 1", "model 2", *again])
    assert sum(one[2] == "lost" for one in entries(run)) <= 1
    assert set(Operation.objects.filter(workflow_id=run.id).values_list("status", flat=True)) == {"succeeded"}
    assert Request.objects.filter(workflow_id=run.id).count() == 1, "people are asked once"


def test_people_see_the_defaults_and_a_no_is_an_answer_to_the_model(world: World, declare: Any) -> None:
    heard: list[Any] = []

    class Listening(Script):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
            heard.extend(
                item.get("output") for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"
            )
            return await super().get_response(system_instructions, input, *args, **kwargs)

    model = Listening([calls(MONEY, order=1), calls(MONEY, order=2, amount="5.00")], [says("so be it")])
    run = refunds(declare, cashier(model)).start({}, by=world.robin)
    world.worker.run()
    one, two = Request.objects.filter(workflow_id=run.id).order_by("id")
    assert one.candidate["value"]["arguments"] == {"order": 1, "amount": "1.00"}
    world.decide(one, "deny", comment="Not this customer.")
    world.decide(two)
    world.worker.run()
    assert row(run).result == "so be it"
    assert [what for what in asked if "tool" in what] == [f"tool {MONEY} 2 5.00"]
    assert "Not this customer." in str(heard)
    assert "paid back 5.00" in str(heard)


def test_a_tool_that_needs_an_approval_of_nobody_is_an_error_that_says_what_to_write(
    world: World, declare: Any, caplog: Any
) -> None:
    run = flow_of(declare, turn(cashier(Script([calls(MONEY, order=7)])), name="lax-clerk")).start({}, by=world.robin)
    world.worker.run()
    assert status(run)[1] == "HUMAN_REQUIRED"
    assert 'approvals={"pay_back": Guard(role="…")}' in caplog.text
    assert asked == ["model 0"]


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


class Busy(Exception):
    status_code = 429
    response = SimpleNamespace(headers={"Retry-After": "33"})


def test_a_busy_provider_is_on_record_and_what_was_answered_is_not_asked_again(world: World, declare: Any) -> None:
    raised: list[Any] = []
    code = turn(cashier(Script([calls("lookup", order=7)], Busy())), name="unlucky-clerk")

    async def noting(attempt: Any) -> Any:
        try:
            return await code(attempt)
        except Exception as found:
            raised.append(found)
            raise

    run = flow_of(declare, noting).start({}, by=world.robin)
    world.worker.run()
    assert (raised[0].code, raised[0].retry_after) == ("CAPACITY_UNAVAILABLE", 33)
    failed = JournalEntry.objects.get(workflow_id=run.id, status="failed", attempt=1)
    assert (failed.kind, failed.code) == ("model", "CAPACITY_UNAVAILABLE")


def test_an_agent_that_is_handed_over_to_is_durable_too_and_models_come_from_the_provider(world: World, declare: Any) -> None:
    @function_tool
    def stamp() -> str:
        asked.append("tool stamp")
        return "stamped"

    second = Agent(name="second", tools=[stamp])
    first = Agent(name="first", handoffs=[handoff(second)])
    second.handoffs = [first]
    model = Script([calls("transfer_to_second")], [calls("stamp")], [says("done")])

    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> Any:
            return model

    run = flow_of(declare, turn(first, run_config=RunConfig(model_provider=Provider(), tracing_disabled=True))).start(
        {}, by=world.robin
    )
    fatal["after model 2"] = Killed()
    go_on(world, run)
    assert row(run).result == "done"
    assert asked == ["model 0", "model 1", "tool stamp", "model 2", "model 2"]
    assert [name for _, name, _ in entries(run)] == [
        "first__model.request",
        "first__model.request",
        "first__tool:stamp",
        "first__model.request",
        "first__model.request",
    ]


@pytest.mark.parametrize(
    ("agent", "given", "problem"),
    [
        (Agent(name="two words"), {}, "recorded under its name"),
        (Agent(name="shell", tools=[LocalShellTool(executor=lambda request: "")]), {}, "LocalShellTool"),
        (Agent(name="remote", mcp_servers=[SimpleNamespace()]), {}, "MCP servers"),
        (Agent(name="talker"), {"session": object()}, "keep a conversation elsewhere"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_could_not_work_is_said_when_it_is_written(agent: Any, given: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(problem)):
        turn(agent, **given)
