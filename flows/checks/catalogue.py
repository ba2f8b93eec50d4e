"""What every id stands for, beside those of flows (`flows.core.lint.CATALOGUE`)."""

from __future__ import annotations

TAG = "outlast"

#: id → what it stands for; `flows.core.lint.CATALOGUE` has those of flows.
CATALOGUE: dict[str, str] = {
    "E101": "`settings.OUTLAST` is not a dict",
    "E102": "a number in `settings.OUTLAST` is not positive",
    "E103": "`OUTLAST['DATABASE']` is not an alias in `DATABASES`",
    "E104": "the record's database is not PostgreSQL",
    "E105": "another package of the name `flows`, `tasks` or `approvals` is found first",
    "E106": "`OUTLAST['RELEASES']` is not a list of names of releases",
    "E107": "an app of Outlast that is not installed",
    "E108": "a dotted path in `settings.OUTLAST` that does not lead to what is needed",
    "E109": "a setting of the wrong type in `settings.OUTLAST`",
    "E110": "a channel in `OUTLAST['NOTICE_CHANNELS']` that cannot be made",
    "E111": "a source of webhooks that cannot be as it is described",
    "E112": "a mapping of webhooks that is neither paths nor a function",
    "E113": "a source of webhooks without a secret, or with one that cannot be",
    "E114": "a tolerance of webhooks beyond a day",
    "E115": "a schedule whose reader is not installed",
    "E117": "a schedule of the record with the name of one in code",
    "E118": "a flow in `OUTLAST['ADMISSION']` that does not exist",
    "E121": "live runs whose definition changed without a new version",
    "E122": "live runs of a version that is not loaded, from which nothing leads to a newer one",
    "E123": "`OUTLAST['CODEC']` cannot be made",
    "E124": "`OUTLAST['RETENTION']` says something that cannot be",
    "E125": "`OUTLAST['REDACT']` says something that cannot be",
    "W101": "an unknown key in `settings.OUTLAST`",
    "W102": "a lease that does not outlive a missed renewal",
    "W103": "`flows_now()` is not PostgreSQL's own clock",
    "W104": "the record's database does not answer, so its clock was not looked at",
    "W105": "the record's tables are not those of this code",
    "W106": "a policy that a flow names and nobody has published",
    "W107": "a group or a permission that a flow or a setting names, and that does not exist",
    "W108": "a user for whom events or a schedule begin runs, and who does not exist or is not active",
    "W109": "a secret of webhooks that is not set",
    "W110": "the time zones of the package are older than the system's",
    "W111": "Celery acknowledges late",
    "W112": "the Redis transport keeps unacknowledged messages",
    "W113": "Celery keeps results",
    "W114": "Celery delivers again what kills its worker",
    "W115": "a limit or a dependency of the record that no code declares",
    "W116": "a calendar by which something counts and that nobody has published",
    "W132": "a client of an agent's model that may try again by itself",
}
