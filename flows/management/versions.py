"""manage.py flows migrate: runs to a newer version of their flow, one, several or all of a flow. The part of the command that is this verb's."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from uuid import UUID

from django.core.management.base import CommandError

from flows.management import find, words
from flows.services import migrate
from flows.services.migrate import Answer, Migration

WRONG_USAGE = 2
TITLES = ("id", "flow", "key", "from", "to", "node", "answer", "reason")
#: What leaves the exit code 0.
GOOD = frozenset({Answer.MIGRATED, Answer.WOULD_MIGRATE, Answer.ALREADY})


def add_migrate(parser: ArgumentParser) -> None:
    """The arguments of `flows migrate`, but for the numbers of versions."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY")
    parser.add_argument("--flow", metavar="NAME", help="all live runs of older versions of this flow")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
    parser.add_argument("--reason", default="", metavar="TEXT")
    parser.add_argument("--by", metavar="USERNAME")


def chosen(ids: Sequence[str], flow: str | None, source: int | None, to: int | None, using: str | None) -> Iterator[UUID]:
    """The runs that are meant.

    Raises:
        CommandError: neither runs nor a flow are named, or both. UnknownWorkflow, UnknownFlow: there is none.
    """
    if bool(ids) == (flow is not None):
        raise CommandError("Name runs by their ids, or a flow by --flow NAME.", returncode=WRONG_USAGE)
    if source is not None and flow is None:
        raise CommandError("--from chooses among the runs of --flow NAME.", returncode=WRONG_USAGE)
    if flow is None:
        return iter([find.workflow(one, using) for one in ids])
    return migrate.older(flow, source=source, to=to, using=using)


def as_table(found: Sequence[Migration]) -> str:
    """One line a run."""
    rows = (
        (
            one.id,
            one.flow,
            one.key,
            one.from_version,
            one.to_version or "",
            f"{one.from_node} → {one.to_node}" if one.to_node else one.from_node,
            one.answer.value,
            one.reason,
        )
        for one in found
    )
    return words.table(TITLES, rows, whole=("reason",))


def summary(found: Sequence[Migration]) -> str:
    """How many of each answer."""
    counts = {answer: sum(one.answer is answer for one in found) for answer in Answer}
    return ", ".join(f"{count} {answer.value.replace('_', ' ')}" for answer, count in counts.items() if count) or "no such run"


def complaint(found: Sequence[Migration]) -> str:
    """Why the exit code is not 0; empty if it is."""
    bad = sum(one.answer not in GOOD for one in found)
    return f"{bad} of {len(found)} were not migrated; each says why." if bad else ""
