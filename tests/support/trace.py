"""What is sent to the server: every statement and every commit of this thread's connection, whoever sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection

from flows.services.owned import Owned
from flows.store import sql
from tests import factories


@dataclass
class Trace:
    """`names`: our own statements, in order. `others`: through Django's cursors. `commits`: numbered by the seam."""

    names: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    begun: int = 0

    @property
    def statements(self) -> int:
        """All that went over the wire, BEGIN and COMMIT counted."""
        return len(self.names) + len(self.others) + 2 * self.begun

    def clear(self) -> None:
        self.names, self.others, self.commits, self.begun = [], [], [], 0


@contextmanager
def tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trace]:
    """Record what this thread's connection is asked for."""
    trace = Trace()
    execute, begin = sql._execute, connection._set_autocommit

    def recorded(on: Any, statement: str, params: Any) -> Any:
        names = [name for name, text in vars_of_store().items() if text is statement]
        trace.names.append(names[0] if names else statement.strip().split()[0])
        return execute(on, statement, params)

    def switched(autocommit: bool) -> None:  # noqa: FBT001 - Django's own signature
        trace.begun += not autocommit
        begin(autocommit)

    def other(run: Any, text: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's own signature
        trace.others.append(text)
        return run(text, params, many, context)

    def committed(when: str, name: str) -> None:
        if when == "after":
            trace.commits.append(name)

    with monkeypatch.context() as patched, connection.execute_wrapper(other):
        patched.setattr(sql, "_execute", recorded)
        patched.setattr(sql, "seam", committed)
        patched.setattr(connection, "_set_autocommit", switched)
        yield trace


def vars_of_store() -> dict[str, str]:
    """The statements of the store by their names."""
    from flows.store import advance, attempts, claim, events, leave, load, locks, move, recover, start, tick, timers, workers

    modules = (advance, attempts, claim, events, leave, load, locks, move, recover, start, tick, timers, workers)
    found = {
        name: value for module in modules for name, value in vars(module).items() if name.isupper() and isinstance(value, str)
    }
    return {**found, "LOOK": tick.statement(tick.LOOK), "IDLE": tick.statement(tick.IDLE)}


class Died(BaseException):
    """The process ends here, as far as the test is concerned."""


def dying_after(owned: Owned, commit: str, nth: int = 1) -> bool:
    """The first decision of a turn, cut off right after the nth commit of that name; whether it came so far."""
    seen = []

    def die(when: str, name: str) -> None:
        if (when, name) == ("after", commit):
            seen.append(name)
            if len(seen) == nth:
                raise Died

    sql.seam = die
    try:
        factories.enter(owned)
    except Died:
        return True
    finally:
        sql.seam = None
    return False
