"""What the agent reads: the repository, and what was said of earlier candidates; from both, the model's context."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flows import Fact, Untrusted
from flows.errors import CompetenceFailure, StateConflict
from project.agents.coding.model import INSTRUCTIONS, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows import Attempt
    from project.agents.coding.git import Workspace

PINS = "requirements.txt"
MAX_TOKENS, MAX_FEEDBACK, MAX_TEXT = 50_000, 8, 4_000


def pinned(space: Workspace, commit: str, library: str) -> str | None:
    """The version that the repository asks for at this commit."""
    if PINS not in space.files(commit):
        return None
    found = re.search(rf"^{re.escape(library)}==(\S+)$", space.read(commit, PINS), re.MULTILINE)
    return found.group(1) if found else None


def uses(space: Workspace, commit: str, library: str) -> dict[str, list[str]]:
    """File → the names of the library that it uses, for the files that are open to the agent."""
    found = {}
    for path in space.files(commit):
        if path.endswith(".py") and not path.startswith(("vendor/", "tests/")):
            names = sorted(set(_names(space.read(commit, path), library)))
            if names:
                found[path] = names
    return found


def _names(text: str, library: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == library:
            yield f"{library}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == library:
            yield from (f"{library}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import) and any(alias.name == library for alias in node.names):
            yield library


def feedback(attempt: Attempt) -> list[dict[str, str]]:
    """Everything said about this workflow's candidates so far, oldest first.

    Each item is taken over only where it speaks of exactly the candidate before this one; the older ones stand in that
    candidate's evidence. So a late or foreign remark changes nothing.
    """
    previous = attempt.results.get("propose")
    if previous is None:
        return []
    digest, known = previous["digest"], [item for item in previous["evidence"] if item["kind"] == "feedback"]
    items = [{"source": item["source"], "text": item["text"]} for item in known]
    failed = (attempt.checkpoint or {}).get("failed") or {}
    if failed.get("candidate") == digest:
        items.append({"source": "tests", "text": failed["output"]})
    pushed, ci = attempt.results.get("push") or {}, attempt.results.get("ci") or {}
    if pushed.get("candidate") == digest and ci.get("value") == "failure" and ci["payload"]["sha"] == pushed["sha"]:
        items.append({"source": "ci", "text": ci["payload"]["text"]})
    answer = attempt.results.get("ask") or {}
    if answer.get("digest") == digest and answer.get("answer") == "changes":
        items.append({"source": "reviewer", "text": answer.get("comment") or ""})
    bounded = [{"source": item["source"], "text": item["text"][:MAX_TEXT]} for item in items]
    return [item for place, item in enumerate(bounded) if item not in bounded[:place]][-MAX_FEEDBACK:]


def request(attempt: Attempt, space: Workspace, commit: str, remarks: list[dict[str, str]]) -> ModelRequest:
    """The context of one decision, rebuilt from record and repository; what others wrote is fenced and labelled so.

    Of earlier nodes nothing is shown: what they found may be out of date, and what was said of the candidates is in the remarks.
    """
    library, target = attempt.input["library"], attempt.input["to"]
    version = pinned(space, commit, library)
    if version is None:
        raise StateConflict(f"{PINS} of main pins no {library}")
    files, known = space.files(commit), uses(space, commit, library)
    shown = [path for path in (PINS, *known, "CHANGELOG.md", "UPGRADING.md") if path in files]
    notes = f"vendor/{library}-{target}/CHANGES.md"
    extra: dict[str, Fact | Untrusted] = {
        "upgrade": Fact({"library": library, "from": version, "to": target, "uses": known}, whole=True)
    }
    extra |= {path: Untrusted(space.read(commit, path), f"file:{path}", whole=True) for path in shown}
    extra |= {notes: Untrusted(space.read(commit, notes), "notes", whole=True)} if notes in files else {}
    extra |= {
        f"remark {number}": Untrusted(item["text"], item["source"], whole=True) for number, item in enumerate(remarks, start=1)
    }
    context = attempt.context(max_tokens=MAX_TOKENS, extra=extra, nodes=(), without=["checkpoint"])
    if any(left.section == "extra" for left in context.left_out):
        raise CompetenceFailure(f"what uses {library} is too large for one decision")
    return ModelRequest(INSTRUCTIONS, context, ("patch", "give_up"))
