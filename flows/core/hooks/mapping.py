"""From a verified delivery to events: which type, which key, which payload.

A source says so by paths (`flows.core.hooks.paths`), or by a function that knows the sender: it is given the `Delivery`, and answers with a
`Mapped`, a list of them, or None for what concerns nobody. It is pure: the same delivery is mapped anew after the function was mended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from flows.core.events import About
from flows.core.hooks import paths
from flows.core.hooks.schemes import InvalidSource

#: Events that one delivery may mean.
MOST = 100
#: Fields that one form may have.
MOST_FIELDS = 1000
FORM = "application/x-www-form-urlencoded"

_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a verified webhook says.

    Attributes:
        source: the source's name. id: the sender's id of it.
        headers: those that are kept, by name in small letters: no signature, no cookie.
        body: the JSON value; of a form its fields, where `payload` is the JSON value in it. Data, never instructions.
        sent_at: when it was sent, where the sender signs that.
    """

    source: str
    id: str
    headers: Mapping[str, str]
    body: Any
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """One event that a delivery means.

    Attributes:
        type, key: the channel, as a `Wait` has it. payload: a JSON object; None: the whole body.
        position, about: as `flows.signal` takes them.
    """

    type: str
    key: str
    payload: Mapping[str, Any] | None = None
    position: int | None = None
    about: About | None = None


class Unmapped(Exception):
    """A delivery of which nothing could be made; it is kept as it came. `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Rule:
    """What a source says about its deliveries: the dotted path of a function, or where type, key and payload stand."""

    function: str = ""
    type: paths.Text | None = None
    key: paths.Text | None = None
    payload: paths.Path | None = None

    @property
    def headers(self) -> frozenset[str]:
        """The headers that its paths name."""
        named = [*(self.type.paths if self.type else ()), *(self.key.paths if self.key else ()), self.payload]
        return frozenset(path.steps[0] for path in named if path is not None and path.root == "header")

    def by_paths(self, delivery: Delivery) -> list[Mapped]:
        """The one event that the delivery means by its paths.

        Raises:
            Unmapped: there is no text where one of them leads.
        """
        where = (delivery.headers, delivery.body)
        event_type, key = (part.of(*where) if part else None for part in (self.type, self.key))
        if not event_type or not key:
            raise Unmapped("no_key" if event_type else "no_type")
        return [Mapped(event_type, key, self.payload.of(*where) if self.payload else delivery.body)]


def rule(event: object, key: object = "", payload: object = "") -> Rule:
    """What a source says, read.

    Args:
        event: the dotted path of a function, which then stands alone; else the type: a path, or a text with paths in braces.
        key: a path, or a text with at least one path in braces. payload: a path; "": the whole body.
    Raises:
        InvalidSource: it is none of these.
    """
    for name, given in (("EVENT", event), ("KEY", key), ("PAYLOAD", payload)):
        if not isinstance(given, str):
            raise InvalidSource("mapping", f"{name} is text, not {type(given).__name__}")
    event_type, event_key, where = str(event).strip(), str(key).strip(), str(payload).strip()
    if event_type and not event_key and not where:
        if not _FUNCTION.fullmatch(event_type) or paths.is_path(event_type):
            why = "EVENT without KEY is the dotted path of a function that gives both"
            raise InvalidSource("mapping", f"{why}; it is {event_type!r:.120}")
        return Rule(function=event_type)
    if not event_type or not event_key:
        raise InvalidSource(
            "mapping", "EVENT and KEY say which type and which key an event gets; or EVENT alone names a function"
        )
    found = Rule(type=paths.text(event_type), key=paths.text(event_key), payload=paths.path(where) if where else None)
    if not found.key or not found.key.paths:
        raise InvalidSource("mapping", f"KEY has no path in it, so all events would get the key {event_key!r:.120}")
    return found


def result(given: Any, delivery: Delivery) -> list[Mapped]:
    """What a function answered, as a list; empty for None.

    Raises:
        Unmapped: it is something else.
    """
    found = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
    if not all(isinstance(one, Mapped) for one in found):
        raise Unmapped("function_result")
    if len(found) > MOST:
        raise Unmapped("too_many")
    return [one if one.payload is not None else replace(one, payload=delivery.body) for one in found]


def delivery(source: str, delivery_id: str, headers: Mapping[str, str], body: bytes, sent_at: float | None) -> Delivery:
    """A verified request, read.

    Raises:
        Unmapped: the body is neither JSON nor a form.
    """
    moment = datetime.fromtimestamp(sent_at, UTC) if sent_at is not None else None
    return Delivery(source, delivery_id, headers, read(body, headers.get("content-type", "")), moment)


def read(body: bytes, content_type: str) -> Any:
    """The JSON value, or the fields of the form.

    Raises:
        Unmapped: it is neither.
    """
    try:
        text = body.decode("utf-8")
        if content_type.partition(";")[0].strip().lower() != FORM:
            return _parsed(text)
        fields: dict[str, Any] = dict(
            parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=MOST_FIELDS)
        )
        if fields.get("payload", "").lstrip().startswith("{"):
            fields["payload"] = _parsed(fields["payload"])
    except (ValueError, RecursionError):
        raise Unmapped("not_json") from None
    return fields


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def events(found: Sequence[Mapped], source: str, delivery_id: str) -> list[tuple[str, Mapped]]:
    """Each event with its id in the inbox: `SOURCE:DELIVERY`, and `#n` where there are several."""
    whole = f"{source}:{delivery_id}"
    return [(f"{whole}#{number}" if len(found) > 1 else whole, one) for number, one in enumerate(found, 1)]
