"""Read-only pages of the durable record in Django's admin; Django finds this package as it finds any `admin.py`."""

from flows.admin import records, workflow

__all__ = ["records", "workflow"]
