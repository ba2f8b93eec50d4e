"""Constraints of hot tables, as calls of small database functions (made in the first migration).

A CHECK is read from the catalogue and parsed anew by every statement that writes the table: long lists of values there cost a third of a
step. A call is short to parse, and the function's body is compiled once a session.
"""

from __future__ import annotations

from django.db.models import BooleanField, CheckConstraint, F, Func, Value


def known(name: str, noun: str, column: str) -> CheckConstraint:
    """`column` holds one of the words that the protocol knows for `noun`."""
    call = Func(Value(noun), F(column), function="outlast_known", output_field=BooleanField())
    return CheckConstraint(name=name, condition=call)


def ended(name: str, live: str, moment: str) -> CheckConstraint:
    """`moment` is empty exactly while the status is `live`: statements about known rows look at the moment, for no index of live rows does."""
    call = Func(F("status"), Value(live), F(moment), function="outlast_ended_ok", output_field=BooleanField())
    return CheckConstraint(name=name, condition=call)


def state(name: str) -> CheckConstraint:
    """A workflow's status, outcome and owner go together."""
    call = Func(F("status"), F("outcome"), F("worker_id"), function="outlast_state_ok", output_field=BooleanField())
    return CheckConstraint(name=name, condition=call)
