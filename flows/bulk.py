"""One verb for many runs, as a durable job: each run is done by itself, and says what became of it.

from flows import bulk

made = bulk.make("cancel", flow="refund", status="waiting", reason="The campaign is over", by=user)    # needs outlast_flows.operate_workflow
bulk.show(made.id).counts    # {"accepted": 812, "too_late": 3}
bulk.stop(made.id, reason="Not those of Austria", by=user)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.services import bulk as _bulk
from flows.services import identify as _identify
from flows.services.bulk import Shown, show, stop

__all__ = ["Shown", "make", "show", "stop"]


def make(
    verb: str,
    *,
    reason: str,
    by: Any = None,
    arguments: Mapping[str, Any] | None = None,
    seen: int | None = None,
    using: str | None = None,
    **filters: Any,
) -> Shown:
    """Have `verb` (cancel, pause, resume, migrate) done to all runs that the filters find now.

    Args:
        filters: flow, version, status, outcome, code, node, release, tenant, key; all of them hold.
        The others, and the errors, as `flows.services.bulk.make`.
    """
    alias = _identify.alias(using)
    runs = _bulk.chosen(using=alias, **filters)
    given = {name: value for name, value in filters.items() if value is not None}
    return _bulk.make(verb, runs, filter=given, reason=reason, arguments=arguments, by=by, seen=seen, using=alias)
