"""The human plane as a Django app: it owns the waits of kind "approval"."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ApprovalsConfig(AppConfig):
    name = "approvals"
    label = "outlast_approvals"
    verbose_name = _("Approvals")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals.services.plane import ApprovalPlane
        from flows.registry import register_wait_plane

        register_wait_plane("approval", ApprovalPlane())
