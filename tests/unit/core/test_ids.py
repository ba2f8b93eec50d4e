"""Identities: ordered by time, and one operation id for one visit."""

from __future__ import annotations

import time

from flows.core.ids import new_id, operation_id


def test_an_id_is_a_version_7_uuid_of_this_moment() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id()
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert before <= made.int >> 80 <= after


def test_ids_of_later_milliseconds_sort_later_and_none_repeats() -> None:
    ids = [new_id() for _ in range(2000)]
    moments = [one.int >> 80 for one in ids]
    assert moments == sorted(moments)
    assert len(set(ids)) == len(ids)


def test_an_operation_id_names_workflow_node_and_visit() -> None:
    assert operation_id("wf", "merge", 2) == "wf/merge/2"
