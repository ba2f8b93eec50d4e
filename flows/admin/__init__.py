"""Pages of the durable record in Django's admin, read-only but for verdicts on operations; Django finds this package as any `admin.py`."""

from flows.admin import commitments, operations, records, releases, workflow

__all__ = ["commitments", "operations", "records", "releases", "workflow"]
