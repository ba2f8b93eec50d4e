"""The verb `replay`: which recorded workflows are meant, and what was found, as data and in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.utils.module_loading import import_string

from flows import registry
from flows.core import visible
from flows.core.definition import Flow
from flows.core.history import Drift, Step
from flows.management import find, given, words
from flows.management.verbs import Report, Verb
from flows.models import Workflow
from flows.services import identify
from flows.services.foresee import Forecast, foresee
from flows.services.replay import Replayed, replay

WRONG_USAGE = 2


def add(verb: Verb) -> None:
    """The verb: which workflows, and under which definition."""
    parser = verb("replay", "Put recorded runs through the engine once more: do they arrive where the record says?")
    parser.add_argument("ids", nargs="*", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY; several are allowed")
    parser.add_argument("--flow", metavar="NAME", help="all runs of that flow, with or without --all")
    parser.add_argument("--all", action="store_true", help="all runs there are")
    parser.add_argument("--live", action="store_true", help="of those, the ones that have not ended")
    parser.add_argument(
        "--against",
        metavar="VERSION|CLASS",
        help="would they go on under that version of the flow, or that class (app.flows.Class)?",
    )


def do(_verb: str, *, database: str | None, **options: Any) -> Report:
    """Where record and replay part, or which runs another definition would break; none is good."""
    names = ("ids", "flow", "live", "against")
    return report(**{name: options[name] for name in names}, everything=options["all"], using=database)


def report(*, ids: list[str], flow: str | None, everything: bool, live: bool, against: str | None, using: str | None) -> Report:
    """Replay what is meant.

    Raises:
        CommandError: nothing is named, or runs and flows are. UnknownFlow, UnknownWorkflow: it does not exist.
    """
    if (ids and (flow or everything)) or not (ids or flow or everything or (against and not against.isdecimal())):
        raise CommandError("Say which runs: ID…, --flow NAME or --all.", returncode=WRONG_USAGE)
    wanted = [find.workflow(one, using) for one in ids] if ids else None
    if against is not None:
        return _foreseen(_target(against, flow, wanted, using), wanted, live=live, using=using)
    if flow and not Workflow.objects.using(identify.alias(using)).filter(flow_name=flow).exists():
        registry.flow(flow)  # of a flow that is known there need not be a run
    if wanted is not None and live:
        raise CommandError("--live narrows --flow and --all down; an ID names its run already.", returncode=WRONG_USAGE)
    found = replay(wanted, flow=flow, live=live, keep_steps=bool(wanted), using=using)
    return _replayed(found, named=wanted is not None)


def _replayed(found: Iterable[Replayed], *, named: bool) -> Report:
    checked = arrows = decided = unjudged = 0
    drifting: list[Replayed] = []
    unknown: list[Replayed] = []
    listed: list[Replayed] = []
    for one in found:
        checked, arrows, decided = checked + 1, arrows + one.arrows, decided + one.decided
        unjudged += one.unjudged
        drifting += [one] if one.drift is not None else []
        unknown += [one] if one.unknown else []
        listed += [one] if named else []
    data: dict[str, Any] = {
        "checked": checked,
        "arrows": arrows,
        "decided": decided,
        "not_judged": unjudged,
        "differences": [{**_whose(one), **_drift(one.drift)} for one in drifting if one.drift is not None],
        "unknown": [{**_whose(one), "why": one.unknown} for one in unknown],
    }
    if named:
        data["workflows"] = [{**_whose(one), "same": bool(one), "steps": [_step(step) for step in one.steps]} for one in listed]
    said = f"{checked} replayed, {decided} of {arrows} arrows decided again: {len(drifting)} differ"
    if unjudged:
        said += f"; {unjudged} arrows were decided under a version that is not known here, and not judged"
    if unknown:
        said += f", {len(unknown)} could not be replayed"
    return Report(data, _as_text(drifting, unknown, listed), said, _wrong(drifting, unknown))


def _wrong(drifting: list[Replayed], unknown: list[Replayed]) -> str:
    if drifting:
        return "Record and replay differ."
    return "Not all of it could be replayed." if unknown else ""


def _as_text(drifting: list[Replayed], unknown: list[Replayed], listed: list[Replayed]) -> str:
    parts = [words.table(("#", "because", "how", "from", "to", "node", "difference"), _rows(one)) for one in listed if one.steps]
    if drifting:
        titles = ("id", "flow", "#", "field", "recorded", "replayed")
        rows = [(one.id, _flow(one), *one.drift) for one in drifting if one.drift is not None]
        parts.append(words.table(titles, rows))
    if unknown:
        parts.append(
            words.table(
                ("id", "flow", "not replayed"), [(one.id, _flow(one), one.unknown) for one in unknown], whole=("not replayed",)
            )
        )
    return "\n\n".join(parts)


def _rows(one: Replayed) -> Iterable[tuple[object, ...]]:
    for step in one.steps:
        logged = step.logged
        if logged is None:
            yield ("", "", "", "", "", "", str(step.drift))
            continue
        because = f"{logged.trigger} {logged.ref}".strip()
        difference = f"{step.drift.field}: {step.drift.replayed}" if step.drift is not None else ""
        yield (logged.seq, because, step.how, logged.from_status or "–", logged.to_status, logged.to_node, difference)


def _foreseen(flow: type[Flow], wanted: list[Any] | None, *, live: bool, using: str | None) -> Report:
    name = f"{flow.definition.name}@{flow.definition.version}"
    checked = 0
    breaking: list[Forecast] = []
    unknown: list[Forecast] = []
    for one in foresee(flow, wanted, live=live, using=using):
        checked += 1
        breaking += [one] if one.problems else []
        unknown += [one] if one.unknown else []
    data = {
        "against": name,
        "class": flow.definition.where,
        "checked": checked,
        "breaking": [
            {**_whose(one), "status": one.status, "node": one.node, "problems": [problem._asdict() for problem in one.problems]}
            for one in breaking
        ],
        "unknown": [{**_whose(one), "why": one.unknown} for one in unknown],
    }
    rows = [(one.id, _flow(one), one.status, one.node, *problem) for one in breaking for problem in one.problems]
    rows += [(one.id, _flow(one), "", "", "unknown", one.unknown) for one in unknown]
    text = words.table(("id", "flow", "status", "node", "what", "why"), rows, whole=("why",))
    said = f"{checked} {'live ' if live else ''}runs against {name}: {len(breaking)} would break"
    if unknown:
        said += f", {len(unknown)} could not be read"
    wrong = "Some would break." if breaking else "Not all of them could be read." if unknown else ""
    return Report(data, text, said, wrong)


def _target(against: str, flow: str | None, wanted: list[Any] | None, using: str | None) -> type[Flow]:
    """The class that is meant by a version or a dotted path, of the one flow that is asked about."""
    names = {flow} if flow else set(_flows_of(wanted, using))
    if against.isdecimal():
        version = given.number(against)
        if version is None:
            raise CommandError(
                f"--against {against[:40]} is no version: those are 1 to {given.MAX_NUMBER}.", returncode=WRONG_USAGE
            )
        if len(names) != 1:
            raise CommandError(f"Version {against} of which flow? Add --flow NAME.", returncode=WRONG_USAGE)
        return registry.flow(names.pop(), version)
    try:
        found = import_string(against)
    except Exception as error:
        why = f"cannot be imported: {type(error).__name__}: {error}"
        raise CommandError(visible.plain(f"{against} {why}"), returncode=WRONG_USAGE) from error
    definition = getattr(found, "definition", None)
    if not isinstance(found, type) or not issubclass(found, Flow) or definition is None:
        raise CommandError(f"{visible.plain(against)} is no Flow class.", returncode=WRONG_USAGE)
    if others := names - {definition.name}:
        raise CommandError(
            f"{visible.plain(against)} is flow {definition.name!r}, and not {visible.plain(', '.join(sorted(others)))}.",
            returncode=WRONG_USAGE,
        )
    return found


def _flows_of(wanted: list[Any] | None, using: str | None) -> list[str]:
    if wanted is None:
        return []
    return list(Workflow.objects.using(identify.alias(using)).filter(pk__in=wanted).values_list("flow_name", flat=True))


def _whose(one: Replayed | Forecast) -> dict[str, Any]:
    return {"id": one.id, "flow": one.flow, "version": one.version, "key": one.key}


def _flow(one: Replayed | Forecast) -> str:
    return f"{one.flow}@{one.version}"


def _drift(drift: Drift) -> dict[str, Any]:
    return {**drift._asdict(), "recorded": _plain(drift.recorded), "replayed": _plain(drift.replayed)}


def _plain(value: Any) -> Any:
    """A value as JSON has it; what a function of the flow made may be anything."""
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)[:500]
    return value


def _step(step: Step) -> dict[str, Any]:
    logged = step.logged
    found: dict[str, Any] = {"how": step.how, "drift": _drift(step.drift) if step.drift is not None else None}
    if logged is not None:
        fields = ("seq", "trigger", "from_status", "to_status", "from_node", "to_node", "outcome", "error_code")
        found = {**{field: getattr(logged, field) for field in fields}, **found}
    return found
