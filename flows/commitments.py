"""What workflows owe to somebody outside: queries and verbs for other code.

from flows import commitments

commitments.active(kind="window")                          # what is held now, oldest first
commitments.fulfil(one, by=user, reason="The window was used")
"""

from flows.services.commitments import UnknownCommitment, active, defer, fulfil, transfer

__all__ = ["UnknownCommitment", "active", "defer", "fulfil", "transfer"]
