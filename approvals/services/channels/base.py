"""What a channel is, what it is given, and which ones there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.utils.module_loading import import_string

from approvals.core.notices import NoticeKind
from flows.conf import conf
from flows.core.misuse import UsageError


@dataclass(frozen=True, slots=True)
class Note:
    """What a channel is to tell. Names, ids, times and a link; nothing that a model wrote. What hides in a name is visible already.

    Args:
        id: the same at every try, and of no other notice. kind, number: `approvals.core.notices.NoticeKind`. at: when it happened.
        request, revision: of the question.
        flow, key, node, workflow: what it is about; `key` is the workflow's id where it has none. goal: what people (or other code) wrote at
            the start, cut; leave it away where the message leaves the house. step, steps: counted from 1. whom: who may answer now, in words.
        status, answer: the request's, as codes. asked_at, expires_at: moments, the latter perhaps None. url: the page, or, without the setting
            `ADMIN_URL`, what follows the admin's address. to: the user, or None where the channel is for all. accountable: they are the
            accountable user.
    """

    id: str
    kind: NoticeKind
    number: int
    at: datetime
    request: int
    revision: int
    flow: str
    key: str
    node: str
    workflow: str
    goal: str
    step: int
    steps: int
    whom: str
    status: str
    answer: str
    asked_at: datetime
    expires_at: datetime | None
    url: str
    to: Any = None
    accountable: bool = False


class Channel(Protocol):
    """One way to tell people. Made with the setting's OPTIONS as keyword arguments, perhaps anew for each message."""

    #: True: each person gets messages of their own. False: one message an event, to whoever reads there.
    personal: bool

    def reaches(self, user: Any) -> bool:
        """Whether this user can be told by it at all. (Asked of channels that are personal.)"""

    def send(self, notes: Sequence[Note]) -> None:
        """Send one message: about one note, or, to one person, about several. Whatever it raises, it is tried again later.

        No database lock is held. The same may come twice after a crash: `Note.id` tells.
        """


class BadChannel(UsageError):
    """A channel of `NOTICE_CHANNELS` that cannot be made."""

    code = "BAD_CHANNEL"

    def __init__(self, name: object, why: object) -> None:
        super().__init__(f"OUTLAST['NOTICE_CHANNELS'][{name!r:.60}]: {why}")


@dataclass(frozen=True, slots=True)
class Configured:
    """A channel under its name in the setting, and the kinds of notices that it is for; None: all."""

    name: str
    channel: Channel
    kinds: frozenset[str] | None

    def takes(self, kind: str) -> bool:
        """Whether a notice of this kind goes out by it."""
        return self.kinds is None or kind in self.kinds


def configured() -> dict[str, Configured]:
    """The channels of the setting, by name.

    Raises:
        BadChannel: one of them cannot be made.
    """
    return {name: make(name, given) for name, given in conf.NOTICE_CHANNELS.items()}


def make(name: str, given: Any) -> Configured:
    """One of them.

    Raises:
        BadChannel: it cannot be made. The message holds no option's value: some are secret.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("BACKEND"), str):
        raise BadChannel(name, "is no dict with a BACKEND, the dotted path of a channel's class")
    if unknown := sorted(set(given) - {"BACKEND", "KINDS", "OPTIONS"}, key=str):
        raise BadChannel(name, f"has {', '.join(map(str, unknown))}; known are BACKEND, KINDS and OPTIONS")
    kinds = given.get("KINDS")
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= {kind.value for kind in NoticeKind}):
        raise BadChannel(name, f"KINDS is a list of some of {', '.join(kind.value for kind in NoticeKind)}")
    try:
        channel: Channel = import_string(given["BACKEND"])(**given.get("OPTIONS", {}))
    except Exception as fault:
        raise BadChannel(name, fault) from fault
    return Configured(name, channel, None if kinds is None else frozenset(kinds))
