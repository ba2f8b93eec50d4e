"""Ours: the same tools and the same model in an AgentTurn.

Its prompt holds what code knows: outlines, revisions, an index of the calls so far, and the newest results.
"""

from __future__ import annotations

from typing import Any

from benchmarks.resume import model, shop
from benchmarks.resume.chat import Used
from flows import COMPLETE, FAILED, AgentTurn, Budget, Effect, End, Fact, Flow, Loop, Spend, Stop, Tool
from flows.core.turns import tokens_of

#: What one call of the model may use.
EACH = 30_000


def metadata(_: Any) -> dict[str, Fact]:
    """What the project says of itself, made by code each time."""
    return {"revisions": Fact({"revisions": shop.revisions()}), "outlines": Fact({"files": shop.outlines()})}


def flow(ask: model.Model, limit: int) -> type[Flow]:
    """A flow whose runs may use so many tokens."""
    nodes = {
        "Meta": type("Meta", (), {"name": f"resume-build-{limit}", "budget": Budget(model_tokens=limit)}),
        "build": AgentTurn(
            Loop(ask, instructions=model.TASK, context=metadata, name="model of code"),
            choices={"built": "done", "stuck": "stuck"},
            tools=[
                shop.list_project,
                shop.read_file,
                Tool(shop.edit_file, effect=Effect(idempotent=True)),
                shop.verify,
            ],
            stop=Stop(calls=200, tools=200),
            each=Spend(model_tokens=EACH),
        ),
        "done": End(COMPLETE),
        "stuck": End(FAILED),
    }
    return type("ResumeBuild", (Flow,), nodes)


def work() -> None:
    """A worker that knows nothing of an earlier one, until nothing is ready."""
    from flows.testing import local_worker

    with local_worker() as worker:
        worker.run()


def used(run: Any, after: int = 0) -> Used:
    """What the journal has from that entry on."""
    from flows.models import JournalEntry

    found = JournalEntry.objects.filter(workflow_id=run.id, number__gt=after).order_by("number")
    rows: list[tuple[str, str, Any, Any, str]] = [(one.kind, one.name, one.usage, one.answer, one.status) for one in found]
    assert {status for *_, status in rows} <= {"done"}, rows
    said = [answer for kind, _, _, answer, _ in rows if kind == "model"]
    proposed = said[-1]["candidate"] if said else None
    return Used(
        tokens=[tokens_of(usage) for kind, _, usage, _, _ in rows if kind == "model"],
        asked=[[call["name"] for call in answer["calls"]] for answer in said],
        tools=[name for kind, name, *_ in rows if kind == "tool"],
        choice=proposed["choice"] if proposed else "",
    )


def newest(run: Any) -> int:
    """The number of the newest entry."""
    from flows.models import JournalEntry

    return JournalEntry.objects.filter(workflow_id=run.id).count()
