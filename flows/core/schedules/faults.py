"""What is wrong with a schedule, each with the id of its check; whoever stores one refuses it for the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from flows.core import payload
from flows.core.errors import DefinitionError, PayloadError
from flows.core.schedules import zones
from flows.core.schedules.declared import Schedule
from flows.core.schedules.kinds import read, word
from flows.core.schedules.local import NotInstalled
from flows.core.schedules.words import Compute, Missed, Missing, Overlap, Repeated
from flows.core.spans import LONGEST

#: The keys of its runs begin with it and end in a moment.
MAX_NAME = 120
MAX_PRIORITY = 32767

UNREADABLE, NO_FLOW, UNKNOWN_WORD = "E084", "E085", "E086"


def faults(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """(id, what is wrong and how it is written), but for its flow."""
    if len(schedule.name) > MAX_NAME:
        yield UNREADABLE, f"{schedule.label}: a name of at most {MAX_NAME} characters; the keys of its runs begin with it."
    for option in ("window", "cooldown", "jitter"):
        span: timedelta | None = getattr(schedule, option)
        if span is not None and not timedelta(0) < span <= LONGEST:
            yield UNREADABLE, f"{schedule.label}: {option}={span} is no span. Write {option}=minutes(5), or leave it away."
    if schedule.cap < 1:
        yield UNREADABLE, f"{schedule.label}: cap={schedule.cap} lets nothing be made up for; that is missed=Missed.SKIP."
    if abs(schedule.priority) > MAX_PRIORITY:
        yield UNREADABLE, f"{schedule.label}: priority={schedule.priority} is beyond {MAX_PRIORITY}."
    try:
        payload.encode(dict(schedule.input), f"the input of {schedule.label}")
    except PayloadError as error:
        yield NO_FLOW, str(error)
    wrong = list(_of_words(schedule))
    yield from wrong
    try:
        zones.zone(schedule.zone)
    except DefinitionError as error:
        yield UNKNOWN_WORD, f"{schedule.label}: {error}"
        return
    if wrong:
        return
    try:
        read(schedule.spec)
    except NotInstalled:  # a check of the packages says so
        return
    except DefinitionError as error:
        yield UNREADABLE, f"{schedule.label}: {error}"


def _of_words(schedule: Schedule) -> Iterator[tuple[str, str]]:
    for of, option in (
        (Missed, "missed"),
        (Overlap, "overlap"),
        (Compute, "compute"),
        (Repeated, "repeated"),
        (Missing, "missing"),
    ):
        given = getattr(schedule, option)
        if not given and option in ("repeated", "missing"):
            continue
        try:
            word(of, given, option)
        except DefinitionError as error:
            yield UNKNOWN_WORD, f"{schedule.label}: {error}"
