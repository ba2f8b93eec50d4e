"""The approval screens in Django's admin: the inbox with its decision page, pools, delegations. Django finds this package as any `admin.py`."""

from approvals.admin.delegations import DelegationAdmin
from approvals.admin.inbox import RequestAdmin
from approvals.admin.pools import PoolAdmin

__all__ = ["DelegationAdmin", "PoolAdmin", "RequestAdmin"]
