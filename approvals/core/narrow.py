"""A part of a candidate as a candidate of its own: some members of one list in its value, in their order. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flows.core import canonical
from flows.core.misuse import UsageError


class BadPart(UsageError):
    """What is to be kept is no part of the candidate."""

    code = "BAD_PART"

    def __init__(self, why: str) -> None:
        super().__init__(why)


def members(candidate: Mapping[str, Any], subset: str) -> list[Any]:
    """The list of which a part may be kept; empty if the value has none of that name."""
    value = candidate["value"]
    found = value.get(subset) if isinstance(value, Mapping) else None
    return list(found) if isinstance(found, list) else []


def narrowed(candidate: Mapping[str, Any], subset: str, keep: Sequence[int]) -> dict[str, Any]:
    """The candidate with only these members of the list (numbers from 0), its digest, and the next revision.

    Raises:
        BadPart: there is no such list, or `keep` is not some of its numbers, each once: not none of them, and not all.
    """
    found = members(candidate, subset)
    if not found:
        raise BadPart(f"The candidate has no list {subset!r:.80} of which a part could be kept; deny it, or request changes.")
    numbers = list(keep) if isinstance(keep, list | tuple) else []
    sound = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(found) for one in numbers)
    if not sound or len(set(numbers)) != len(numbers) or not 0 < len(numbers) < len(found):
        raise BadPart(
            f"keep= takes some of the numbers 0 to {len(found) - 1} of {subset!r:.80}, each once; got {keep!r:.80}. "
            "To keep all is to approve, to keep none is to deny."
        )
    value = {**candidate["value"], subset: [found[number] for number in sorted(numbers)]}
    body = {"choice": candidate["choice"], "value": value}
    return {**body, "digest": canonical.digest(body, "the part that is kept"), "revision": int(candidate["revision"]) + 1}
