"""An agent turn of calls of a model and of tools, some of them effects, and the story of a run to its end.

`OUTLAST_CRASH_POINTS` set: twelve calls of the model and eight of tools, three of them effects; else four, and four with two.
"""

from __future__ import annotations

import os
from typing import Any

from flows import COMPLETE, AgentTurn, Budget, Candidate, Effect, End, Flow, Paid, Retry, Spend, Stop, Tool, minutes
from flows.core.effects import DidNotHappen, Happened
from tests.support.chaosapp import journal
from tests.support.chaosapp.guarded import carry_on
from tests.support.chaosapp.voyage import point

#: Tokens of one call of the model, as its provider bills them; and how many one call sets aside.
CALL, EACH = 10, 30
BILLED, READ = "billed", "read"
WHOLE = bool(os.environ.get("OUTLAST_CRASH_POINTS"))
CALLS = 12 if WHOLE else 4
_SHORT: dict[int, tuple[tuple[str, str], ...]] = {
    0: (("look", "map"), ("buy", "rope")),
    1: (("look", "map"),),
    2: (("buy", "rope"),),
}
_LONG: dict[int, tuple[tuple[str, str], ...]] = {
    0: (("look", "list"), ("look", "map")),
    2: (("buy", "rope"),),
    3: (("look", "map"),),
    5: (("buy", "sail"), ("look", "list")),
    8: (("buy", "rope"),),
    9: (("look", "weather"),),
}
#: After which call of the model which tools are called.
TOOLS = _LONG if WHOLE else _SHORT
EFFECTS = {"rope": 2, "sail": 1} if WHOLE else {"rope": 2}


def ask(operation: Any) -> Any:
    """What the provider's own journal says: a call is known there by its operation id."""
    folder = operation.request["folder"]
    done = {line["attempt"] for line in journal.read(folder, journal.DONE)}
    return Happened({"receipt": operation.request["what"]}) if operation.id in done else DidNotHappen()


def look(folder: str, what: str) -> dict[str, str]:
    """Look something up; twice costs nothing but time."""
    point("before")
    journal.write(folder, READ, f"/{what}", "")
    point("after")
    return {"seen": what}


def buy(folder: str, what: str) -> dict[str, str]:
    """Every call of it does it again."""
    from approvals.tools import current_call

    point("before")
    journal.write(folder, journal.DONE, f"/{what}", current_call().id)
    point("after")
    return {"receipt": what}


def model(folder: str, number: int) -> Paid:
    """Billed, whatever becomes of the process that asked."""
    point("before")
    journal.write(folder, BILLED, f"/{number}", "")
    point("after")
    calls = [{"tool": tool, "what": what} for tool, what in TOOLS.get(number, ())]
    return Paid({"calls": calls}, usage={"input_tokens": CALL - 2, "output_tokens": 2})


def sail(attempt: Any) -> Candidate:
    """The loop of an agent."""
    folder = attempt.input["folder"]
    seen: list[Any] = []
    for number in range(CALLS):
        said = attempt.journal.model("model", lambda number=number: model(folder, number), prompt=seen)
        for call in said["calls"]:
            seen.append(attempt.tools.call(call["tool"], {"folder": folder, "what": call["what"]}))
    return Candidate("sailed", seen)


class Sailor(Flow):
    """One agent turn under a budget."""

    class Meta:
        name = "chaos-agent"
        budget = Budget(model_tokens=10_000, model_calls=1000, tool_calls=1000)

    act = AgentTurn(
        sail,
        choices={"sailed": "done"},
        tools=[look, Tool(buy, effect=Effect(reconcile=ask))],
        stop=Stop(calls=100, tools=100, same=None),
        each=Spend(model_tokens=EACH),
        retry=Retry(3, initial=minutes(1), max_lost=1000),
    )
    done = End(COMPLETE, result=lambda state: state.results["act"]["value"])


def agent(folder: str, key: str) -> None:
    """To its end; told again it goes on."""
    from tests.support.chaosapp.stories import taking_over

    with taking_over() as worker:
        run = Sailor.start({"folder": folder}, key=key)
        carry_on(worker, run.id)
