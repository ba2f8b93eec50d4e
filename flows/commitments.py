"""What workflows owe to somebody outside: queries and verbs for other code.

from flows import commitments

commitments.active(kind="window")                          # what is held now, oldest first
commitments.fulfil(one, by=user, reason="The window was used")

These are for code, which is trusted: none of them checks a permission (`by` is only recorded), but each verb wants a reason.
A view that offers them checks the user's rights,
`outlast_flows.view_commitment` and `outlast_flows.service_commitment`, before it calls them.
"""

from flows.services.commitments import UnknownCommitment, active, defer, fulfil, transfer

__all__ = ["UnknownCommitment", "active", "defer", "fulfil", "transfer"]
