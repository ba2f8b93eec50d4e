"""Mistakes of schedules that are declared beside the flows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from flows.core.lint.problem import Problem, problem
from flows.core.schedules.declared import Schedule
from flows.core.schedules.faults import NO_FLOW, UNREADABLE, faults

HINTS = {
    UNREADABLE: 'Write cron="0 9 * * MON-FRI", every=minutes(15), at=datetime(…) or rule="RRULE:…".',
    NO_FLOW: "An input is a JSON object, as that of Flow.start.",
}


def problems(schedules: Iterable[Schedule], flows: Collection[str]) -> Iterator[Problem]:
    """Everything that is wrong with them. `flows`: the names of those that are declared."""
    for one in schedules:
        for code, message in faults(one):
            yield problem(code, one.name, message, HINTS.get(code, "Take one of those that are named, as text or from `flows`."))
        if one.flow_name not in flows:
            hint = f"Known are {', '.join(sorted(flows)[:10])}." if flows else "No flow is declared."
            yield problem(NO_FLOW, one.name, f"{one.label}: there is no flow {one.flow_name!r:.80}.", hint)
        if not one.user:
            message = f"{one.label}: nobody is accountable for its runs: they have no rights, and nobody is told of them."
            yield problem("W004", one.name, message, 'Name a user: user="rita".')
