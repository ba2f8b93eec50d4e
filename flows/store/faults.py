"""What a fault of the database means, in one sentence: it is away, or its tables are not those that this code needs."""

from __future__ import annotations

from django.db import Error

#: PostgreSQL's codes for a table, a column and a function that is not there.
NOT_THERE = frozenset({"42P01", "42703", "42883"})


def is_unmigrated(error: Error) -> bool:
    """Whether the record's tables are not (all) there, or older than this code."""
    return getattr(error.__cause__, "sqlstate", None) in NOT_THERE


def sentence(error: Error, using: str) -> str:
    """What is wrong, and the way out where there is one."""
    why = str(error).partition("\n")[0].strip()
    if is_unmigrated(error):
        return f"the tables of Outlast are not in database {using!r} as this code needs them ({why}): run `manage.py migrate`"
    return f"the database is away ({why})"
