"""manage.py flows: look at runs and act on them. Words go to stderr, data to stdout."""

from __future__ import annotations

import dataclasses
import functools
from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError, connections

from flows import registry
from flows.core import visible
from flows.core.definition import Flow
from flows.core.errors import DefinitionError, OutlastError
from flows.core.protocol import Status
from flows.management import MODULES, decisions, find, given, graphs, intents, operations, releases, rules, turns, versions, words
from flows.management.verbs import Report, Verb
from flows.services import control, describe, identify, invariants, preview, redacting
from flows.services.control import Answer, Controlled
from flows.services.events import Reception, signal
from flows.services.migrate import migrate_many
from flows.services.start import start
from flows.store import faults

EPILOG = (
    "Exit codes: 0 done (or it was so already); 1 refused, not found, or differences found; 2 wrong usage. "
    "ID is a workflow's id, a beginning of it that only one id has (4 characters or more), or FLOW:KEY. "
    "Data goes to stdout (one JSON document with --json), words go to stderr."
)
WRONG_USAGE = 2


class Command(BaseCommand):
    """The operator's view of the record; every verb calls the same use case as the admin and the API."""

    help = "Look at workflows and act on them."
    requires_system_checks = []  # a mistake in one flow must not keep an operator from the others

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, epilog=EPILOG, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def verb(name: str, summary: str, *, identified: bool = False) -> ArgumentParser:
            made: ArgumentParser = subparsers.add_parser(name, help=summary, description=summary, epilog=EPILOG)
            made.add_argument("--json", action="store_true", help="print one JSON document")
            made.add_argument(
                "--as", dest="viewer", metavar="USERNAME", help=f"whoever looks; {redacting.PERMISSION} shows all of values"
            )
            made.add_argument("--database", metavar="ALIAS", help="the database alias that holds the record")
            if identified:
                made.add_argument("id", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY")
            return made

        listing = verb("list", "List runs, newest first.")
        listing.add_argument("--flow", metavar="NAME")
        listing.add_argument("--status", choices=[status.value for status in Status])
        listing.add_argument("--key", metavar="KEY")
        listing.add_argument("--limit", type=given.positive, default=50, metavar="N")
        verb("show", "Where a run is, what it waits for, and how it came there.", identified=True)
        _add_start(verb("start", "Start a run, or get the one that has the key."))
        event = verb("signal", "Deliver an event.")
        event.add_argument("event_id", metavar="EVENT_ID", help="the sender's stable id; it is consumed once")
        event.add_argument("type", metavar="TYPE")
        event.add_argument("--key", required=True, metavar="KEY")
        event.add_argument("--payload", default="{}", metavar="JSON", help="a JSON object, or - to read it from stdin")
        for name, summary in CONTROLS.items():
            _add_control(verb(name, summary, identified=True), name)
        moving = verb("migrate", "Take runs to a newer version of their flow, as its migrate_from says.")
        versions.add_migrate(moving)
        moving.add_argument("--from", type=given.positive, dest="source", metavar="VERSION", help="only runs of this version")
        moving.add_argument("--to", type=given.positive, metavar="VERSION", help="default: the newest that can be reached")
        effects = verb("operations", "List effects, of all runs or one: the newest, or with --uncertain the longest in doubt.")
        operations.add_operations(effects)
        effects.add_argument("--limit", type=given.positive, default=50, metavar="N")
        operations.add_resolve(verb("resolve", "Say what became of an effect of which nobody knows whether it happened."))
        rules.add_policy(verb("policy", "List policies, publish one, or adopt the newest version for a run."))
        rules.add_competence(verb("competence", "List competence envelopes, or open a closed one again."))
        graphs.add(verb("graph", "Draw a flow."))
        intents.add_supersede(
            verb("supersede", "Give the intent of a run a new goal: every live run of the old one ends.", identified=True)
        )
        verb("preview", "What a supersede of a run's intent would end, undo and give back; nothing is changed.", identified=True)
        verb("verify", "Compare log and row of one run, or of all; of all, look for what breaks an invariant, too.").add_argument(
            "id", nargs="?", metavar="ID"
        )
        verb("definitions", "List the flows that this process knows.")
        releases.add(
            verb("releases", "Behavioural releases: what runs work under, who offers it, and moves between them."), EPILOG
        )
        self._owners: dict[str, Any] = {}
        for name in MODULES:
            module = import_module(f"flows.management.{name}")
            module.add(self._owned(module, verb))

    def _owned(self, module: Any, verb: Verb) -> Verb:
        """The same, and that the verb is this module's."""

        def made(name: str, summary: str, *, identified: bool = False) -> ArgumentParser:
            self._owners[name] = module
            return verb(name, summary, identified=identified)

        return made

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        given.check_texts(options)
        alias = options.get("database")
        if alias is not None and alias not in connections.settings:
            raise CommandError(f"There is no database {alias!r} in DATABASES.", returncode=WRONG_USAGE)
        viewer = find.user(options.pop("viewer", None), alias)
        owner = self._owners.get(verb)
        action: Callable[..., None] = (
            getattr(self, f"do_{verb}") if owner is None else functools.partial(self._report, functools.partial(owner.do, verb))
        )
        try:
            with redacting.looking(viewer):
                action(**options)
        except OutlastError as error:
            raise CommandError(visible.plain(str(error))) from error
        except OperationalError as error:
            raise CommandError(visible.plain(f"The database does not answer: {error}")) from error
        except ProgrammingError as error:
            if not faults.is_unmigrated(error):
                raise
            said = faults.sentence(error, identify.alias(alias))
            raise CommandError(visible.plain(f"{said[0].upper()}{said[1:]}.")) from error

    def _report(self, do: Callable[..., Report], **options: Any) -> None:
        """What a module gives back."""
        found = do(**options)
        self._put(found.data, found.text, options)
        for line in found.said.splitlines():
            self._say(visible.plain(line))
        if found.wrong:
            raise CommandError(found.wrong)

    # ------------------------------------------------------------------ looking

    def do_list(self, *, flow: str | None, status: str | None, key: str | None, limit: int, **options: Any) -> None:
        """One line a run."""
        titles = ("id", "flow", "key", "status", "outcome", "node", "code", "updated")
        rows = [
            (
                row.pk,
                f"{row.flow_name}@{row.flow_version}",
                row.key,
                row.status,
                row.outcome,
                row.node,
                row.error_code,
                row.updated_at,
            )
            for row in describe.list_workflows(flow=flow, status=status, key=key, limit=limit, using=options["database"])
        ]
        self._put([dict(zip(titles, row, strict=True)) for row in rows], words.table(titles, rows), options)
        self._shown(len(rows), limit)

    def do_show(self, *, id: str, **options: Any) -> None:
        """The five answers of a run, its timeline, and what it did outside."""
        using = options["database"]
        found = describe.describe(find.workflow(id, using), using=using)
        found = dataclasses.replace(found, result=redacting.shown("result", found.result))
        rows = list(operations.of(found.id, using))
        made = decisions.of(found.id, using)
        calls = turns.of(found.id, using)
        parts = (words.description(found), operations.of_run(rows), decisions.as_table(made), turns.as_table(calls))
        data = {**dataclasses.asdict(found), "operations": operations.as_data(rows), "candidates": made, "agent_turns": calls}
        self._put(data, "\n\n".join(part for part in parts if part), options)

    def do_policy(self, **options: Any) -> None:
        """Policies: listed, published, adopted."""
        self._listed(*rules.policy(**options), options)

    def do_competence(self, **options: Any) -> None:
        """Competence envelopes: listed, opened again."""
        self._listed(*rules.envelopes(**options), options)

    def do_operations(self, *, uncertain: bool, workflow: str | None, limit: int, **options: Any) -> None:
        """One line an effect."""
        using = options["database"]
        wanted = find.workflow(workflow, using) if workflow is not None else None
        rows = list(operations.of(wanted, using, uncertain=uncertain)[:limit])
        self._put(operations.as_data(rows), operations.as_table(rows), options)
        self._shown(len(rows), limit)

    def do_definitions(self, **options: Any) -> None:
        """One line a flow and version."""
        titles = ("name", "version", "fingerprint", "start", "nodes", "class")
        rows = [_defined(flow) for _, flow in sorted(registry.known().items(), key=lambda item: (str(item[0]), item[0][0]))]
        self._put([dict(zip(titles, row, strict=True)) for row in rows], words.table(titles, rows), options)

    def do_verify(self, *, id: str | None, **options: Any) -> None:
        """Differences between log and row; none is good."""
        using = options["database"]
        wanted = find.workflow(id, using) if id is not None else None
        checked, rows = 0, []
        for row_id, differences in describe.verify(wanted, using=using):
            checked += 1
            rows += [(row_id, one.field, one.log, one.row) for one in differences]
        titles = ("id", "field", "log", "row")
        broken = invariants.scan(using=using) if wanted is None else []
        found = {"checked": checked, "differences": [dict(zip(titles, row, strict=True)) for row in rows]}
        if wanted is None:
            found["broken"] = [dataclasses.asdict(one) for one in broken]
        listed = words.table(("id", "invariant", "what"), [(one.workflow, one.invariant, one.what) for one in broken])
        self._put(found, "\n\n".join(part for part in (words.table(titles, rows), listed if broken else "") if part), options)
        breaking = f", {len(broken)} break an invariant" if wanted is None else ""
        self._say(f"{checked} checked, {len(rows)} differences{breaking}")
        if rows or broken:
            raise CommandError("Log and row differ." if rows else "The record breaks an invariant.")

    def do_preview(self, *, id: str, **options: Any) -> None:
        """What the end of a run's goal means for every live run of it."""
        using = options["database"]
        endings = preview.preview(identify.get(find.workflow(id, using), using).intent_id, using=using)
        self._put([dataclasses.asdict(one) for one in endings], intents.as_table(endings), options)
        self._say(f"{len(endings)} live {'run' if len(endings) == 1 else 'runs'} would end")

    def do_graph(self, *, name: str, flow_version: int | None, format: str, output: str, **options: Any) -> None:
        """The picture of a flow, in text."""
        text = graphs.drawn(name, flow_version, "json" if options["json"] else format)
        if output == "-":
            self.stdout.write(text.rstrip("\n"))
            return
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}.") from error
        self._say(f"written to {output}")

    # ------------------------------------------------------------------ acting

    def do_start(
        self, *, name: str, input: str, key: str | None, by: str | None, goal: str, priority: int, **options: Any
    ) -> None:
        """Start, idempotent by key; prints the id."""
        using = options["database"]
        flow = registry.flow(name, options["flow_version"])
        made = start(flow, _object(input, "--input"), key=key, by=find.user(by, using), goal=goal, priority=priority, using=using)
        self._put(made, str(made.id), options)
        self._say("started" if made.created else f"exists already, {made.status}")

    def do_signal(self, *, event_id: str, type: str, key: str, payload: str, **options: Any) -> None:
        """Deliver an event, idempotent by its id; prints what became of it."""
        found = signal(event_id, type, key=key, payload=_object(payload, "--payload"), using=options["database"])
        self._put(found, found.answer.value, options)
        if found.answer is Reception.CONFLICT:
            raise CommandError(f"Event {visible.plain(event_id)} is known with another payload; it was kept apart.")
        self._say(f"{len(found.woken)} woken")

    def do_resolve(self, *, by: str, **options: Any) -> None:
        """Say what became of an operation; prints what became of the verdict."""
        names = ("operation", "verdict", "reason", "external_id", "evidence", "seen")
        using = options["database"]
        found = operations.give(**{name: options[name] for name in names}, user=find.user(by, using), using=using)
        self._put(found, found.code.value, options)
        if not found:
            raise CommandError(found.sentence)
        self._say(found.sentence)

    def do_migrate(self, *, ids: list[str], flow: str | None, source: int | None, to: int | None, **options: Any) -> None:
        """Migrate runs, each by itself; prints what became of each."""
        using = options["database"]
        runs = versions.chosen(ids, flow, source, to, using)
        wish = {"by": find.user(options["by"], using), "reason": options["reason"], "dry_run": options["dry_run"]}
        found = list(migrate_many(runs, to=to, using=using, **wish))
        self._put(found, versions.as_table(found), options)
        if problem := versions.complaint(found):
            raise CommandError(f"{versions.summary(found)}. {problem}")
        self._say(versions.summary(found))

    def do_releases(self, **options: Any) -> None:
        """List, show and register releases, make one current, move runs."""
        found = releases.do(**options)
        self._put(found.data, found.text, options)
        for line in found.says:
            self._say(visible.plain(line))
        if found.refused:
            raise CommandError(found.refused)

    def do_supersede(self, *, input: str | None, **options: Any) -> None:
        """A new goal; prints what became of it."""
        names, using = ("id", "goal", "reason", "by", "flow", "key"), options["database"]
        value = None if input is None else _object(input, "--input")
        found = intents.give(**{name: options[name] for name in names}, input=value, using=using)
        self._put(found, found.answer.value, options)
        self._say(intents.said(found, using))

    def do_cancel(self, **options: Any) -> None:
        """Cancel a run."""
        self._control(control.cancel, **options)

    def do_pause(self, **options: Any) -> None:
        """Hold a run."""
        self._control(control.pause, **options)

    def do_resume(self, **options: Any) -> None:
        """Let a run go on."""
        self._control(functools.partial(control.resume, at=options.pop("at")), **options)

    def _control(
        self, act: Callable[..., Controlled], *, id: str, reason: str, by: str | None, seen: str | None, **options: Any
    ) -> None:
        using = options["database"]
        found = act(find.workflow(id, using), reason=reason, by=find.user(by, using), seen=seen, using=using)
        self._put(found, found.answer.value, options)
        if found.answer is Answer.TOO_LATE:
            raise CommandError(f"Too late: the run is {found.status}.")
        if found.answer is Answer.MOVED:
            raise CommandError(f"It has moved: the run is {found.status}. Nothing was changed; look again (flows show).")
        self._say(f"the run is {found.status}")

    def _put(self, value: Any, text: str, options: dict[str, Any]) -> None:
        """Data, for a program or a person."""
        if options["json"]:
            self.stdout.write(words.as_json(value))
        elif text:
            self.stdout.write(text)

    def _listed(self, value: Any, text: str, options: dict[str, Any]) -> None:
        self._put(value, text, options)
        if isinstance(value, list):
            self._say(f"{len(value)} shown")

    def _shown(self, count: int, limit: int) -> None:
        self._say(f"{count} shown{'; there may be more (--limit)' if count == limit else ''}")

    def _say(self, text: str) -> None:
        """Words, which are no data."""
        self.stderr.write(text, str)


