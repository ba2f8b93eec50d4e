"""Pages of the durable record in Django's admin, which finds this package as any `admin.py`. Read-only but for verdicts on operations
and more of a budget.
"""

from flows.admin import budgets, commitments, operations, records, workflow

__all__ = ["budgets", "commitments", "operations", "records", "workflow"]
