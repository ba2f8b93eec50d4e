"""manage.py flows erase: what ended runs were given, made and were told is replaced for ever."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.core.management.base import CommandError

from flows.management import find, verbs
from flows.services import erasing, identify


def add(verb: verbs.Verb) -> None:
    """The verb `erase`."""
    summary = "Erase the values of ended runs for ever; the log, digests and decisions stay, and the log says so."
    parser = verb("erase", summary)
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument(
        "--user", metavar="USERNAME", help="of every ended run that this user is accountable for, and its children"
    )
    whose.add_argument("--key", metavar="FLOW:KEY", help="of one run, and its children")
    parser.add_argument("--reason", required=True, metavar="TEXT")
    parser.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {erasing.PERMISSION}")


def do(_verb: str, *, database: str | None, user: str | None, key: str | None, reason: str, by: str, **_: Any) -> verbs.Report:
    """What the verb gives.

    Raises:
        CommandError: wrong usage. OutlastError: nobody may, or nobody says why; nothing was done.
    """
    using = identify.alias(database)
    who = find.user(by, using)
    if user is not None:
        found = erasing.erase_user(find.user(user, using), by=who, reason=reason, using=using)
    else:
        flow, colon, name = str(key).partition(":")
        if not colon:
            raise CommandError("--key is FLOW:KEY.", returncode=2)
        found = erasing.erase_key(flow, name, by=who, reason=reason, using=using)
    said = [f"{len(found.runs)} runs erased, {found.already} had been before, {found.archived} records in the archive"]
    left = []
    if found.live:
        left.append(f"{len(found.live)} runs have not ended and were left as they are: cancel them, or come back")
    if found.files:
        left.append(f"archives in files are not written anew; these have runs of theirs: {', '.join(found.files)}")
    text = "\n".join(str(one) for one in found.runs)
    return verbs.Report(dataclasses.asdict(found), text, "\n".join(said), ". ".join(left))
