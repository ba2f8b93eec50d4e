"""The rows of the human plane; no behaviour."""

from approvals.models.delegation import Delegation
from approvals.models.kept import KeptAnswer
from approvals.models.notice import Notice
from approvals.models.pool import Pool
from approvals.models.request import Request
from approvals.models.review import Review

__all__ = ["Delegation", "KeptAnswer", "Notice", "Pool", "Request", "Review"]
