"""What each decision is made on: facts of our own record, and the texts of others, fenced and labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows import Fact, Untrusted
from flows.errors import CompetenceFailure
from project.agents.research import findings
from project.agents.research.graph import OPINION
from project.agents.research.model import CATALOGUE, JUDGE, PLAN, QUESTION, STATEMENTS, WEIGH, ModelRequest

if TYPE_CHECKING:
    from flows import Attempt

MAX_TOKENS = 60_000
ITEM_BYTES = 40_000


def to_plan(attempt: Attempt, catalogue: Sequence[Mapping[str, Any]]) -> ModelRequest:
    """The question, and what the archive says that it has."""
    entries = [{name: entry[name] for name in ("name", "publisher", "title", "about", "kind")} for entry in catalogue]
    extra = {
        "question": Untrusted(attempt.input["question"], QUESTION, whole=True),
        "catalogue": Untrusted(entries, CATALOGUE, whole=True),
    }
    return _request(attempt, PLAN, extra, ("plan", "give_up"))


def to_judge(attempt: Attempt) -> ModelRequest:
    """One claim, its premises as our record has them, and exactly the versions of its sources that its basis names."""
    item = attempt.input
    shown = findings.texts(item["run"], item["evidence"])
    if len(shown) < len(item["evidence"]):
        raise CompetenceFailure("a source is not there as it was read")
    extra: dict[str, Fact | Untrusted] = {
        "claim": Fact(item["claim"], whole=True),
        "premises": Fact(item["premises"], whole=True),
        "statement": Untrusted(item["statement"], STATEMENTS, whole=True),
    }
    extra |= {f"text {number}": Untrusted(shown[name], f"source:{name}", whole=True) for number, name in enumerate(shown, 1)}
    return _request(attempt, JUDGE, extra, ("judged",))


def to_weigh(attempt: Attempt) -> ModelRequest:
    """The claims on which sources disagree, and all that was read of them."""
    run, claims = attempt.input["run"], list(attempt.input["claims"])
    wanted = {source for row in findings.claims(run) if row.name in claims for source in row.sources}
    texts = {name: one.text for name, one in findings.newest(run).items() if name in wanted and not name.startswith(OPINION)}
    extra: dict[str, Fact | Untrusted] = {"claims": Fact(claims, whole=True)}
    extra |= {f"text {number}": Untrusted(texts[name], f"source:{name}", whole=True) for number, name in enumerate(texts, 1)}
    return _request(attempt, WEIGH, extra, ("weighed",))


def _request(attempt: Attempt, task: str, extra: Mapping[str, Any], choices: tuple[str, ...]) -> ModelRequest:
    context = attempt.context(
        max_tokens=MAX_TOKENS, extra=extra, nodes=(), without=["checkpoint", "input"], item_bytes=ITEM_BYTES
    )
    if set(extra) - {item.name for item in context.items("extra")}:
        raise CompetenceFailure("this is too much for one decision")
    return ModelRequest(task, context, choices)
