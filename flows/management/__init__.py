"""The verbs of `manage.py flows`, below `commands`."""

#: Modules here that bring verbs of their own: `add(verb)` makes their parsers, `do(verb, **options)` answers with a `verbs.Report`.
MODULES = (
    "budgets",
    "bulk",
    "calendars",
    "children",
    "codec",
    "commitments",
    "dependencies",
    "erasing",
    "doctor",
    "events",
    "holds",
    "measures",
    "orphans",
    "replays",
    "retention",
    "schedules",
    "webhooks",
)
