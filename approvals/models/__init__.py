"""Nouns of the human plane; no behaviour."""

from approvals.models.request import Request
from approvals.models.review import Review

__all__ = ["Request", "Review"]
