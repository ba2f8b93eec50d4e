"""Overview: the page that says how everything is. It has no rows of its own."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from flows.models.workflow import Workflow


class Overview(Workflow):
    """Stands in the admin's index beside the models, in whatever theme there is."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("overview")
        verbose_name_plural = _("overview")
