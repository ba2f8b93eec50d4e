"""Pool: a named set of reviewers, apart from Django's groups. An empty pool means nobody."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from flows.core import visible


class Pool(models.Model):
    """Who is in it is looked up at every answer, so taking somebody out takes effect at once."""

    name = models.TextField(_("name"), unique=True)
    note = models.TextField(_("note"), blank=True, help_text=_("What these people are asked about; shown to administrators."))
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, verbose_name=_("members"), blank=True, related_name="+", db_table="outlast_approval_pool_member"
    )

    class Meta:
        db_table = "outlast_approval_pool"
        verbose_name = _("reviewer pool")
        verbose_name_plural = _("reviewer pools")

    def __str__(self) -> str:
        return visible.plain(self.name)
