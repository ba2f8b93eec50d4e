"""A worker that dies at a commit: just before it, so that nothing of it is kept, or just after, so that nobody was told.

The seam in `flows.store.sql` numbers the commits. Statements that only move the test's own clock are no points.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flows.store import sql

NO_POINTS = frozenset({"movable clock", "move clock", "plain clock", "drop clock", "under way", "next moment", "versions", "now"})


class Killed(BaseException):
    """The process is gone. No error of a program: nothing may catch it and go on."""


class Fuse:
    """Dies once, at the point of that number, counted from 0 over all that runs while it is lit."""

    def __init__(self, at: int) -> None:
        self.left, self.where = at, ""

    @property
    def burnt(self) -> bool:
        return bool(self.where)

    def pass_point(self, when: str, name: str) -> None:
        if self.burnt or when == "within" or name in NO_POINTS:
            return
        self.left -= 1
        if self.left < 0:
            self.where = f"{when} {name}"
            raise Killed(self.where)


@contextmanager
def lit(fuse: Fuse | None) -> Iterator[None]:
    """The fuse stands at the seam for the length of the block."""
    if fuse is None or fuse.burnt:
        yield
        return
    before, sql.seam = sql.seam, fuse.pass_point
    try:
        yield
    finally:
        sql.seam = before
