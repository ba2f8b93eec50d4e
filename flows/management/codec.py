"""manage.py flows codec: values brought to how they would be stored today."""

from __future__ import annotations

import dataclasses
from typing import Any

from flows.management import verbs, words
from flows.services import identify, resealing

TITLES = ("table", "rows", "sealed", "busy")


def add(verb: verbs.Verb) -> None:
    """The verb `codec`, and that below it."""
    below = verbs.below(verb("codec", "How values lie in the record (OUTLAST['CODEC'])."))
    rotate = below("rotate", "seal every value with the newest key, plain ones too; it may be stopped and called again")
    rotate.add_argument("--dry-run", action="store_true", help="count what would be written; nothing is changed")


def do(_verb: str, *, database: str | None, dry_run: bool, **_: Any) -> verbs.Report:
    """What the verb gives.

    Raises:
        OutlastError: there is no codec, or a value needs a key that is not listed.
    """
    found = list(resealing.rotate(dry_run=dry_run, using=identify.alias(database)))
    table = words.table(TITLES, ((one.table, one.rows, one.sealed, one.busy) for one in found))
    count, busy = sum(one.sealed for one in found), sum(one.busy for one in found)
    said = f"{count} rows {'would be' if dry_run else 'were'} sealed anew"
    wrong = f"{busy} rows were in use: call it again before you take the old key away" if busy else ""
    return verbs.Report([dataclasses.asdict(one) for one in found], table, said, wrong)
