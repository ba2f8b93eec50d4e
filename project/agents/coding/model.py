"""The model at the decision point: an interface that a real provider fits behind, and a stand-in that needs no network.

A request keeps three things apart. `instructions` are ours and constant. The context, rebuilt from durable state, has facts
that our code computed, and `data`: text that others wrote (files, test output, a reviewer's comment), fenced, labelled with
its source, and never joined to the instructions. An adapter for a provider sends `instructions` and `context.text` as
contents of their own, and parses the answer into a `ModelAnswer`; whatever else the provider sends, as its reasoning, ends there.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from flows import Context

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTRUCTIONS = (
    "Upgrade the library named in the facts from one version to the other. Change only what the upgrade needs. "
    f"{Context.HOW_TO_READ} "
    "Answer with one of the choices; for 'patch' give each changed file whole."
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    instructions: str
    context: Context
    choices: tuple[str, ...]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What our code computed for this decision."""
        (found,) = (item.text for item in self.context.items("extra") if item.name == "upgrade")
        facts: dict[str, Any] = json.loads(found)
        return facts

    @property
    def data(self) -> tuple[Any, ...]:
        """What others wrote, each with `source` ("file:shop/sessions.py", "tests", "ci", "reviewer") and `text`."""
        return tuple(item for item in self.context.items("extra") if item.untrusted)

    @property
    def digest(self) -> str:
        return _digest([self.instructions, self.context.hash, self.choices])

    def texts(self, source: str) -> list[str]:
        return [item.text for item in self.data if item.source == source]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A proposal and nothing more: code checks it, tests judge it, a person decides."""

    choice: str
    reason: str
    edits: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return _digest([self.choice, self.reason, dict(self.edits)])


class Model(Protocol):
    name: str

    def complete(self, request: ModelRequest) -> ModelAnswer: ...


def get_model() -> Model:
    """The model of the setting CODING_AGENT_MODEL, a dotted path; without it, the stand-in."""
    path = getattr(settings, "CODING_AGENT_MODEL", f"{__name__}.RuleBasedModel")
    model: Model = import_string(path)()
    return model


@dataclass(frozen=True, slots=True)
class Migration:
    """What the stand-in knows of one upgrade. `subtle` is what it misses until something tells it that it was wrong."""

    plain: tuple[tuple[str, str], ...]
    subtle: tuple[tuple[str, str], ...] = ()


MIGRATIONS = {
    ("latchkey", "1.0", "2.0"): Migration(
        plain=(
            (r"\blatchkey\.sign\(", "latchkey.issue("),
            (r"\blatchkey\.read\(", "latchkey.verify("),
            (r"\blatchkey\.LatchkeyError\b", "latchkey.InvalidToken"),
            (r", SECRET\b", ", key=SECRET"),
            (r"\bminutes=", "ttl="),
        ),
        subtle=((r"\bttl=(?=[\w(])", "ttl=60 * "),),  # 1.0 counts minutes, 2.0 counts seconds
    ),
}


class RuleBasedModel:
    """A deterministic stand-in: the answer depends on the request alone.

    Like many a model it is wrong at first: it renames what was renamed and overlooks what changed its meaning, until a
    failing test says so. Of a reviewer's comment it understands the word "changelog"; any other remark it writes down
    in UPGRADING.md, as a quotation, for people to see to.
    """

    name = "rules-1"

    def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = self._answer(request)
        said = sum(len(text) for text in (answer.choice, answer.reason, *answer.edits.values()))
        used = {"input_tokens": request.context.tokens, "output_tokens": -(-said // 4)}
        return replace(answer, usage=used)

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        facts = request.facts
        library, old, new = (str(facts[name]) for name in ("library", "from", "to"))
        migration = MIGRATIONS.get((library, old, new))
        if migration is None:
            return ModelAnswer("give_up", f"I know no way from {library} {old} to {new}.")
        careful = bool(request.texts("tests") or request.texts("ci"))
        rules = migration.plain + (migration.subtle if careful else ())
        labelled = {item.source: item.text for item in request.data}
        files = {source.removeprefix("file:"): text for source, text in labelled.items() if source.startswith("file:")}
        edits = {path: _rewritten(text, rules) for path, text in files.items() if path.endswith(".py")}
        pin = files.get("requirements.txt", "").replace(f"{library}=={old}", f"{library}=={new}")
        edits |= {"requirements.txt": pin} if pin else {}
        reason = f"Moves every use of {library} {old} to the names of {new}"
        reason += ", and counts in its new units." if careful else "."
        for comment in request.texts("reviewer"):
            edits |= _for_reviewer(comment, files | edits, f"- {library} {new} (was {old})\n")
        changed = {path: text for path, text in edits.items() if text != files.get(path)}
        if not changed:
            return ModelAnswer("give_up", "There is nothing to change.")
        return ModelAnswer("patch", reason, changed)


def _rewritten(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def _for_reviewer(comment: str, files: Mapping[str, str], line: str) -> dict[str, str]:
    if "changelog" in comment.lower():
        known = files.get("CHANGELOG.md", "# Changes\n\n## Unreleased\n\n")
        head, mark, rest = known.partition("## Unreleased\n\n")
        return {"CHANGELOG.md": known if line in known else f"{head}{mark}{line}{rest}"}
    known = files.get("UPGRADING.md", "# Left for people\n")
    quoted = "".join(f"> {part}\n" for part in comment.splitlines())
    return {"UPGRADING.md": known if quoted in known else f"{known}\n{quoted}"}


def _digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
