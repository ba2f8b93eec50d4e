"""manage.py flows policy, competence: under what runs may act. The part of the command that is these verbs'."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError

from flows.management import find, given, verbs, words
from flows.models import Competence, CompetenceOpening, Policy
from flows.services import competence, identify, policies
from flows.services.control import Answer

POLICIES = ("name", "version", "blocks", "digest", "by", "at", "note")
OPENINGS = ("flow", "node", "release", "errors", "allowed", "closed", "at", "by", "reason")
ENVELOPES = ("flow", "node", "release", "errors", "allowed", "closed", "note")


def add_policy(parser: ArgumentParser) -> None:
    """The arguments of `flows policy`."""
    verb = verbs.below(parser)
    verb("list", "every version, the newest first")
    publish = verb("publish", "publish the next version; the same again changes nothing")
    publish.add_argument("name", metavar="NAME")
    publish.add_argument("--body", required=True, metavar="FILE", help="a file with a JSON object; - reads it from stdin")
    publish.add_argument(
        "--goes-on", action="store_true", help="runs of older versions go on (without it they stop at their next wake-up)"
    )
    publish.add_argument("--note", required=True, metavar="TEXT", help="why; it is kept with the version")
    adopt = verb("adopt", "bind a run to the newest version of its policy; one that it stopped goes on")
    adopt.add_argument("id", metavar="ID")
    adopt.add_argument("--reason", required=True, metavar="TEXT")
    adopt.add_argument("--seen", metavar="STATE", help="refuse if it has moved since `flows show --json` printed this")
    for one in (publish, adopt):
        one.add_argument("--by", required=True, metavar="USERNAME", help="who says so: needs outlast_flows.publish_policy")


def add_competence(parser: ArgumentParser) -> None:
    """The arguments of `flows competence`."""
    verb = verbs.below(parser)
    verb("list", "every envelope, the closed ones first")
    verb("history", "who opened which envelope again, when and why; the newest first")
    opened = verb("open", "open a closed envelope again: its errors are counted anew")
    opened.add_argument("flow", metavar="FLOW")
    opened.add_argument("node", metavar="NODE")
    opened.add_argument("--release", default="", metavar="NAME")
    opened.add_argument("--reason", required=True, metavar="TEXT")
    opened.add_argument("--resume", action="store_true", help="the runs that it stopped go on, also where it is open already")
    opened.add_argument("--by", required=True, metavar="USERNAME", help="who says so: needs outlast_flows.open_competence")


def policy(*, what: str, **options: Any) -> tuple[Any, str]:
    """(data, text) of the verb."""
    using = options["database"]
    if what == "list":
        rows = Policy.objects.using(identify.alias(using)).order_by("name", "-version")
        return _listed(POLICIES, ((p.name, p.version, p.blocks, p.digest, p.by_label, p.at, p.note) for p in rows))
    by = find.permitted(options["by"], policies.PERMISSION, using)
    if what == "adopt":
        done = policies.adopt(
            find.workflow(options["id"], using), reason=options["reason"], by=by, seen=options["seen"], using=using
        )
        if done.answer is Answer.MOVED:
            raise CommandError(
                f"{done.id} has moved: it is {done.status}. Nothing was changed; look again (flows show).", returncode=1
            )
        if done.answer is Answer.TOO_LATE:
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
    if what == "history":
        openings = CompetenceOpening.objects.using(identify.alias(using)).order_by("-pk")
        told = ((o.flow_name, o.node, o.release, o.burned, o.allowed, o.closed_at, o.at, o.by_label, o.reason) for o in openings)
        return _listed(OPENINGS, told)
    return _opened(using=using, **options)


def _opened(
    *, flow: str, node: str, release: str, reason: str, by: str, resume: bool, using: str | None, **_: Any
) -> tuple[Any, str]:
    who = find.permitted(by, competence.PERMISSION, using)
    found = competence.open_again(flow, node, release=release, reason=reason, by=who, resume=resume, using=using)
    if not found and not found.resumed:
        raise CommandError(f"{flow}.{node} has no closed envelope. `flows competence list` shows what there is.", returncode=1)
    lines = [f"{flow}.{node} is open again" if found else f"{flow}.{node} was open already"]
    if resume:
        lines += [f"{run} goes on" for run in found.resumed] + [f"{run} does not: {why}" for run, why in found.left.items()]
    else:
        lines += [
            f"it stopped {row.pk}: flows resume {row.pk}" for row in competence.stopped(flow, node, release=release, using=using)
        ]
    data = {"flow": flow, "node": node, "release": release, "opened": found.opened}
    return {**data, "resumed": found.resumed, "left": {str(run): why for run, why in found.left.items()}}, "\n".join(lines)


def _listed(titles: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> tuple[Any, str]:
    found = list(rows)
    return [dict(zip(titles, row, strict=True)) for row in found], words.table(titles, found)
