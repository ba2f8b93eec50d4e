"""manage.py flows releases: list, show, register, current, move. The part of the command that is these verbs'."""

from __future__ import annotations

import dataclasses
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.management.base import CommandError

from flows.core import visible
from flows.core.releases import ANY, PARTS, check_name, differences
from flows.management import find, given, words
from flows.models import Release
from flows.services import identify, releases
from flows.services.releases import PERMISSION, Code, Moved
from flows.services.releases_shown import Shown, overview, unregistered

WRONG_USAGE = 2
#: Of a dry run nothing has become so.
WOULD = {Code.MOVED: "would_move", Code.KEPT: "would_keep"}
KEYS = ("name", *PARTS, "compatible_with", "note")


@dataclass(frozen=True, slots=True)
class Output:
    """What the command prints: data (for a program, and the same as text), words, and what was refused ("": nothing)."""

    data: Any
    text: str
    says: list[str] = field(default_factory=list)
    refused: str = ""


def add(parser: ArgumentParser, epilog: str) -> None:
    """The arguments of `flows releases`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, summary: str, *, changes: bool = False) -> ArgumentParser:
        made: ArgumentParser = actions.add_parser(name, help=summary, description=summary, epilog=epilog)
        made.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON document")
        made.add_argument("--database", metavar="ALIAS", default=SUPPRESS, help="the database alias that holds the record")
        if changes:
            made.add_argument("--by", metavar="USERNAME", help=f"who asks; needs {PERMISSION}")
        return made

    action("list", "List releases, newest first: where each is current, who is pinned to it, who offers it.")
    show = action("show", "What a release is made of, and what became of it.")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--against", metavar="NAME", help="only what differs from this release")
    register = action("register", "Register a release from a JSON file; the same again is harmless.", changes=True)
    register.add_argument("file", metavar="FILE", help=f"an object with {', '.join(KEYS)}; - reads it from stdin")
    current = action("current", "Say which release is current, or make one current for new runs.", changes=True)
    current.add_argument("name", nargs="?", metavar="NAME")
    current.add_argument("--flow", metavar="NAME", help="for this flow only; default: for all that have none of their own")
    current.add_argument("--none", action="store_true", help="take the flow's own current release away")
    current.add_argument("--reason", default="", metavar="TEXT")
    move = action("move", "Pin a run, or all live runs of a release, to another one.", changes=True)
    move.add_argument("id", nargs="?", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY; without it, all of --from")
    move.add_argument("--from", dest="source", metavar="NAME", help="runs that are pinned to this release ('': to none)")
    move.add_argument("--flow", metavar="NAME", help="of these, only runs of this flow")
    move.add_argument("--to", required=True, metavar="NAME")
    move.add_argument("--reason", default="", metavar="TEXT", help="needed, unless it is a --dry-run")
    move.add_argument("--dry-run", action="store_true", help="say what would become of each; nothing is changed")


def do(*, action: str, **options: Any) -> Output:
    """Do what was asked.

    Raises:
        CommandError: it was asked for wrongly. OutlastError: it cannot be done.
    """
    acts: dict[str, Callable[..., Output]] = {
        "list": _list,
        "show": _show,
        "register": _register,
        "current": _current,
        "move": _move,
    }
    return acts[action](**options)


def _list(*, database: str | None, **_: Any) -> Output:
    found = overview(using=database)
    titles = ("name", "state", "current for", "live runs", "ready", "workers", "digest", "registered", "by")
    rows = [
        (
            one.name,
            one.state,
            ", ".join(one.current_for),
            one.runs,
            one.live.get("runnable", 0),
            ", ".join(one.workers) or "none",
            one.digest.removeprefix("sha256:")[:12],
            one.at,
            one.by,
        )
        for one in found
    ]
    says = [f"worker {worker} offers {name}, which is not registered" for name, worker in unregistered(using=database)]
    return Output([_data(one) for one in found], words.table(titles, rows), [*says, f"{len(found)} shown"])


def _show(*, name: str, against: str | None, database: str | None, **_: Any) -> Output:
    row = releases.get(name, using=database)
    mine = releases.parts_of(row)
    if against is not None:
        other = releases.get(against, using=database)
        differing = differences(releases.parts_of(other), mine)
        titles = ("part", "name", against, name)
        found = [dict(zip(("part", "name", "from", "to"), one, strict=True)) for one in differing]
        return Output(found, words.table(titles, differing, whole=(against, name)), [f"{len(found)} differences"])
    shown = next(one for one in overview(using=database) if one.name == row.name)
    facts = [
        ("release", shown.name),
        ("digest", shown.digest),
        ("state", shown.state or "not in use"),
        ("current for", ", ".join("every other flow" if flow == ANY else flow for flow in shown.current_for) or "no flow"),
        ("takes over from", ", ".join(shown.compatible_with) or "no other release"),
        ("live runs", ", ".join(f"{count} {status}" for status, count in sorted(shown.live.items())) or "none"),
        ("offered by", ", ".join(shown.workers) or "no live worker"),
        ("registered", f"{words.moment(shown.at)} by {shown.by or 'nobody named'}"),
        *([("note", shown.note)] if shown.note else []),
    ]
    width = max(len(label) for label, _ in facts)
    lines = "\n".join(f"{label.capitalize().ljust(width)}  {visible.plain(text)}" for label, text in facts)
    parts = [(part, entry, digest) for part in PARTS for entry, digest in mine[part].items()]
    text = f"{lines}\n\n{words.table(('part', 'name', 'digest'), parts, whole=('digest',))}"
    return Output({**_data(shown), **mine}, text)


def _register(*, file: str, by: str | None, database: str | None, **_: Any) -> Output:
    wanted = _wanted(file)
    known = Release.objects.using(identify.alias(database)).filter(name=check_name(wanted["name"])).exists()
    made = releases.register(**wanted, by=_user(by, database), using=database)
    data = {"name": made.name, "digest": made.digest, "registered": not known}
    return Output(data, made.name, ["was registered already" if known else "registered"])


def _wanted(file: str) -> dict[str, Any]:
    value = given.from_file(file, file)
    if not isinstance(value, Mapping) or "name" not in value:
        raise CommandError(f'{file} must hold an object with a name: {{"name": "R18", "models": {{…}}}}.', returncode=WRONG_USAGE)
    unknown = sorted(set(value) - set(KEYS))
    if unknown:
        text = f"{file} holds {', '.join(unknown)}, which a release has not. It has {', '.join(KEYS)}."
        raise CommandError(visible.plain(text), returncode=WRONG_USAGE)
    return dict(value)


def _current(
    *, name: str | None, flow: str | None, none: bool, reason: str, by: str | None, database: str | None, **_: Any
) -> Output:
    if name is None and not none:
        rows = [
            (one.flow_name or ANY, one.release, one.since, one.by_label, one.reason)
            for one in releases.currents(identify.alias(database))
            if flow is None or one.flow_name in (flow, "")
        ]
        titles = ("flow", "release", "since", "by", "reason")
        says = f"{len(rows)} shown" if rows else "no release is current: new runs are pinned to none"
        return Output([dict(zip(titles, row, strict=True)) for row in rows], words.table(titles, rows), [says])
    if name is not None and none:
        raise CommandError("Name a release, or say --none: not both.", returncode=WRONG_USAGE)
    changed = releases.make_current(name, flow=flow, by=_user(by, database), reason=reason, using=database)
    says = "new runs get it; runs that are pinned do on their next wake-up what their flow's on_release says"
    return Output({"flow": flow or ANY, "release": name, "changed": changed}, "changed" if changed else "already", [says])


def _move(
    *,
    id: str | None,
    source: str | None,
    flow: str | None,
    to: str,
    reason: str,
    dry_run: bool,
    by: str | None,
    database: str | None,
    **_: Any,
) -> Output:
    if (id is None) == (source is None):
        raise CommandError("Name one run, or say --from RELEASE for all that are pinned to it.", returncode=WRONG_USAGE)
    if id is not None and (flow is not None or dry_run):
        raise CommandError("--flow and --dry-run are for many runs: leave the ID away, and say --from.", returncode=WRONG_USAGE)
    who = _user(by, database)
    if id is not None:
        found = [releases.move(find.workflow(id, database), to=to, by=who, reason=reason, using=database)]
    else:
        many = {"to": to, "source": source, "flow": flow, "by": who, "dry_run": dry_run, "using": database}
        found = list(releases.move_all(**many, reason="a dry run" if dry_run and not reason else reason))
    titles = ("id", "flow", "result", "status", "from", "to", "compatible")
    words_of = WOULD if dry_run else {}
    became = {one.id: words_of.get(one.code, one.code.value) for one in found}
    rows = [(one.id, one.flow, became[one.id], one.status, one.source, one.target, _yes(one)) for one in found]
    left = [one for one in found if one.code in (Code.BUSY, Code.TOO_LATE)]
    return Output(
        [{**dataclasses.asdict(one), "code": became[one.id], "says": one.sentence} for one in found],
        words.table(titles, rows),
        [_summary(found, dry_run=dry_run)],
        f"{len(left)} could not be moved: {left[0].sentence}" if left and not dry_run else "",
    )


def _summary(found: Sequence[Moved], *, dry_run: bool) -> str:
    """How many were moved, or would be; those that keep their own release beside the current one were not."""
    moved, kept = (sum(one.code is code for one in found) for code in (Code.MOVED, Code.KEPT))
    keeps = (
        (" would keep its own" if dry_run else " keeps its own")
        if kept == 1
        else (" would keep" if dry_run else " keep") + " their own"
    )
    return f"{moved} of {len(found)} {'would be moved' if dry_run else 'moved'}" + (f"; {kept}{keeps}" if kept else "")


def _yes(one: Moved) -> str:
    return "yes" if one.compatible else "no"


def _data(one: Shown) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "runs": one.runs, "state": one.state}


def _user(name: str | None, using: str | None) -> Any:
    """The user who asks, if one is named.

    Raises:
        CommandError: there is none, or they may not.
    """
    return find.permitted(name, PERMISSION, using) if name else None
