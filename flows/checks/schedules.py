"""Schedules as they are declared, what reads them, and those of the record."""

from __future__ import annotations

import importlib.util
import re
import zoneinfo
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from django.core import checks
from django.db import DatabaseError

from flows import registry
from flows.checks.catalogue import TAG
from flows.checks.database import may_ask, pending
from flows.checks.declared import as_message
from flows.core.lint import schedules as lint
from flows.core.schedules.declared import Schedule
from flows.core.schedules.words import Timing
from flows.models import Schedule as Row

#: How it is timed → the package that reads that.
READERS = {Timing.CRON: "cronsim", Timing.RULE: "dateutil"}

_PACKAGE = re.compile(r"(\d{4})\.(\d+)")
_SYSTEM = re.compile(r"(\d{4})([a-z])")


@checks.register(TAG)
def check_schedules(**_: Any) -> list[checks.CheckMessage]:
    """Every mistake of a declared schedule, and that what reads it is installed."""
    declared = list(registry.declared(Schedule).values())
    found = [as_message(one) for one in lint.problems(declared, {name for name, _ in registry.known()})]
    wanted = {READERS[kind]: one for one in declared if (kind := Timing(one.spec.kind)) in READERS}
    return found + [_absent(package, one) for package, one in sorted(wanted.items()) if not _is_installed(package)]


@checks.register(TAG)
def check_zones(**_: Any) -> list[checks.CheckMessage]:
    """The zones of the package, which schedules go by, are not older than the system's."""
    ours, theirs = package_zones(), system_zones()
    if ours is None or theirs is None or ours >= theirs:
        return []
    message = f"The time zones of the package tzdata are of {_named(ours)}, the system's of {_named(theirs)}."
    return [checks.Warning(message, hint="Update it: pip install --upgrade tzdata.", id="outlast_flows.W110")]


@checks.register(checks.Tags.database)
def check_schedule_names(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """No schedule of the record has the name of one in code: it keeps that one from being planned."""
    alias = may_ask(databases)
    try:
        if alias is None or pending(alias):
            return []
        taken = Row.objects.using(alias).filter(origin="record", name__in=list(registry.declared(Schedule)))
        names = sorted(taken.values_list("name", flat=True))
    except DatabaseError:
        return []
    hint = "Rename the one in code, or pause the one of the record and choose another name for it."
    message = "Schedule {!r} is declared in code, and the record has one of that name: that one is planned."
    return [checks.Error(message.format(name), hint=hint, obj=name, id="outlast_flows.E117") for name in names]


def package_zones() -> tuple[int, int] | None:
    """(year, number) of the package's zones; None: it is not installed."""
    try:
        found = _PACKAGE.match(metadata.version("tzdata"))
    except metadata.PackageNotFoundError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def system_zones() -> tuple[int, int] | None:
    """(year, number) of the system's; None: it does not say."""
    for folder in zoneinfo.TZPATH:
        for name in ("tzdata.zi", "+VERSION"):
            try:
                first = (Path(folder) / name).read_text(encoding="utf-8").partition("\n")[0]
            except (OSError, UnicodeDecodeError):
                continue
            if found := _SYSTEM.search(first):
                return int(found[1]), ord(found[2]) - ord("a") + 1
    return None


def _named(version: tuple[int, int]) -> str:
    return f"{version[0]}{chr(ord('a') + version[1] - 1)}"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _absent(package: str, one: Schedule) -> checks.CheckMessage:
    message = f"{one.label} needs the package {package!r}, which is not installed."
    return checks.Error(message, hint='pip install "outlast[schedules]"', obj=one.name, id="outlast_flows.E115")
