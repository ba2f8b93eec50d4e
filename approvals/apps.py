"""The human plane as a Django app: it owns the waits for answers (to an approval, a form, a tool), and an outbox of what people are told."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _


def _find_flows() -> None:
    """Say which file it is where a `flows.py` of the project is found before the package. No check of `flows` can: it is never loaded then."""
    spec = importlib.util.find_spec("flows")
    if spec is not None and not spec.submodule_search_locations:
        raise ImproperlyConfigured(
            f"(outlast_flows.E105) The package 'flows' that Python finds is not Outlast's but the module {spec.origin}; Outlast is in "
            f"{Path(__file__).resolve().parent.parent}. Rename it (a module inside an app, such as shop/flows.py, is no problem), or move the "
            "project's own code into a package."
        )


_find_flows()  # while the apps are found: after that the models are loaded, and would fail on it


class ApprovalsConfig(AppConfig):
    name = "approvals"
    label = "outlast_approvals"
    verbose_name = _("Approvals")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals.services import sampling, uploads
        from approvals.services.adrift import SEARCH
        from approvals.services.notices.outbox import RequestOutbox
        from approvals.services.plane import ApprovalPlane
        from approvals.services.tool_plane import ToolPlane
        from approvals.store.belongings import BELONGINGS
        from flows.core.protocol import TOOL_APPROVAL
        from flows.registry import register_belongings, register_leaver, register_outbox, register_samples, register_wait_plane
        from flows.services.liveness import searches

        plane = ApprovalPlane()
        register_wait_plane("approval", plane)
        register_wait_plane("ask", plane)
        register_wait_plane(TOOL_APPROVAL, ToolPlane())
        register_outbox(RequestOutbox())
        register_belongings(BELONGINGS)
        register_samples("reviewers", sampling.samples)
        searches.register("request_adrift", SEARCH)
        register_leaver(uploads.leave)
