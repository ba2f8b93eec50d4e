"""The approval screen in Django's admin: an inbox and a decision page. Django finds this package as it finds any `admin.py`."""

from approvals.admin.inbox import RequestAdmin

__all__ = ["RequestAdmin"]
