"""What the list of runs is narrowed by: by error, by age, by what a run waits for; and the counts over it.

Nothing here reads the whole past. What no index finds is looked for among the newest `LOOKED_THROUGH` runs, and the list says so.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat

from flows.core.protocol import SUSPENDING, Status, WaitStatus
from flows.models import Wait, Workflow

LOOKED_THROUGH = 20_000
#: Of the runs that wait for something, so many of the newest are listed.
WAITING = 5_000
#: Between the clocks of the hosts, whose milliseconds the ids begin with, and the database's.
SLACK = timedelta(hours=1)
#: The codes that are offered are those of so many of the newest failed runs, and of so many that stand still.
CODES_OF = 500


def codes(using: str) -> list[str]:
    """Error codes of runs that failed lately or stand still now."""
    rows = Workflow.objects.using(using).values_list("error_code", flat=True)
    failed = rows.filter(status=Status.FAILED.value).order_by("-pk")[:CODES_OF]
    waits = Wait.objects.filter(status=WaitStatus.OPEN.value, kind__in=sorted(SUSPENDING)).order_by()
    stopped = rows.filter(pk__in=waits.values("workflow_id")[:CODES_OF])
    return sorted({code for code in failed.union(stopped, all=True) if code})


def waiting_for(rows: QuerySet[Workflow], kind: str) -> QuerySet[Workflow]:
    """Those with an open wait of that kind: the newest `WAITING`, so that they are found from their waits and not the other way round."""
    waits = Wait.objects.filter(status=WaitStatus.OPEN.value, kind=kind).order_by("-workflow_id")
    return rows.filter(pk__in=waits.values("workflow_id")[:WAITING])


def of_flow(rows: QuerySet[Workflow], name: str) -> QuerySet[Workflow]:
    """Those of that flow. By an expression, so that the index of its keys, the whole past of the flow, is not read for the newest few."""
    return rows.annotate(of_flow=Concat(F("flow_name"), Value("", TextField()))).filter(of_flow=name)


def younger(rows: QuerySet[Workflow], age: timedelta) -> QuerySet[Workflow]:
    """Those that were started since."""
    return rows.filter(pk__gte=_id_at(age + SLACK), created_at__gte=_ago(age))


def older(rows: QuerySet[Workflow], age: timedelta) -> QuerySet[Workflow]:
    """Those that were started before."""
    return rows.filter(pk__lt=_id_at(age - SLACK), created_at__lt=_ago(age))


def newest(rows: QuerySet[Workflow], using: str, age: timedelta | None = None) -> QuerySet[Workflow]:
    """Of them, those among the newest `LOOKED_THROUGH` runs; with an age, among the newest of those that were started before."""
    ids = Workflow.objects.using(using).order_by("-pk").values_list("pk", flat=True)
    if age is not None:
        ids = ids.filter(pk__lt=_id_at(age - SLACK))
    bound: Any = next(iter(ids[LOOKED_THROUGH : LOOKED_THROUGH + 1]), None)
    return rows if bound is None else rows.filter(pk__gt=bound)


def _ago(age: timedelta) -> Any:
    return RawSQL("flows_now() - %s", [age])


def _id_at(age: timedelta) -> UUID:
    """The lowest id that a run may have which was started so long ago: ids begin with the milliseconds of the start, on the host's clock."""
    return UUID(int=max(int((time.time() - age.total_seconds()) * 1000), 0) << 80)
