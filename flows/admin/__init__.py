"""Pages of the durable record in Django's admin, which finds this package as any `admin.py`. Read-only but for verdicts on operations,
more of a budget, and envelopes that are opened again.
"""

from flows.admin import budgets, commitments, operations, records, releases, rules, workflow

__all__ = ["budgets", "commitments", "operations", "records", "releases", "rules", "workflow"]
