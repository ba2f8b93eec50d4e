"""What stays of runs that retention has deleted: their keys, where their archive is, and how far it is (decision 0008, S)."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class KeptKey(models.Model):
    """The key of a deleted run: it names that run for ever, so a start by it is answered with it. Append-only."""

    pk = models.CompositePrimaryKey("flow", "key")
    flow = models.TextField(_("flow"))
    key = models.TextField(_("key"))
    input_digest = models.TextField()
    workflow_id = models.UUIDField()
    intent_id = models.UUIDField()
    status = models.TextField(_("status"))
    outcome = models.TextField(_("outcome"))
    ended_at = models.DateTimeField(_("ended"))
    deleted_at = models.DateTimeField(_("deleted"))

    class Meta:
        db_table = "outlast_key"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.flow}: {self.key}"


class Archived(models.Model):
    """Where the record of a deleted run is: here (`record`), or in a file of the storage (`file`). `digest`: of the record as it was stored."""

    id = models.UUIDField(primary_key=True, editable=False)
    flow = models.TextField(_("flow"))
    key = models.TextField(_("key"), null=True)
    user_key = models.TextField(blank=True, default="", db_default="")
    parent_id = models.UUIDField(null=True)
    status = models.TextField(_("status"))
    ended_at = models.DateTimeField(_("ended"))
    archived_at = models.DateTimeField(_("archived"))
    digest = models.TextField()
    file = models.TextField(blank=True, default="", db_default="")
    record = models.JSONField(null=True)

    class Meta:
        db_table = "outlast_archive"
        default_permissions = ()
        indexes = [
            models.Index(fields=["flow", "key"], name="outlast_archive_key", condition=models.Q(key__isnull=False)),
            models.Index(fields=["user_key"], name="outlast_archive_user", condition=~models.Q(user_key="")),
            models.Index(fields=["parent_id"], name="outlast_archive_parent", condition=models.Q(parent_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.flow} {self.key or self.id}"


class RetentionLook(models.Model):
    """How far retention is; one row. `next_at`: when it is due again. `after_…`: the run that was looked at last; None: from the beginning.

    `spans`: name of a span's table → the id that was looked at last. `deleted`: runs, since there is a record.
    """

    id = models.SmallIntegerField(primary_key=True)
    next_at = models.DateTimeField()
    after_at = models.DateTimeField(null=True)
    after_id = models.UUIDField(null=True)
    spans = models.JSONField(default=dict, db_default={})
    deleted = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "outlast_retention"
        default_permissions = ()

    def __str__(self) -> str:
        return f"next look at {self.next_at}"
