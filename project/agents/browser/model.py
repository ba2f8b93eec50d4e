"""The model at the decision point: an interface that a real provider fits behind, and a stand-in that needs no network.

`instructions` are ours and constant. The context has facts that our code was given, and data: the page, its fields, what the site answered and
what a person remarked, fenced and labelled. An adapter sends both as contents of their own, and parses the answer into a `ModelAnswer`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from flows import Context

INSTRUCTIONS = (
    "Fill in the form of the page from the facts of the application, and from nothing else. "
    f"{Context.HOW_TO_READ} "
    "Answer with one of the choices; for 'form' give a text for each field that is listed, by its name."
)
FIELDS, PAGE, SITE, REVIEWER = "page fields", "page", "site", "reviewer"  # sources of data


@dataclass(frozen=True, slots=True)
class ModelRequest:
    instructions: str
    context: Context
    choices: tuple[str, ...]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What may be told to the site."""
        (found,) = (item.text for item in self.context.items("extra") if item.name == "application")
        facts: dict[str, Any] = json.loads(found)
        return facts

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields that are to be filled in, as the page names them."""
        found: list[dict[str, Any]] = json.loads(*self.texts(FIELDS))
        return found

    @property
    def digest(self) -> str:
        return _digest([self.instructions, self.context.hash, self.choices])

    def texts(self, source: str) -> list[str]:
        return [item.text for item in self.context.items("extra") if item.untrusted and item.source == source]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A proposal and nothing more: code checks it, a person confirms it."""

    choice: str
    reason: str
    values: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return _digest([self.choice, self.reason, dict(self.values)])


class Model(Protocol):
    name: str

    def complete(self, request: ModelRequest) -> ModelAnswer: ...


def get_model() -> Model:
    """The model of the setting BROWSER_AGENT_MODEL, a dotted path; without it, the stand-in."""
    path = getattr(settings, "BROWSER_AGENT_MODEL", f"{__name__}.RuleBasedModel")
    model: Model = import_string(path)()
    return model


#: What the stand-in understands of a label: the fact that it asks for.
LABELS = (
    ("event", r"planned|event"),
    ("day", r"\bday\b|\bdate\b"),
    ("place", r"\bwhere\b|\bplace\b"),
    ("guests", r"guests|visitors"),
    ("music", r"music|noise"),
    ("name", r"\bwho\b|\bname\b"),
)
REMARK = re.compile(r"^\s*(\w+)\s*:\s*(.+?)\s*$", re.MULTILINE)


class RuleBasedModel:
    """A deterministic stand-in: the answer depends on the request alone.

    It goes by the labels of the fields. Of a reviewer's comment it understands lines such as `guests: 300`. Where the site has refused what it
    wrote, or a field that is needed asks for something that it was not told, it gives up.
    """

    name = "rules-1"

    def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = self._answer(request)
        said = sum(len(text) for text in (answer.choice, answer.reason, *answer.values.values()))
        return replace(answer, usage={"input_tokens": request.context.tokens, "output_tokens": -(-said // 4)})

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        if request.texts(SITE):
            return ModelAnswer("give_up", "The site refuses what the application says.")
        known = {name: str(value) for name, value in request.facts.items()}
        for comment in request.texts(REVIEWER):
            known |= {name: value for name, value in REMARK.findall(comment) if name in known}
        values, lacking = {}, []
        for one in request.fields:
            asked = next((fact for fact, label in LABELS if re.search(label, one["label"], re.IGNORECASE)), None)
            value = _as_offered(known.get(asked or "", ""), one["options"])
            if value:
                values[one["name"]] = value
            elif one["required"]:
                lacking.append(one["label"])
        if lacking:
            return ModelAnswer("give_up", f"The form asks for what the application does not say: {'; '.join(lacking)}")
        return ModelAnswer("form", "Each field says what the application says.", values)


def _as_offered(value: str, options: list[list[str]]) -> str:
    """The value, where anything may be said; else the choice whose value or text it is."""
    offered = [key for key, text in options if value and value.lower() in (key.lower(), text.lower())]
    return value if not options else next(iter(offered), "")


def _digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
