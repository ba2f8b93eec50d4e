"""Worker and Tick: who may own work, and when the clock was last looked at (A7)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class WorkerStatus(models.TextChoices):
    """Dead is final: a process that comes back registers a new row."""

    ALIVE = "alive"
    STOPPED = "stopped"
    DEAD = "dead"


class Worker(models.Model):
    """One incarnation of a worker process: where it runs, what it offers, and until when it may own work."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    status = models.TextField(choices=WorkerStatus.choices)
    host = models.TextField()
    boot_id = models.TextField()
    pid_namespace = models.TextField()
    pid = models.IntegerField()
    process_started = models.TextField()
    region = models.TextField(blank=True)
    host_class = models.TextField(blank=True)
    placements = ArrayField(models.TextField(), default=list)
    queues = ArrayField(models.TextField())
    definitions = ArrayField(models.TextField())
    releases = ArrayField(models.TextField(), default=list)
    concurrency = models.IntegerField()
    lease_until = models.DateTimeField()
    renewed_at = models.DateTimeField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_worker"
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(name="outlast_worker_status", condition=Q(status__in=WorkerStatus.values)),
            models.UniqueConstraint(fields=["name"], name="outlast_worker_name", condition=Q(status=WorkerStatus.ALIVE.value)),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"


class Tick(models.Model):
    """One row: when the clock was last looked at, and by whom."""

    id = models.SmallIntegerField(primary_key=True)
    ticked_at = models.DateTimeField()

    class Meta:
        db_table = "outlast_tick"
        default_permissions = ()
        constraints = [models.CheckConstraint(name="outlast_tick_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"{self.ticked_at}"
