"""The durable plane as a Django app: registers checks and finds `flows.py` in every installed app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class FlowsConfig(AppConfig):
    name = "flows"
    label = "outlast_flows"
    verbose_name = _("Workflows")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flows import checks, registry  # noqa: F401 - registers the system checks
        from flows.services import events
        from flows.services.notices import NoticeOutbox

        registry.register_outbox(NoticeOutbox())
        # ---- events
        for watch in events.watches():
            registry.register_watch(watch)
        # ---- webhooks
        # ---- schedules
        # ---- capacity
        # ---- children
        autodiscover_modules("flows")
