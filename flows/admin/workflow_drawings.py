"""The pictures of a run: its life as a time line, and its flow as a graph that says where it is. SVG text of ours, no script, no style."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from flows import registry
from flows.core import graph, timeline
from flows.core.stillness import in_words
from flows.models import Workflow
from flows.store import arrows_shown

MAX_TOTALS = 30


def section(obj: Workflow, using: str) -> dict[str, Any]:
    """What the templates print."""
    arrows, now = arrows_shown.arrows(obj.pk, using)
    spans = timeline.spans(arrows, now)
    return {
        "life": _safe(timeline.draw(spans, _("How this run has spent its time"), _moment)),
        "life_cut": len(arrows) == arrows_shown.MOST,
        "totals": [
            {"lane": one.lane, "node": one.node, "times": one.times, "spent": in_words(one.seconds)}
            for one in timeline.totals(spans)[:MAX_TOTALS]
        ],
        "graph": _graph(obj, arrows),
    }


def _graph(obj: Workflow, arrows: list[tuple[float, str, str]]) -> SafeString | str:
    """The flow as it is loaded here; empty where this version is not."""
    definition = registry.definition(obj.flow_name, obj.flow_version)
    if definition is None:
        return ""
    entered = [arrows[0][2]] if arrows else []
    entered += [after[2] for before, after in pairwise(arrows) if after[2] != before[2]]
    return _safe(graph.svg(definition, here=obj.node, visits=Counter(entered)))


def _moment(seconds: float) -> str:
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC)).strftime("%m-%d %H:%M:%S")


def _safe(drawn: str) -> SafeString:
    """A drawing, in which every text is escaped by `drawing.xml`."""
    return mark_safe(drawn)  # noqa: S308
