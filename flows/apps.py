"""The durable plane as a Django app: registers checks and finds `flows.py` in every installed app."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
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
        from flows.core.protocol import CAPACITY
        from flows.services import bulk, children, debounced, events, liveness, measures, retention, schedules
        from flows.services.capacity import pump
        from flows.services.capacity.parking import CapacityPlane
        from flows.services.notices import NoticeOutbox
        from flows.store.belongings import BELONGINGS, SPANS

        configure()
        registry.register_outbox(NoticeOutbox())
        for watch in events.watches():
            registry.register_watch(watch)
        for watch in schedules.WATCHES:
            registry.register_watch(watch)
        post_migrate.connect(schedules.after_migrate, sender=self, dispatch_uid="outlast-sync-schedules")
        plane = CapacityPlane()
        for kind in sorted(CAPACITY):
            registry.register_wait_plane(kind, plane)
        for watch in (pump.WATCH, *debounced.WATCHES, measures.watch()):
            registry.register_watch(watch)
        children.register()
        registry.register_watch(bulk.WATCH)
        registry.register_belongings(BELONGINGS, SPANS)
        registry.register_watch(retention.WATCH)
        registry.register_watch(liveness.watch())
        autodiscover_modules("flows")
