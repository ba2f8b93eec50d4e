"""The approval screens in Django's admin: the inbox with its decision page, pools, delegations, and who was told.

Django finds this package as it finds any `admin.py`.
"""

from approvals.admin.delegations import DelegationAdmin
from approvals.admin.inbox import RequestAdmin
from approvals.admin.notices import NoticeAdmin
from approvals.admin.pools import PoolAdmin

__all__ = ["DelegationAdmin", "NoticeAdmin", "PoolAdmin", "RequestAdmin"]
