"""What belongs to a run in the record, and what has a span of its own: the tables that retention, erasing and codecs go through.

Each plane lists its own (`flows.store.belongings`, `approvals.store.belongings`) and registers them, children before what they hang on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Belonging:
    """A table whose rows belong to a run, are archived with it and go with it.

    Attributes:
        table: its name. order: the columns that put the rows of a run in one order, for the digest.
        column: the run's id, in the table or in the one that it hangs on. through: (own column, table, column there) of what it hangs on.
        unfinished: an SQL condition on `t`: a row for which it holds keeps its run.
        locked: rows that others may hang new rows on while their run goes, so they are locked first.
        deleted: they go with the run; False: they are archived with it, and go otherwise.
        values: JSON columns with what flows were given, made and were told: a codec may have sealed them, and they can be erased.
        texts: columns with what people wrote, which can be erased.
    """

    table: str
    order: str
    column: str = "workflow_id"
    through: tuple[str, str, str] | None = None
    unfinished: str = ""
    locked: bool = False
    deleted: bool = True
    values: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def ordered(self) -> str:
        """The order, for the table as `t`."""
        return ", ".join(f"t.{column.strip()}" for column in self.order.split(","))


@dataclass(frozen=True, slots=True)
class Span:
    """Rows that go by their own age.

    Attributes:
        name: as RETENTION["spans"] has it. table: the table, whose primary key is `id` and grows with time. at: the column with its age.
        grows: a column that grows with the id; "": `at` does.
        done: an SQL condition on `t`: only such rows go. hanging: (table, column) of rows that go with them.
    """

    name: str
    table: str
    at: str
    done: str = "true"
    grows: str = ""
    hanging: tuple[tuple[str, str], ...] = ()
