"""The relatives of a run, as its page prints them: who started it, what it goes on as, and its children, counted and a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.admin.workflow_rows import FANS
from flows.core.joins import ENDED
from flows.models import Branch, Fan, Workflow
from flows.services.children import shown
from flows.store.batch import Batch

ROWS = 50
_CHIPS = {"succeeded": "complete", "planned": "waiting"}
Url = Callable[..., str]


def section(obj: Workflow, asked: Mapping[str, str], found: Batch, using: str, url: Url) -> dict[str, Any]:
    """What the templates print. `asked`: the query of the page; `fan` and `after` say which children are shown. `found`: the page's rows."""
    fans: list[Fan] = found["fans"]
    wrong = {row.fan_id: row for row in found["wrong"]}
    listed = _listed(fans, asked.get("fan", ""))
    return {
        "relatives": _relatives(obj, {one.pk: one for one in found["relatives"]}, url),
        "fans": [_fan(one, wrong.get(one.pk), url) for one in fans[:FANS]],
        "fans_more": len(fans) > FANS,
        **(_children(listed, _number(asked.get("after", "")), using, url) if listed is not None else {}),
    }


def _listed(fans: list[Fan], asked: str) -> Fan | None:
    """The group whose children are listed: the one that is asked for, or the newest."""
    number = _number(asked)
    return next((one for one in fans if one.pk == number), fans[0] if fans else None)


def _number(text: str) -> int:
    """A number out of an address; 0 for whatever is none, or more than a row has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _relatives(obj: Workflow, found: Mapping[UUID, Workflow], url: Url) -> list[tuple[str, SafeString]]:
    """(what it is to this run, a link to it)."""
    named = ((_("Started by"), obj.parent_id), (_("Began as"), obj.chain), (_("Goes on as"), obj.continued_to))
    return [(label, _link(one, str(found[one]), url)) for label, one in named if one is not None and one in found]


def _link(workflow: UUID, text: str, url: Url) -> SafeString:
    return format_html('<a href="{}">{}</a>', url("outlast_flows_workflow_change", workflow), rendering.inline(text))


def _fan(fan: Fan, failed: Branch | None, url: Url) -> dict[str, Any]:
    """A group with its counts, and of those that went wrong the first."""
    return {
        "row": fan,
        "node": rendering.inline(fan.node),
        "chip": rendering.chip("running" if fan.status == "open" else "complete", fan.get_status_display()),
        "ended": sum(getattr(fan, name) for name in ENDED),
        "planned": fan.total - fan.running - sum(getattr(fan, name) for name in ENDED),
        "failed": _told(failed, url) if failed is not None else "",
    }


def _children(fan: Fan, after: int, using: str, url: Url) -> dict[str, Any]:
    rows = shown.listed(fan, after, ROWS + 1, using)
    return {
        "children_of": fan,
        "children_node": rendering.inline(fan.node),
        "children": [
            {
                "number": row.number,
                "name": _told(row, url),
                "chip": rendering.chip(_CHIPS.get(row.status, row.status), row.status),
                "code": rendering.inline(row.error_code) if row.error_code else "–",
            }
            for row in rows[:ROWS]
        ],
        "children_after": rows[ROWS - 1].number if len(rows) > ROWS else 0,
        "children_paged": after > 0,
    }


def _told(row: Branch, url: Url) -> SafeString:
    """Number and name; a link where its run is there."""
    text = f"{row.number} {row.name}".strip()
    return _link(row.workflow_id, text, url) if row.started_at is not None else rendering.inline(text)
