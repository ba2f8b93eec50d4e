"""Pages of the durable record in Django's admin, which finds this package as any `admin.py`. Read-only but for what people
decide: each decision is a form with a reason, which the same service takes or refuses as for a command.
"""

from flows.admin import (
    budgets,
    bulk,
    calendars,
    commitments,
    dependencies,
    events,
    holds,
    intents,
    operations,
    orphans,
    overview,
    records,
    releases,
    rules,
    schedules,
    webhooks,
    workflow,
)

__all__ = [
    "budgets",
    "bulk",
    "calendars",
    "commitments",
    "dependencies",
    "events",
    "holds",
    "intents",
    "operations",
    "orphans",
    "overview",
    "records",
    "releases",
    "rules",
    "schedules",
    "webhooks",
    "workflow",
]
