"""What a candidate may be. The model proposes; these functions, not the model, say what is well-formed and allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from flows.errors import InvalidCandidate

MAX_PATCH = 100_000
CLOSED = ("vendor", "tests", ".git", ".github")  # the libraries, and everything that judges the candidate
FIELDS = {"library": str, "from": str, "to": str, "base": str, "patch": str, "files": list, "summary": str}


def check_value(value: Any) -> None:
    """The shape of a recorded candidate: a patch with all that is needed to apply it, or a reason to give up.

    Raises:
        InvalidCandidate: it is neither.
    """
    if not isinstance(value, Mapping):
        raise InvalidCandidate("a candidate's value is an object")
    if set(value) == {"reason"} and isinstance(value["reason"], str):
        return
    wrong = [name for name, kind in FIELDS.items() if not isinstance(value.get(name), kind)]
    if wrong or set(value) != set(FIELDS):
        raise InvalidCandidate(f"a patch has exactly the fields {', '.join(FIELDS)}; look at: {', '.join(wrong)}")
    if not value["patch"]:
        raise InvalidCandidate("the patch changes nothing")
    if len(value["patch"].encode()) > MAX_PATCH:
        raise InvalidCandidate(f"the patch is over {MAX_PATCH:,} bytes; nobody could review it")
    check_paths(value["files"])


def check_paths(paths: Iterable[object]) -> None:
    """Only files inside the repository, and none of those that judge the candidate.

    Raises:
        InvalidCandidate: names the first path that is not allowed.
    """
    for text in paths:
        path = PurePosixPath(text) if isinstance(text, str) and text else PurePosixPath("/")
        if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in str(path) or str(path) != text:
            raise InvalidCandidate(f"{text!r} is not a plain path inside the repository")
        if path.parts[0] in CLOSED:
            raise InvalidCandidate(f"{text} is closed to the agent")


def check_edits(edits: Mapping[str, object]) -> None:
    """Whole text files on allowed paths.

    Raises:
        InvalidCandidate: an edit is something else.
    """
    if not edits:
        raise InvalidCandidate("the model chose to patch and changed nothing")
    check_paths(edits)
    for path, text in edits.items():
        if not isinstance(text, str) or "\0" in text or not text.endswith("\n"):
            raise InvalidCandidate(f"{path} is not a text file that ends with a line end")
