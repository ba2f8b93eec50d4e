"""What a run does when it wakes and another behavioural release is current than the one that it is pinned to (I1). Pure.

pinned = current, nothing current, or a person let it keep its own beside the current one ──► it goes on
RESUME_PINNED                ──► it goes on under its own release, on a worker that offers that
the same content             ──► it is pinned to the current one: only the name differs
MIGRATE         compatible   ──► it is pinned to the current one     else ──► RELEASE_INCOMPATIBLE
restart_from    ──► it is pinned to the current one and begins again at that node
HUMAN           ──► RELEASE_INCOMPATIBLE: a person moves it, or lets it keep its own
CANCEL          ──► it is cancelled, and the accountable user is told
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from flows.core import canonical, payload
from flows.core.errors import DefinitionError
from flows.core.misuse import UsageError
from flows.core.policies import Expiry
from flows.core.state import ReleaseFact

#: Why a run was cancelled, in the log and in the notice.
RELEASE_CHANGED = "RELEASE_CHANGED"
#: No live worker offers the release of a run that is ready (only in notices).
RELEASE_NOT_OFFERED = "RELEASE_NOT_OFFERED"

#: What a worker offers that carries whatever it is given.
ANY = "*"

#: The parts of a release, in the order in which people read them.
PARTS = ("models", "prompts", "tools", "policies")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/@:-]{0,99}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ReleasePolicy(StrEnum):
    """The words of a wake policy."""

    RESUME_PINNED = "resume_pinned"
    MIGRATE = "migrate"
    RESTART = "restart"
    HUMAN = "human"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class OnRelease:
    """A flow's wake policy (`Meta.on_release`). `node`: where a restarted run begins again."""

    policy: ReleasePolicy
    node: str = ""

    @property
    def decides(self) -> bool:
        """Whether a release other than the pinned one may decide about a run, so that a worker without the pinned one may take it up."""
        return self.policy is not ReleasePolicy.RESUME_PINNED


RESUME_PINNED = OnRelease(ReleasePolicy.RESUME_PINNED)
MIGRATE = OnRelease(ReleasePolicy.MIGRATE)


def restart_from(node: Any) -> OnRelease:
    """The policy to begin again at `node`, a durable boundary, under the release that is current then.

    Raises:
        DefinitionError: it is not the name of a node.
    """
    if not isinstance(node, str) or not node:
        raise DefinitionError('restart_from(…) takes the name of a node as text: restart_from("propose").')
    return OnRelease(ReleasePolicy.RESTART, node)


def as_policy(value: Any) -> Any:
    """What `Meta.on_release` says; the HUMAN and CANCEL of deadlines are the same words here. Anything else stays what it is, for the checks."""
    words = {Expiry.CANCEL: ReleasePolicy.CANCEL, Expiry.HUMAN: ReleasePolicy.HUMAN}
    return OnRelease(words[value]) if isinstance(value, Expiry) and value in words else value


def judge(
    on_release: OnRelease, pinned: str, current: str, *, same: bool, compatible: bool, passed_over: str = ""
) -> ReleaseFact:
    """What becomes of a run that wakes pinned to `pinned` while `current` is the current release.

    Args:
        same: both have the same content. compatible: the current one declares that runs of the pinned one may go on under it.
        passed_over: the current release beside which a person let the run keep its own.
    """
    if current in ("", pinned, passed_over) or not on_release.decides:
        return ReleaseFact(pinned, current)
    if same:
        return ReleaseFact(pinned, current, pins=current)
    match on_release.policy:
        case ReleasePolicy.MIGRATE if compatible:
            return ReleaseFact(pinned, current, pins=current)
        case ReleasePolicy.RESTART:
            return ReleaseFact(pinned, current, pins=current, restart=on_release.node)
        case ReleasePolicy.CANCEL:
            return ReleaseFact(pinned, current, cancels=True)
        case ReleasePolicy.MIGRATE:
            why = f"release {current} does not declare that runs of {pinned} may go on under it"
        case _:
            why = f"pinned to release {pinned}, and {current} is current: a person decides"
    return ReleaseFact(pinned, current, refusal=f"{why} (flows releases move)")


def moved(fact: ReleaseFact) -> ReleaseFact:
    """The fact of a run that is pinned to the current release from now on."""
    return ReleaseFact(fact.current, fact.current)


class InvalidRelease(UsageError):
    """A release that cannot be registered as it is given."""

    code = "INVALID_RELEASE"


@dataclass(frozen=True, slots=True)
class Content:
    """What a release is made of: part → name → digest, and the digest of it all."""

    parts: Mapping[str, Mapping[str, str]]
    digest: str


def content(**parts: Mapping[str, Any]) -> Content:
    """The content of a release. A value that is a digest (`sha256:` and 64 hex digits) stands for what it is the digest of.

    Raises:
        InvalidRelease: a part is no object, or a name in it no text. PayloadError: a value cannot be hashed.
    """
    hashed = {part: _hashed(part, parts.get(part) or {}) for part in PARTS}
    return Content(hashed, canonical.digest(hashed, "the content of a release"))


def digest_of(value: Any, producer: str = "a part of a release") -> str:
    """The digest under which a release knows a value.

    Raises:
        PayloadError: it cannot be hashed.
    """
    return value if isinstance(value, str) and DIGEST.fullmatch(value) else canonical.digest(value, producer)


def check_name(name: object) -> str:
    """The name, if a release can have it.

    Raises:
        InvalidRelease: it cannot.
    """
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise InvalidRelease(
        f"{name!r:.120} cannot be the name of a release: use up to 100 letters, digits and . _ + / @ : -, beginning with a letter or digit."
    )


def differences(one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, str, str]]:
    """(part, name, digest in `one`, digest in `other`) of everything that is not the same in both; "" where it is missing."""
    return [
        (part, name, mine.get(name, ""), theirs.get(name, ""))
        for part in PARTS
        for mine, theirs in [(one.get(part) or {}, other.get(part) or {})]
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]


def _hashed(part: str, values: Any) -> dict[str, str]:
    if not isinstance(values, Mapping):
        raise InvalidRelease(
            f'The {part} of a release are an object, name → value: {part}={{"planner": …}}; got {type(values).__name__}.'
        )
    for name in values:
        if not isinstance(name, str) or not name or not payload.is_text(name):
            raise InvalidRelease(f"The {part} of a release have names, as text without NUL or lone surrogates; got {name!r:.60}.")
    return {name: digest_of(value, f"{part}[{name!r}] of a release") for name, value in sorted(values.items())}
