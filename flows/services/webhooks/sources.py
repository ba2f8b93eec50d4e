"""Sources of webhooks: from `OUTLAST["WEBHOOKS"]` or from rows; of one name the setting's wins.

A stranger's request asks for a source by its name, before anything is verified. So rows are read at most every ten seconds a process, whatever
is asked for; what somebody changes is in force everywhere after that.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings

from flows.conf import conf
from flows.core import hooks
from flows.core.hooks import InvalidSource, Scheme
from flows.core.hooks.generic import HEADER
from flows.core.hooks.mapping import Rule, rule
from flows.models import WebhookSource

logger = logging.getLogger(__name__)

#: Seconds for which the rows that were read are good.
FRESH = 10.0

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
REFERENCE = re.compile(r"(env|setting):([A-Za-z_][A-Za-z0-9_]{0,99})")
KEYS = ("SCHEME", "OPTIONS", "SECRETS", "EVENT", "KEY", "PAYLOAD", "HEADERS", "ENABLED")

#: Headers that are worth keeping, whoever sends; and those that are never kept.
KEPT = frozenset({"content-type", "user-agent"})
PRIVATE = frozenset({"authorization", "proxy-authorization", "cookie"})

#: Characters of a header's value that are kept.
MOST_HEADER = 1000


@dataclass(frozen=True)
class Source:
    """Who may send, how it is signed, and what it means. `secrets` are references; `headers` are those that are kept."""

    name: str
    scheme: Scheme
    secrets: tuple[str, ...]
    rule: Rule
    headers: frozenset[str]
    enabled: bool = True
    of_setting: bool = False

    @cached_property
    def keys(self) -> tuple[tuple[int, bytes], ...]:
        """(number, key) of each secret that is set and can be one."""
        return tuple(self._keys())

    def _keys(self) -> Iterator[tuple[int, bytes]]:
        for number, reference in enumerate(self.secrets, 1):
            try:
                yield number, self.scheme.key(secret(reference))
            except InvalidSource as fault:
                logger.error("Secret %s of the webhook source %s, %s: %s", number, self.name, reference, fault)

    def kept(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Of these headers (names in small letters) those that are kept."""
        return {
            name: headers[name][:MOST_HEADER].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
            for name in sorted(self.headers & headers.keys())
        }


def secret(reference: str) -> str:
    """The secret behind `env:NAME` or `setting:NAME`; "": it is not set."""
    kind, _, name = reference.partition(":")
    found = os.environ.get(name) if kind == "env" else getattr(settings, name, None)
    return found if isinstance(found, str) else ""


def made(name: object, given: object, *, of_setting: bool) -> Source:
    """The source that is described.

    Args:
        given: a mapping of `KEYS`. of_setting: it stands in the settings, so it may name a function.
    Raises:
        InvalidSource: it cannot be; no value of a secret is shown.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        why = "the name of a source has 1 to 60 small letters, figures, dashes and underscores"
        raise InvalidSource("source", f"{why}; it is {name!r:.80}")
    if not isinstance(given, Mapping):
        raise InvalidSource("source", f"it is a {type(given).__name__}, not a dict")
    unknown = sorted(str(key) for key in given if key not in KEYS)
    if unknown:
        raise InvalidSource("source", f"{', '.join(unknown)[:120]} means nothing; there are {', '.join(KEYS)}")
    scheme = hooks.scheme(given.get("SCHEME"), given.get("OPTIONS", {}))
    says = rule(given.get("EVENT", ""), given.get("KEY", ""), given.get("PAYLOAD", ""))
    if says.function and not of_setting:
        raise InvalidSource("mapping", "a function is named in the settings only: what is typed here imports no code")
    enabled = given.get("ENABLED", True)
    if not isinstance(enabled, bool):
        raise InvalidSource("source", f"ENABLED is True or False, not {enabled!r:.60}")
    kept = KEPT | says.headers | _headers(given.get("HEADERS", ())) | set(scheme.kept())
    if private := sorted(kept & (PRIVATE | set(scheme.hidden()))):
        raise InvalidSource("mapping", f"the header {private[0]} is never kept, and nothing is mapped from it")
    return Source(name, scheme, _references(given.get("SECRETS")), says, frozenset(kept), enabled, of_setting)


def _headers(given: object) -> set[str]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and HEADER.fullmatch(one) for one in given):
        raise InvalidSource("source", 'HEADERS lists names of headers, such as ["X-Event-Key"]')
    return {one.lower() for one in given}


def _references(given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise InvalidSource("secret", 'SECRETS lists where the secrets are, the newest first: ["env:NAME"] or ["setting:NAME"]')
    if not all(isinstance(one, str) and REFERENCE.fullmatch(one) for one in given):
        raise InvalidSource("secret", 'a secret is named as "env:NAME" or "setting:NAME"; it does not stand there itself')
    return tuple(given)


def described(row: WebhookSource) -> dict[str, Any]:
    """A row as the setting would have it."""
    return {
        "SCHEME": row.scheme,
        "OPTIONS": row.options,
        "SECRETS": list(row.secrets),
        "EVENT": row.event_type,
        "KEY": row.event_key,
        "PAYLOAD": row.payload,
        "ENABLED": row.enabled,
    }


class _Known:
    """The sources of this process, each made when it is first asked for."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Read everything anew."""
        self._given: Any = None
        self._of_setting: dict[str, Source | InvalidSource] = {}
        self._rows: dict[str, Source | InvalidSource] = {}
        self._until = 0.0
        self._alias = ""

    def of_setting(self) -> Mapping[str, Source | InvalidSource]:
        """Those of the setting."""
        if conf.WEBHOOKS is not self._given:
            given = conf.WEBHOOKS
            of_setting = (
                {name: _tried(name, one, of_setting=True) for name, one in given.items()} if isinstance(given, Mapping) else {}
            )
            self._given, self._of_setting = given, of_setting
        return self._of_setting

    def of_rows(self, using: str) -> Mapping[str, Source | InvalidSource]:
        """Those of the rows, as they were at most ten seconds ago."""
        if time.monotonic() >= self._until or using != self._alias:
            rows = WebhookSource.objects.using(using).order_by("name")
            self._rows = {row.name: _tried(row.name, described(row), of_setting=False) for row in rows}
            self._until, self._alias = time.monotonic() + FRESH, using
        return self._rows


def _tried(name: str, given: object, *, of_setting: bool) -> Source | InvalidSource:
    try:
        return made(name, given, of_setting=of_setting)
    except InvalidSource as fault:
        logger.error("The webhook source %s cannot be: %s", name, fault)
        return fault


_known = _Known()
forget = _known.forget


def find(name: str, using: str) -> Source | InvalidSource | None:
    """The source of that name; why it cannot be; or None: there is none."""
    of_setting = _known.of_setting()
    return of_setting[name] if name in of_setting else _known.of_rows(using).get(name)


def is_of_setting(name: str) -> bool:
    """Whether the setting has a source of that name."""
    return name in _known.of_setting()


def all_sources(using: str) -> list[tuple[str, Source | InvalidSource]]:
    """All of them, by name; one of the setting in place of a row of its name."""
    return sorted({**_known.of_rows(using), **_known.of_setting()}.items(), key=lambda pair: pair[0])
