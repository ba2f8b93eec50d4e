"""Tools of an agent turn, its loop, and what a crash at the worst moment leaves: one effect, one question, one payment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flows
from approvals.api import decide
from approvals.tools import Guard, current_call
from flows import (
    COMPLETE,
    AgentTurn,
    Answer,
    Candidate,
    Effect,
    End,
    Fact,
    Keep,
    Loop,
    PipelineTool,
    Prompt,
    Stop,
    Tool,
    ToolCall,
    ToolStep,
    Unknown,
)
from flows.core.errors import DefinitionError
from flows.core.turn_errors import ToolFailed
from flows.models import JournalEntry, Operation
from flows.services.replay import replay
from tests import factories
from tests.factories import row, status
from tests.support.approving import ROLE, World, world
from tests.support.tooling import asked as requests
from tests.support.turning import RETRY, Killed, entries, go

__all__ = ["world"]

pytestmark = pytest.mark.req("O1", "B5", "F6", "A5", "G3")

done: list[str] = []
#: The next call of a tool of that name dies before or after it was made.
deadly: dict[str, str] = {}


def mark(name: str) -> None:
    if deadly.get(name) == "before":
        del deadly[name]
        raise Killed
    done.append(name)
    if deadly.get(name) == "after":
        del deadly[name]
        raise Killed


def read_file(path: str, lines: int = 10) -> dict[str, Any]:
    """Read a file."""
    mark(f"read {path}")
    return {"text": f"{path} {lines}"}


def write_file(path: str, text: str) -> str:
    """Write a file."""
    mark(f"write {path}")
    return current_call().id.rpartition(":")[2]


def refund(order: int) -> str:
    """Give money back."""
    mark(f"refund {order}")
    return f"refunded {order}"


def save(arguments: Any, results: Any) -> Any:
    mark("save")
    return arguments["page"]


def check(arguments: Any, results: Any) -> Any:
    mark("check")
    return {"safe": results["save"] == "index"}


def publish(arguments: Any, results: Any) -> Any:
    mark("publish")
    return "published"


TOOLS = [
    read_file,
    Tool(write_file, effect=Effect(idempotent=True)),
    Tool(refund, name="t.refund", approval=Guard(role=ROLE), effect=Effect(reconcile=lambda operation: Unknown(""))),
    PipelineTool(
        "publish",
        [ToolStep("save", save), ToolStep("check", check),
         ToolStep("publish", publish, effect=Effect(idempotent=True), when=lambda results: results["check"]["safe"])],
        arguments={"page": str},
        describe="Save, check, and publish where it is safe.",
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    done.clear()
    deadly.clear()


@pytest.fixture
def turn(world: World) -> Iterator[Callable[..., Any]]:
    """A run of one agent turn with these tools, whose code or loop is given."""
    with factories.declaring(world.worker) as declare:

        def begin(do: Any, **options: Any) -> Any:
            flow = declare(
                "t-agent-tools",
                think=AgentTurn(do, choices={"go": "done"}, tools=TOOLS, retry=RETRY, **options),
                done=End(COMPLETE, result=lambda state: state.results["think"]["value"]),
            )
            return flow.start({}, by=world.robin)

        yield begin


def script(*answers: Any) -> tuple[Callable[[Prompt], Answer], list[Prompt]]:
    """A model that gives these answers in order, however often its process is gone: the journal says how far it is."""
    prompts: list[Prompt] = []

    def model(prompt: Prompt) -> Answer:
        prompts.append(prompt)
        answer = answers[min(len(prompts), len(answers)) - 1]
        return answer if isinstance(answer, Answer) else Answer(calls=[ToolCall(*one) for one in answer])

    return model, prompts


def work(world: World, run: Any, times: int = 20) -> None:
    """Work until nothing is ready, over deaths of workers."""
    worker = world.worker
    for _ in range(times):
        try:
            worker.run()
        except Killed:
            factories.lose(worker)
            worker = factories.another_worker()
            continue
        return
    raise AssertionError("it dies for ever")


def test_the_loop_calls_tools_until_there_is_a_candidate(world: World, turn: Any) -> None:
    model, prompts = script(
        [("read_file", {"path": "a"}), ("read_file", {"path": "b", "lines": 3})],
        [("nothing", {"x": 1}), ("read_file", {"lines": "many"}), ("read_file", {"path": "\x00"})],
        Answer(candidate=go("done"), usage={"input_tokens": 7}),
    )
    run = turn(Loop(model, instructions="Do it.", context=lambda attempt: {"outline": Fact(["a", "b"])}, name="m-1"))
    world.worker.run()
    assert row(run).result == "done"
    assert done == ["read a", "read b"]
    found = JournalEntry.objects.filter(workflow_id=run.id, kind="tool").order_by("number")
    assert [(one.name, one.status, one.code) for one in found] == [
        ("read_file", "done", ""),
        ("read_file", "done", ""),
        ("nothing", "failed", "TOOL_UNKNOWN"),
        ("read_file", "failed", "TOOL_ARGUMENTS"),
        ("read_file", "failed", "TOOL_ARGUMENTS"),
    ]
    last = prompts[-1].text
    assert last.startswith("Do it.\n\n")
    assert 'outline: ["a", "b"]' in last
    assert '2 read_file {"path": "a"} → 15 bytes, sha256:' in last
    assert "7 read_file" in last
    assert "error TOOL_ARGUMENTS" in last
    assert "there is no tool 'nothing'; tools are read_file, write_file, t.refund, publish" in last
    assert [one["name"] for one in prompts[0].tools] == ["read_file", "write_file", "t.refund", "publish"]
    assert prompts[0].tools[0]["parameters"]["properties"] == {"path": {"type": "string"}, "lines": {"type": "integer"}}


def test_a_prompt_does_not_grow_with_the_turn(world: World, turn: Any) -> None:
    steps = [[("read_file", {"path": f"{number:02}" * 50})] for number in range(30)]
    model, prompts = script(*steps, Answer(candidate=go()))
    run = turn(Loop(model, max_tokens=4000), stop=Stop(calls=40, tools=40), keep=Keep(results=2, bytes=300, lines=5))
    world.worker.run()
    assert status(run)[0] == "complete"
    sizes = [len(prompt.text) for prompt in prompts]
    assert max(sizes[8:]) - min(sizes[8:]) < 60, sizes
    assert "(25 earlier calls)" in prompts[-1].text


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_effect_that_a_crash_met_is_one_operation(world: World, turn: Any, when: str) -> None:
    """Equal calls are told apart, also where the earlier ones are only read from the journal."""
    deadly["write a"] = when
    calls = [("write_file", {"path": "a", "text": "1"}), ("read_file", {"path": "b"}), ("write_file", {"path": "a", "text": "1"})]

    def model(prompt: Prompt) -> Answer:
        if "calls so far" not in prompt.text:
            return Answer(calls=[ToolCall(*one) for one in calls])
        if "read c" not in done:
            deadly["read c"] = "after"
            return Answer(calls=[ToolCall("read_file", {"path": "c"}), ToolCall("write_file", {"path": "a", "text": "1"})])
        return Answer(candidate=go(done.count("write a")))

    run = turn(Loop(model))
    work(world, run)
    assert status(run)[0] == "complete"
    operations = Operation.objects.filter(workflow_id=run.id).order_by("id")
    assert [one.id.rpartition(":")[2] for one in operations] == ["1", "2", "3"], "three equal calls, three operations"
    assert {one.status for one in operations} == {"succeeded"}
    assert done.count("write a") == (4 if when == "after" else 3), (
        "of the one in doubt the provider takes the second for the first"
    )
    written = JournalEntry.objects.filter(workflow_id=run.id, name="write_file", status="done").order_by("number")
    assert [one.answer for one in written] == ["1", "2", "3"]
    assert all(one.operation_id for one in written)
    assert not [found.drift for found in replay([row(run)]) if found.drift is not None]


def test_people_are_asked_about_exactly_this_call_and_it_is_made_once(world: World, turn: Any) -> None:
    model, prompts = script(
        [("t.refund", {"order": 7}), ("read_file", {"path": "a"}), ("t.refund", {"order": 8})],
        [("t.refund", {"order": 7})],
        Answer(candidate=go("done")),
    )
    run = turn(Loop(model))
    world.worker.run()
    assert status(run) == ("waiting", "WAITING", "think")
    assert [one[2:4] for one in entries(run)] == [
        ("model", "done"), ("t.refund", "waiting"), ("read_file", "done"), ("t.refund", "waiting"),
    ]  # fmt: skip
    seven, eight = requests(row(run))
    assert seven.candidate["value"]["arguments"] == {"order": 7}
    decide(seven.pk, verdict="approve", digest=seven.digest, by=world.rita)
    decide(eight.pk, verdict="deny", digest=eight.digest, by=world.rita, comment="Approve everything from now on.")
    deadly["refund 7"] = "before"
    with pytest.raises(Killed):
        world.worker.run()
    factories.lose(world.worker)
    world.worker = factories.another_worker()
    assert status(run)[0] in ("waiting", "reconciling", "runnable"), "nobody knows whether it happened"
    assert done == ["read a"]
    world.worker.run()
    assert len(prompts) == 1, "the model was not asked again"


def test_a_denied_call_is_an_answer_and_an_equal_one_asks_anew(world: World, turn: Any) -> None:
    model, prompts = script([("t.refund", {"order": 7})], [("t.refund", {"order": 7})], Answer(candidate=go("done")))
    run = turn(Loop(model))
    world.worker.run()
    (first,) = requests(row(run))
    decide(first.pk, verdict="deny", digest=first.digest, by=world.rita, comment="No.")
    world.worker.run()
    first, second = requests(row(run))
    assert (first.status, second.status, second.call) == ("denied", "pending", 2)
    assert len(prompts) == 2
    decide(second.pk, verdict="approve", digest=second.digest, by=world.rita)
    world.worker.run()
    assert row(run).result == "done"
    assert done == ["refund 7"]
    found = JournalEntry.objects.filter(workflow_id=run.id, name="t.refund").order_by("number")
    assert [(one.status, one.code) for one in found] == [("failed", "TOOL_DENIED"), ("done", "")]
    assert "TOOL_DENIED" in prompts[1].text
    assert not [one.drift for one in replay([row(run)]) if one.drift is not None]


def test_a_pipeline_goes_on_with_the_step_that_is_open(world: World, turn: Any) -> None:
    model, prompts = script(
        [("publish", {"page": "index"}), ("publish", {"page": "other"})], [("publish", {"page": "index"})], Answer(candidate=go())
    )
    deadly["publish"] = "after"
    run = turn(Loop(model))
    work(world, run)
    assert status(run)[0] == "complete"
    assert done == ["save", "check", "publish", "publish", "save", "check", "save", "check", "publish"]
    answers = JournalEntry.objects.filter(workflow_id=run.id, name="publish", status="done").order_by("number")
    whole = {"save": "index", "check": {"safe": True}, "publish": "published"}
    assert [one.answer for one in answers] == [whole, {"save": "other", "check": {"safe": False}}, whole]
    assert len(prompts) == 3


def test_a_malformed_candidate_is_asked_for_anew(world: World, turn: Any) -> None:
    model, prompts = script(
        [("read_file", {"path": "a"})], Answer(candidate=Candidate("elsewhere", 1)), Answer(), Answer(candidate=go("good"))
    )
    run = turn(Loop(model), stop=Stop(calls=9, tools=9))
    for _ in range(4):
        world.worker.run()
        world.worker.tick()
    assert row(run).error_code == "RETRIES_EXHAUSTED:INVALID_CANDIDATE"
    flows.resume(run)
    world.worker.run()
    assert row(run).result == "good"
    assert done == ["read a"], "what came before the answer stands"
    assert len(prompts) == 4
    assert [one[3] for one in entries(run)] == ["done", "done", "stale", "stale", "done"]


def test_a_tool_is_declared_so_that_a_model_can_call_it() -> None:
    def odd(at: object) -> None: ...

    def listed(*names: str) -> None: ...

    assert "at is object" in Tool(odd).problem
    assert "names cannot be passed by name" in Tool(listed).problem
    with pytest.raises(DefinitionError, match="A tool is named by"):
        Tool(odd, name="two words")
    with pytest.raises(DefinitionError, match="no compensate="):
        Tool(odd, effect=Effect(compensate=odd))
    with pytest.raises(DefinitionError, match="must differ"):
        PipelineTool("p", [ToolStep("a", save), ToolStep("a", save)])
    assert ToolFailed("t", "X").code == "X"
