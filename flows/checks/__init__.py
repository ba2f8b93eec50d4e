"""Django's system checks: flows as they are written, and the settings they run under. Each has a stable id and a way out.

outlast_flows.E001–E099   flows (`flows.core.lint` has the list; E023 needs an import and is here)
outlast_flows.E101–       settings and database          W101–   the same, where it can still work
outlast_flows.W111–       Celery settings that are dangerous with Redis (`check --deploy`)
"""

from flows.checks.capacity import check_capacity, check_capacity_kept
from flows.checks.catalogue import CATALOGUE, TAG
from flows.checks.configured import check_celery, check_settings
from flows.checks.database import check_clock, check_migrated, check_named, check_versions
from flows.checks.declared import check_flows, declared_flows
from flows.checks.events import check_started_by
from flows.checks.packages import check_installed, check_packages
from flows.checks.schedules import check_schedule_names, check_schedules, check_zones
from flows.checks.webhooks import check_webhook_rows, check_webhooks

__all__ = [
    "CATALOGUE",
    "TAG",
    "check_capacity",
    "check_capacity_kept",
    "check_celery",
    "check_clock",
    "check_flows",
    "check_installed",
    "check_migrated",
    "check_named",
    "check_packages",
    "check_schedule_names",
    "check_schedules",
    "check_settings",
    "check_started_by",
    "check_versions",
    "check_webhook_rows",
    "check_webhooks",
    "check_zones",
    "declared_flows",
]
