"""manage.py flows policy, competence: under what runs may act. The part of the command that is these verbs'."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Iterable
from typing import Any

from django.core.management.base import CommandError

from flows.management import find, given, words
from flows.models import Competence, Policy
from flows.services import competence, identify, policies

POLICIES = ("name", "version", "blocks", "digest", "by", "at", "note")
ENVELOPES = ("flow", "node", "release", "errors", "allowed", "closed", "note")


def _verbs(parser: ArgumentParser) -> Callable[[str, str], ArgumentParser]:
    """What makes a verb below a verb; the common options may stand after it too."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def verb(name: str, summary: str) -> ArgumentParser:
        made: ArgumentParser = verbs.add_parser(name, help=summary, description=summary)
        made.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON document")
        made.add_argument("--database", metavar="ALIAS", default=SUPPRESS, help="the database alias that holds the record")
        return made

    return verb


def add_policy(parser: ArgumentParser) -> None:
    """The arguments of `flows policy`."""
    verb = _verbs(parser)
    verb("list", "every version, the newest first")
    publish = verb("publish", "publish the next version; the same again changes nothing")
    publish.add_argument("name", metavar="NAME")
    publish.add_argument("--body", required=True, metavar="FILE", help="a file with a JSON object; - reads it from stdin")
    publish.add_argument(
        "--goes-on", action="store_true", help="runs of older versions go on (without it they stop at their next wake-up)"
    )
    publish.add_argument("--note", default="", metavar="TEXT")
    adopt = verb("adopt", "bind a run to the newest version of its policy; one that it stopped goes on")
    adopt.add_argument("id", metavar="ID")
    adopt.add_argument("--reason", required=True, metavar="TEXT")
    for one in (publish, adopt):
        one.add_argument("--by", required=True, metavar="USERNAME", help="who says so: needs outlast_flows.publish_policy")


def add_competence(parser: ArgumentParser) -> None:
    """The arguments of `flows competence`."""
    verb = _verbs(parser)
    verb("list", "every envelope, the closed ones first")
    opened = verb("open", "open a closed envelope again: its errors are counted anew")
    opened.add_argument("flow", metavar="FLOW")
    opened.add_argument("node", metavar="NODE")
    opened.add_argument("--release", default="", metavar="NAME")
    opened.add_argument("--reason", required=True, metavar="TEXT")
    opened.add_argument("--by", required=True, metavar="USERNAME", help="who says so: needs outlast_flows.open_competence")


def policy(*, what: str, **options: Any) -> tuple[Any, str]:
    """(data, text) of the verb."""
    using = options["database"]
    if what == "list":
        rows = Policy.objects.using(identify.alias(using)).order_by("name", "-version")
        return _listed(POLICIES, ((p.name, p.version, p.blocks, p.digest, p.by_label, p.at, p.note) for p in rows))
    by = find.permitted(options["by"], "outlast_flows.publish_policy", using)
    if what == "adopt":
        done = policies.adopt(find.workflow(options["id"], using), reason=options["reason"], by=by, using=using)
        if not done and done.answer == "too_late":
            raise CommandError(
                f"{done.id} is {done.status}: it has ended, or is computing just now. Try again in a moment.", returncode=1
            )
        return {"id": done.id, "answer": done.answer, "status": done.status}, f"{done.id}: {done.answer}, {done.status}"
    body = given.from_file(options["body"], f"--body {options['body']}")
    made = policies.publish(options["name"], body, blocks=not options["goes_on"], note=options["note"], by=by, using=using)
    said = "published" if made.created else "is what is published already"
    return {"name": made.name, "version": made.version, "created": made.created}, f"{made.name}@{made.version} {said}"


def envelopes(*, what: str, **options: Any) -> tuple[Any, str]:
    """(data, text) of the verb `competence`."""
    using = options["database"]
    if what == "list":
        rows = Competence.objects.using(identify.alias(using)).order_by("closed_at", "flow_name", "node", "release")
        listed = ((c.flow_name, c.node, c.release, c.burned, c.allowed, c.closed_at, c.note) for c in rows)
        return _listed(ENVELOPES, listed)
    by = find.permitted(options["by"], "outlast_flows.open_competence", using)
    flow, node, release = options["flow"], options["node"], options["release"]
    if not competence.open_again(flow, node, release=release, reason=options["reason"], by=by, using=using):
        raise CommandError(f"{flow}.{node} has no closed envelope. `flows competence list` shows what there is.", returncode=1)
    return {"flow": flow, "node": node, "release": release}, f"{flow}.{node} is open again; resume the runs that it stopped"


def _listed(titles: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> tuple[Any, str]:
    found = list(rows)
    return [dict(zip(titles, row, strict=True)) for row in found], words.table(titles, found)
