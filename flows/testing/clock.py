"""A clock that tests can move: business time of a whole database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from flows.conf import conf
from flows.core.misuse import UsageError
from flows.store.sql import run

PLAIN_CLOCK = """
CREATE OR REPLACE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()'
"""

MOVABLE_CLOCK = """
CREATE TABLE IF NOT EXISTS outlast_test_clock (shift interval NOT NULL);
TRUNCATE outlast_test_clock;
INSERT INTO outlast_test_clock VALUES (interval '0');
CREATE OR REPLACE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT statement_timestamp() + (SELECT shift FROM outlast_test_clock)'
"""


class Clock:
    """Business time of a whole database, real workers included. Leases stay on real time."""

    def __init__(self, using: str) -> None:
        self._using = using

    def move(self, **span: float) -> None:
        """Let that much time pass (arguments of `timedelta`)."""
        run(
            "move clock",
            "UPDATE outlast_test_clock SET shift = shift + %(by)s::interval",
            {"by": timedelta(**span)},
            self._using,
        )


#: How Django's test runner names a database; what may be emptied by it (the guards against TRUNCATE) may have its clock moved.
TEST_PREFIX = "test_"


class NotATestDatabase(UsageError):
    """Every deadline of every run there would pass at once, and what happens then happens outside."""

    code = "NOT_A_TEST_DATABASE"

    def __init__(self, alias: str, name: str) -> None:
        super().__init__(
            f"The clock of database {name!r} (alias {alias!r}) is not moved: its name does not begin with {TEST_PREFIX!r}, so real runs may "
            "be in it. Run this under Django's test runner or pytest-django; for a database that only a demo uses, pass any_database=True."
        )


@contextmanager
def movable_clock(using: str | None = None, *, any_database: bool = False) -> Iterator[Clock]:
    """Make the durable clock movable for this database; the plain one comes back at the end.

    Args:
        any_database: also where the name does not say that it is a test's; what is in it then ages with the rest.
    Raises:
        NotATestDatabase: its name does not begin with `test_`.
    """
    alias = using or conf.DATABASE
    name = str(run("name of the database", "SELECT current_database()", {}, alias)[0][0])
    if not any_database and not name.startswith(TEST_PREFIX):
        raise NotATestDatabase(alias, name)
    for statement in MOVABLE_CLOCK.split(";"):
        run("movable clock", statement, {}, alias)
    try:
        yield Clock(alias)
    finally:
        run("plain clock", PLAIN_CLOCK, {}, alias)
        run("drop clock", "DROP TABLE outlast_test_clock", {}, alias)
