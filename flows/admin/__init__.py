"""Pages of the durable record in the admin, read-only but for verdicts on operations and envelopes; Django finds it as any `admin.py`."""

from flows.admin import commitments, operations, records, rules, workflow

__all__ = ["commitments", "operations", "records", "rules", "workflow"]
