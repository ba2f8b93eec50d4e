"""Bulk and BulkItem: one verb for many runs, chosen by a filter, done one by one, each with what became of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

STATUSES = [("running", _("Running")), ("done", _("Done")), ("stopped", _("Stopped"))]


class Bulk(models.Model):
    """What is done to which runs: `filter` as the list had it, for people; the runs themselves stand in the items, chosen once.

    `user`: with whose rights it is done. A user who is gone has none: `by_label` says that there was one.
    """

    verb = models.TextField(_("what is done"))
    filter = models.JSONField(_("filter"))
    arguments = models.JSONField(_("arguments"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    by_label = models.TextField(_("by"), blank=True)
    reason = models.TextField(_("reason"))
    status = models.TextField(_("status"), choices=STATUSES, default="running", db_default="running")
    total = models.IntegerField(_("runs"))
    made_at = models.DateTimeField(_("since"))
    ended_at = models.DateTimeField(_("ended"), null=True)
    stopped_by = models.TextField(_("stopped by"), blank=True, default="", db_default="")
    stopped_reason = models.TextField(_("reason of the stop"), blank=True, default="", db_default="")

    class Meta:
        db_table = "outlast_bulk"
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                name="outlast_bulk_status",
                condition=Q(status="running", ended_at__isnull=True) | Q(status__in=["done", "stopped"], ended_at__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["id"], name="outlast_bulk_running", condition=Q(status="running"))]

    def __str__(self) -> str:
        return f"{self.verb} {self.pk}"


class BulkItem(models.Model):
    """One run of a bulk. `code`, `sentence`: what became of it; empty until `done_at`."""

    pk = models.CompositePrimaryKey("bulk_id", "workflow_id")
    bulk = models.ForeignKey(Bulk, on_delete=models.DO_NOTHING, related_name="items", db_constraint=False, db_index=False)
    workflow_id = models.UUIDField()
    code = models.TextField(_("what became of it"), blank=True, default="", db_default="")
    sentence = models.TextField(blank=True, default="", db_default="")
    done_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_bulk_item"
        default_permissions = ()
        indexes = [
            models.Index(fields=["bulk", "workflow_id"], name="outlast_bulk_item_left", condition=Q(done_at__isnull=True)),
            models.Index(fields=["workflow_id"], name="outlast_bulk_item_of"),
        ]

    def __str__(self) -> str:
        return f"{self.bulk_id}/{self.workflow_id}"
