"""A model of code: it asks for what its prompt does not say, and decides from the text of its prompt alone. It remembers nothing.

    verified ──► the candidate      a text with an old piece ──► edit      a file never read ──► read it      nothing left ──► verify
Where it knows no file at all, it asks for the listing. The same function serves each runner; what differs is what its prompt says.
Tokens are a quarter of the bytes of all that is sent and received, the descriptions of the tools included.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.resume import shop
from flows import Answer, Candidate, ToolCall
from flows.core.context import encoded, estimated

TASK = (
    "The shop rounds prices. round_price(amount) takes a currency from now on, and yen have no cents: change its definition and each caller, "
    "one piece of a file at a time, and verify the project when all of it is changed. Look at every file, as callers are not known. "
    "Do not read again what was read, unless it was changed by others."
)
#: What it would think of; it can only do so where the text of the file is before it.
PIECES = ((shop.OLD_DEFINITION, shop.NEW_DEFINITION), (shop.OLD_CALL, shop.NEW_CALL))
#: A line of an index of calls, as `flows.core.loop` writes it.
INDEXED = re.compile(r"\d+ (read_file|edit_file) (\{.*) → \d")


@dataclass
class Known:
    """What a prompt says. `texts`: path → (revision, text), where the whole of it is there. `edited`: path → its newest revision."""

    files: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    texts: dict[str, tuple[int, str]] = field(default_factory=dict)
    edited: dict[str, int] = field(default_factory=dict)
    verified: dict[str, Any] | None = None


@dataclass(frozen=True)
class Model:
    """Asks for so many files in one answer, and makes all edits at once that it sees; called with a `Prompt`, or what has `text` and `tools`."""

    at_once: int = 1

    def __call__(self, prompt: Any) -> Answer:
        """The answer, with what it has used."""
        answer = self.decide(prompt.text)
        sent, received = estimated(prompt.text + encoded(list(prompt.tools))), estimated(encoded(answer.recorded))
        return replace(answer, usage={"input_tokens": sent, "output_tokens": received})

    def decide(self, text: str) -> Answer:
        """What it says to this text."""
        known = read(text)
        if known.verified is not None:
            return Answer(candidate=Candidate("built" if known.verified["verified"] else "stuck", known.verified["said"]))
        edits = [
            ToolCall("edit_file", {"path": path, "old": old, "new": new})
            for path, (revision, body) in sorted(known.texts.items())
            for old, new in PIECES
            if old in body and known.edited.get(path, -1) <= revision
        ]
        if edits:
            return Answer(calls=edits)
        if not known.files:
            return Answer(calls=[ToolCall("list_project")])
        unseen = sorted(known.files - known.seen)[: self.at_once]
        return Answer(calls=[ToolCall("read_file", {"path": path}) for path in unseen] or [ToolCall("verify")])


def read(text: str) -> Known:
    """What a prompt says of files, from lines that hold JSON: results of tools, what code has made, lines of an index."""
    known = Known()
    for line in text.splitlines():
        if indexed := INDEXED.match(line):
            if path := re.search(r'"path": "([^"]+)"', indexed[2]):
                known.seen.add(path[1])
        elif (start := line.find("{")) >= 0:
            try:
                value = json.loads(line[start:])
            except ValueError:
                continue
            _take(known, value)
    return known


def _take(known: Known, value: dict[str, Any]) -> None:
    if "files" in value:
        known.files.update(value["files"])
    if "text" in value:
        known.seen.add(value["path"])
        if value["revision"] >= known.texts.get(value["path"], (-1, ""))[0]:
            known.texts[value["path"]] = (value["revision"], value["text"])
    for one in value.get("revisions", [{"path": value["edited"], "revision": value["revision"]}] if "edited" in value else []):
        known.edited[one["path"]] = max(known.edited.get(one["path"], 0), one["revision"])
    if "verified" in value:
        known.verified = value
