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
        from flows.codecs import configure
        from flows.services import children
        from flows.services.notices import NoticeOutbox

        configure()
        registry.register_outbox(NoticeOutbox())
        # ---- events
        # ---- webhooks
        # ---- schedules
        # ---- capacity
        # ---- children
        children.register()
        autodiscover_modules("flows")
