"""What flows name and nobody has made in this database: policies, groups, permissions. A flow works before they are there; a slip of the pen
would let it go unheard.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from flows import registry
from flows.conf import DEFAULTS, conf
from flows.core.definition import Definition
from flows.core.lint import deadlines
from flows.core.lint.view import View
from flows.core.nodes import Approval, Ask
from flows.core.requirements import Gate
from flows.core.schedules.declared import Schedule
from flows.models import Calendar, Policy

POLICY, PERSON, CALENDAR = "policy", "person", "calendar"


@dataclass(frozen=True, slots=True)
class Missing:
    """One name that stands for nothing here. `where`: who names it; `kind`: POLICY, PERSON or CALENDAR."""

    kind: str
    name: str
    where: str
    message: str
    hint: str


def findings(definitions: Iterable[Definition], using: str) -> list[Missing]:
    """Every name of these flows, and of the settings, that stands for nothing in this database."""
    loaded = list(definitions)
    found = [*policies(loaded, using), *calendars(loaded, using)]
    if apps.is_installed("django.contrib.auth"):
        found += _people(loaded, using)
    return found


def policies(definitions: Iterable[Definition], using: str) -> Iterator[Missing]:
    """The policies that flows name and nobody has published: no change of what is meant ever stops their runs."""
    known = set(Policy.objects.using(using).values_list("name", flat=True).distinct())
    for one in definitions:
        named: Any = one.policy  # what is no text has an error of its own
        if isinstance(named, str) and named and named not in known:
            message = (
                f"Meta.policy of {one.name} is {one.policy!r}, of which nothing is published: its runs are bound to version 0."
            )
            hint = _near(one.policy, known) or f"manage.py flows policy publish {one.policy} …, or correct the name."
            yield Missing(POLICY, one.policy, one.where, message, hint)


def calendars(definitions: Iterable[Definition], using: str) -> Iterator[Missing]:
    """The calendars by which flows count and that nobody has published: whatever counts by one of them cannot go on."""
    known = set(Calendar.objects.using(using).values_list("name", flat=True).distinct())
    for schedule in registry.declared(Schedule).values():
        if schedule.calendar and schedule.calendar not in known:
            hint = (
                _near(schedule.calendar, known)
                or f"manage.py flows calendars publish {schedule.calendar} …, or correct the name."
            )
            message = f"Schedule {schedule.name!r} goes by the calendar {schedule.calendar!r}, and nobody has published it."
            yield Missing(CALENDAR, schedule.calendar, schedule.name, message, hint)
    for one in definitions:
        counted = {deadline.calendar for _, _, _, deadline in deadlines.all_of(View(one)) if deadline.business is not None}
        for name in sorted((counted | one.calendars) - known - {""}):
            hint = _near(name, known) or f"manage.py flows calendars publish {name} …, or correct the name."
            message = f"{one.name} counts by the calendar {name!r}, and nobody has published it."
            yield Missing(CALENDAR, name, one.where, message, hint)


def _people(definitions: Iterable[Definition], using: str) -> Iterator[Missing]:
    from django.contrib.auth.models import Group, Permission

    groups = set(Group.objects.using(using).values_list("name", flat=True))
    permissions = {
        f"{app}.{codename}"
        for app, codename in Permission.objects.using(using).values_list("content_type__app_label", "codename")
    }
    for where, what, name in [*(one for definition in definitions for one in _named(definition)), *_escalated()]:
        permission = what in ("authority", "permission") or ("." in name and what != "role")
        known = permissions if permission else groups
        if name not in known:
            kind = "permission" if permission else "group"
            message = f"{where}: {what} is {name!r}, and there is no {kind} of that name in database {using!r}."
            made = (
                "Declare it in Meta.permissions of a model, and migrate"
                if permission
                else "Make the group, and put people into it"
            )
            yield Missing(PERSON, name, where, message, _near(name, known) or f"{made}; or correct the name.")


def _named(definition: Definition) -> Iterator[tuple[str, str, str]]:
    """(where, option, name) of every group and permission in a definition that is sound enough to say so."""
    view = View(definition)
    for name, node in view.nodes.items():
        where = f"{definition.name}, node {name!r}"
        if isinstance(node, Approval | Ask):
            for asked in (*node.ladder, *node.escalation):
                yield from ((where, what, named) for what in ("role", "permission") if (named := getattr(asked, what)))
        if isinstance(node.gate, Gate) and DEFAULTS["AUTHORITY"] == conf.AUTHORITY:
            yield from ((where, "authority", permission) for permission in node.gate.authority)
    for _, what, node_name, deadline in deadlines.all_of(view):
        where = definition.name if node_name else f"{definition.name}, {what}"
        yield from ((f"{where}{f', {what}' if node_name else ''}", "escalate_to", person) for person in deadline.escalate_to)


def _escalated() -> Iterator[tuple[str, str, str]]:
    yield from (("settings.OUTLAST", "ESCALATE_TO", name) for name in conf.ESCALATE_TO)


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"Did you mean {near[0]!r}?" if near else ""
