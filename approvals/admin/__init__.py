"""The approval screen in Django's admin: an inbox, a decision page, and who was told. Django finds this package as it finds any `admin.py`."""

from approvals.admin.inbox import RequestAdmin
from approvals.admin.notices import NoticeAdmin

__all__ = ["NoticeAdmin", "RequestAdmin"]
