"""manage.py flows supersede, preview: a new goal for an intent, and what that would end. The part of the command that is these verbs'."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from flows import registry
from flows.management import find, words
from flows.models import Intent
from flows.services import identify, preview
from flows.services.control import Answer, Superseded, supersede

WRONG_USAGE = 2


def add_supersede(parser: ArgumentParser) -> None:
    """The arguments of `flows supersede`."""
    parser.add_argument("--goal", required=True, metavar="TEXT", help="what is wanted now, in words")
    parser.add_argument("--reason", default="", metavar="TEXT")
    parser.add_argument("--by", metavar="USERNAME")
    parser.add_argument("--flow", metavar="NAME", help="start a run of this flow for the new goal, in the same transaction")
    parser.add_argument("--input", metavar="JSON", help="of that run: a JSON object, or - to read it from stdin")
    parser.add_argument("--key", metavar="KEY", help="of that run: with it, the same command again is harmless")


def give(
    *, id: str, goal: str, reason: str, by: str | None, flow: str | None, input: Any, key: str | None, using: str | None
) -> Superseded:
    """Give the intent of a run a new goal.

    Raises:
        CommandError: wrong usage, or there is no such user. OutlastError: there is no such run or flow, or it cannot be stored.
    """
    if (flow is None) != (input is None) or (flow is None and key is not None):
        raise CommandError("--flow and --input belong together, and --key to them.", returncode=WRONG_USAGE)
    intent = identify.get(find.workflow(id, using), using).intent_id
    wanted = {"flow": registry.flow(flow, None), "input": input, "key": key} if flow is not None else {}
    return supersede(intent, goal=goal, reason=reason, by=find.user(by, using), using=using, **wanted)


def said(found: Superseded, using: str | None) -> str:
    """What became of it, in words.

    Raises:
        CommandError: the intent has ended.
    """
    if found.answer is Answer.TOO_LATE:
        status = Intent.objects.using(identify.alias(using)).values_list("status", flat=True).get(pk=found.intent_id)
        raise CommandError(f"Too late: the goal is {status}.")
    count = len(found.ended)
    started = f"; started {found.started.id}" if found.started is not None and found.started.created else ""
    return f"the goal has version {found.version}; {count} {'run of the old one ends' if count == 1 else 'runs of the old one end'}{started}"


def as_table(endings: Iterable[preview.Ending]) -> str:
    """What each run means: its id once, then a line for each thing that there is."""
    rows = [row for one in endings for row in _lines(one)]
    return words.table(("id", "what", ""), rows)


def _lines(one: preview.Ending) -> Iterator[tuple[UUID | str, str, Any]]:
    named: UUID | str = one.workflow
    for name, value in dataclasses.asdict(one).items():
        if name != "workflow" and value not in ([], "", None, 0):
            yield named, name, ", ".join(value) if isinstance(value, list) else value
            named = ""
