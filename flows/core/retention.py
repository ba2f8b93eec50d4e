"""How long the record is kept: the setting RETENTION, read and found fault with. Pure.

"RETENTION": {"days": 90, "flows": {"nightly-report": 14, "audit": None}, "archive": "jsonl:outlast", "spans": {"events": 365}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flows.core.misuse import BadRetention

#: Days that rows are kept which do not belong to one run; None: for ever.
SPANS: dict[str, float | None] = {"events": 365, "deliveries": 365, "refusals": 90, "notices": 90, "findings": 90}
DAYS = 90
TABLE = "table"
JSONL = "jsonl"
KEYS = ("days", "flows", "archive", "storage", "spans")


@dataclass(frozen=True, slots=True)
class Retention:
    """What is deleted when, and where it goes first.

    Attributes:
        days: since its end, how long a run is kept; None: for ever. flows: the same by the name of a flow.
        archive: "", "table" or "jsonl"; path: the folder of the files, in the storage of that alias. spans: name → days.
    """

    days: float | None = DAYS
    flows: Mapping[str, float | None] = field(default_factory=dict)
    archive: str = ""
    path: str = ""
    storage: str = "default"
    spans: Mapping[str, float | None] = field(default_factory=lambda: dict(SPANS))

    @property
    def least(self) -> float | None:
        """The shortest of all times after which a run may go; None: none ever does."""
        return min((days for days in (self.days, *self.flows.values()) if days is not None), default=None)


def faults(given: Any) -> Iterator[str]:
    """What is wrong with a value of the setting, each in a sentence that ends in the way out."""
    if not isinstance(given, Mapping):
        yield f'is a {type(given).__name__}; write "RETENTION": {{"days": 90}}, or {{"days": None}} to keep every run'
        return
    for key in given:
        if key not in KEYS:
            yield f"has the key {key!r:.60}, which means nothing; known are {', '.join(KEYS)}"
    if not _is_days(given.get("days", DAYS)):
        yield f"has days {given['days']!r:.60}; give a positive number of days, or None to keep every run"
    yield from _named(given.get("flows", {}), "flows", None)
    yield from _named(given.get("spans", {}), "spans", tuple(SPANS))
    if not isinstance(given.get("storage", ""), str):
        yield f"has the storage {given['storage']!r:.60}; name an alias in STORAGES"
    archive = given.get("archive", "")
    kind, _, path = archive.partition(":") if isinstance(archive, str) else ("?", "", "")
    if archive not in ("", TABLE) and (kind != JSONL or not _is_path(path)):
        yield f'has archive {archive!r:.80}; write "", "table", or "jsonl:FOLDER", a folder inside the storage'


def _is_path(path: str) -> bool:
    parts = path.split("/")
    return all(part and part not in (".", "..") and "\\" not in part and "\x00" not in part for part in parts)


def _named(given: Any, what: str, known: tuple[str, ...] | None) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield f"has {what} {given!r:.60}; write a dict from name to days"
        return
    for name, days in given.items():
        if not isinstance(name, str) or (known is not None and name not in known):
            yield f"has the name {name!r:.60} in {what}" + (f"; known are {', '.join(known)}" if known else "; names are text")
        if not _is_days(days):
            yield f"has {days!r:.60} for {name!r:.60} in {what}; give a positive number of days, or None to keep them"


def _is_days(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1_000_000)


def read(given: Any) -> Retention:
    """The setting as it stands.

    Raises:
        BadRetention: it says something that cannot be; nothing may be deleted by it.
    """
    found = list(faults(given))
    if found:
        raise BadRetention(found[0])
    kind, _, path = given.get("archive", "").partition(":")
    return Retention(
        days=given.get("days", DAYS),
        flows=dict(given.get("flows", {})),
        archive=kind,
        path=path,
        storage=given.get("storage", "default"),
        spans={**SPANS, **given.get("spans", {})},
    )
