"""manage.py approvals: look at requests, answer them, and see how long people are waited for. Words go to stderr, data to stdout."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError, connections

from approvals.core.status import ANSWERS
from approvals.management import shown
from approvals.models import Request
from approvals.services import as_data, browsing
from approvals.services.asked import answer_shown
from approvals.services.claiming import assign
from approvals.services.decide import ACCEPTED, ALREADY, Decided, decide
from approvals.services.delegating import delegate
from approvals.services.locked import UnknownRequest
from approvals.services.packet import packet
from approvals.services.taking_back import revoke
from approvals.services.waiting import backlog, waiting
from flows.core import visible
from flows.core.errors import OutlastError
from flows.management import find, given, words
from flows.services import identify
from flows.services.clock import now
from flows.store import faults

EPILOG = (
    "Exit codes: 0 done (or it was so already); 1 refused or not found; 2 wrong usage. Whoever is named as USERNAME needs the rights that the "
    "admin asks for. Data goes to stdout (one JSON document with --json), words go to stderr."
)
WRONG_USAGE = 2
MAX_DAYS = 3660


class Command(BaseCommand):
    """Every verb calls the same use case as the admin and the API."""

    help = "Look at requests for approval, answer them, and see how long people are waited for."
    requires_system_checks = []  # as `flows`: a mistake in one flow must not keep an operator from the others

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, epilog=EPILOG, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def verb(name: str, summary: str, *, request: bool = False, by: bool = False) -> ArgumentParser:
            made: ArgumentParser = subparsers.add_parser(name, help=summary, description=summary, epilog=EPILOG)
            made.add_argument("--json", action="store_true", help="print one JSON document")
            made.add_argument("--database", metavar="ALIAS", help="the database alias that holds the record")
            if request:
                made.add_argument("id", metavar="ID", help="the number of the request")
            if by:
                made.add_argument("--by", required=True, metavar="USERNAME", help="who says so")
            return made

        listing = verb("list", "List requests: all that are pending, the soonest to expire first.")
        listing.add_argument("--user", metavar="USERNAME", help="only those that this user may answer")
        listing.add_argument("--queue", choices=[name for name in browsing.QUEUES if name != "mine"], default="pending")
        listing.add_argument("--limit", type=given.positive, default=50, metavar="N")
        verb("show", "A request: what would be done, its digest, who answered.", request=True).add_argument(
            "--user", metavar="USERNAME", help="say whether this user may answer it"
        )
        answer = verb("decide", "Answer a request, for the candidate that has the digest.", request=True, by=True)
        answer.add_argument("--verdict", required=True, choices=list(ANSWERS))
        answer.add_argument("--digest", required=True, metavar="DIGEST", help="of the candidate that was read (approvals show)")
        answer.add_argument("--keep", nargs="+", type=int, metavar="N", help="with narrow: the numbers (from 0) of what is kept")
        answer.add_argument("--comment", default="", metavar="TEXT", help="needed to request changes or to deny")
        verb("assign", "Say who looks at a request.", request=True, by=True).add_argument(
            "--to", metavar="USERNAME", help="default: nobody does any more"
        )
        verb("revoke", "Take an approval back that is not used yet.", request=True, by=True).add_argument(
            "--reason", required=True, metavar="TEXT"
        )
        _add_delegate(verb("delegate", "Let somebody stand in for somebody.", by=True))
        measured = verb("waiting", "How long people are waited for: per role, pool, permission and person, and per flow.")
        measured.add_argument("--days", type=given.positive, default=7, metavar="N", help="the last N days (default: 7)")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        given.check_texts(options)
        alias = options.get("database")
        if alias is not None and alias not in connections.settings:
            raise CommandError(f"There is no database {alias!r} in DATABASES.", returncode=WRONG_USAGE)
        action: Callable[..., None] = getattr(self, f"do_{verb}")
        try:
            action(using=identify.alias(alias), **options)
        except OutlastError as error:
            raise CommandError(visible.plain(str(error))) from error
        except OperationalError as error:
            raise CommandError(visible.plain(f"The database does not answer: {error}")) from error
        except ProgrammingError as error:
            if not faults.is_unmigrated(error):
                raise
            said = faults.sentence(error, identify.alias(alias))
            raise CommandError(visible.plain(f"{said[0].upper()}{said[1:]}.")) from error

    # ------------------------------------------------------------------ looking

    def do_list(self, *, using: str, user: str | None, queue: str, limit: int, **options: Any) -> None:
        """One line a request."""
        who = find.user(user, using)
        page = browsing.requests(who, queue="mine" if who is not None else queue, limit=limit, using=using)
        rows = [as_data.summary(row) for row in page.rows]
        self._put(rows, shown.requests(rows), options)
        self._say(f"{len(rows)} shown{'; there are more (--limit)' if page.following else ''}")

    def do_show(self, *, using: str, id: str, user: str | None, **options: Any) -> None:
        """All that a reviewer needs of one request."""
        row = _request(id, using)
        who = find.user(user, using)
        found = as_data.detail(packet(row, who, using), filled_in=answer_shown(row, who, using))
        if who is None:
            found["may_answer"] = None
        self._put(found, shown.detail(found), options)

    def do_waiting(self, *, using: str, days: int, **options: Any) -> None:
        """The waiting times of the last days, and what is open."""
        if days > MAX_DAYS:
            raise CommandError(f"--days is at most {MAX_DAYS}.", returncode=WRONG_USAGE)
        end = now(using)
        found, open_now = waiting(since=end - timedelta(days=days), until=end, using=using), backlog(using=using)
        self._put({**dataclasses.asdict(found), "backlog": open_now}, shown.waiting(found, open_now), options)
        self._say(f"the last {days} days; spans from when a step was asked until it was done; open is what is open now")

    # ------------------------------------------------------------------ acting

    def do_decide(self, *, using: str, id: str, by: str, **options: Any) -> None:
        """Answer as that user."""
        row, who = _request(id, using), find.user(by, using)
        given = {name: options[name] for name in ("verdict", "digest", "comment", "keep")}
        self._told(decide(row.pk, by=who, using=using, **given), options)

    def do_assign(self, *, using: str, id: str, by: str, to: str | None, **options: Any) -> None:
        """Mark who looks at it."""
        row = _request(id, using)
        self._told(assign(row.pk, to=find.user(to, using), by=find.user(by, using), using=using), options)

    def do_revoke(self, *, using: str, id: str, by: str, reason: str, **options: Any) -> None:
        """Take it back."""
        self._told(revoke(_request(id, using).pk, reason=reason, by=find.user(by, using), using=using), options)

    def do_delegate(self, *, using: str, by: str, days: int, **options: Any) -> None:
        """Make a delegation; prints its number."""
        giver, taker = (find.user(options[name], using) for name in ("giver", "to"))
        scope = {name: options[name] for name in ("role", "pool", "flow")}
        if days > MAX_DAYS:
            raise CommandError(f"--days is at most {MAX_DAYS}; a delegation holds for a year at most.", returncode=WRONG_USAGE)
        until = now(using) + timedelta(days=days)
        made = delegate(giver, taker, until=until, reason=options["reason"], by=find.user(by, using), using=using, **scope)
        self._put(as_data.delegation(made, now(using)), str(made.pk), options)
        self._say(f"{visible.plain(str(made))} until {words.moment(until)}")

    # ------------------------------------------------------------------ printing

    def _told(self, decided: Decided, options: dict[str, Any]) -> None:
        """What became of it; a refusal is exit code 1."""
        self._put(dataclasses.asdict(decided), decided.code, options)
        if decided.code not in (ACCEPTED, ALREADY):
            raise CommandError(visible.plain(decided.sentence))
        self._say(visible.plain(decided.sentence))

    def _put(self, value: Any, text: str, options: dict[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(words.as_json(value))
        elif text:
            self.stdout.write(text)

    def _say(self, text: str) -> None:
        """Words, which are no data."""
        self.stderr.write(text, str)


def _add_delegate(parser: ArgumentParser) -> None:
    parser.add_argument("--from", required=True, dest="giver", metavar="USERNAME", help="whose place it is")
    parser.add_argument("--to", required=True, metavar="USERNAME", help="who stands in")
    parser.add_argument("--days", required=True, type=given.positive, metavar="N", help="from now on, for so many days")
    parser.add_argument("--reason", required=True, metavar="TEXT")
    for name in ("role", "pool", "flow"):
        parser.add_argument(f"--{name}", default="", metavar="NAME", help=f"only for questions of this {name}")


def _request(text: str, using: str) -> Request:
    """The request of that number.

    Raises:
        UnknownRequest: there is none.
    """
    found = browsing.find(int(text), using) if text.isascii() and text.isdecimal() and len(text) <= 19 else None
    if found is None:
        raise UnknownRequest(visible.plain(text))
    return found