#: Verbs that move one run.
CONTROLS = {
    "cancel": "Cancel a run. Twice is once.",
    "pause": "Hold a run; what is running now is finished first.",
    "resume": "Let a paused or suspended run go on.",
}


def _add_control(parser: ArgumentParser, name: str) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT")
    parser.add_argument("--by", metavar="USERNAME")
    parser.add_argument("--seen", metavar="STATE", help="refuse if it has moved since `flows show --json` printed this")
    if name == "resume":
        at = "where a run goes on that a gate has suspended: a node that its gate stands on is done anew"
        parser.add_argument("--at", metavar="NODE", help=at)


def _add_start(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--input", required=True, metavar="JSON", help="a JSON object, or - to read it from stdin")
    parser.add_argument("--key", metavar="KEY", help="names this run for ever; again the same run")
    parser.add_argument("--by", metavar="USERNAME", help="the accountable user")
    parser.add_argument("--goal", default="", metavar="TEXT", help="what is wanted, in words")
    parser.add_argument("--priority", type=int, default=0, metavar="N", help="higher is sooner")
    parser.add_argument("--flow-version", type=given.positive, metavar="N", help="default: the newest")


def _object(text: str, option: str) -> dict[str, Any]:
    value = given.parsed(text, option)
    if not isinstance(value, dict):
        raise CommandError(f'{option} must be a JSON object: {{"name": "value"}}.', returncode=WRONG_USAGE)
    return value


def _defined(flow: type[Flow]) -> tuple[Any, ...]:
    definition = flow.definition
    try:
        fingerprint = definition.fingerprint
    except (DefinitionError, AttributeError, TypeError):
        fingerprint = "faulty: see manage.py check"
    return (
        definition.name,
        definition.version,
        fingerprint,
        next(iter(definition.nodes), ""),
        len(definition.nodes),
        definition.where,
    )
