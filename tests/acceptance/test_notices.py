"""What is owed to people is looked at by real processes: Beat ticks, the tick finds it, and a task of its own sends it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.chaosapp.flows import Nap
from tests.support.processes import Site

OWE = """
INSERT INTO outlast_notice (workflow_id, outcome, code, created_at, tries)
SELECT id, 'HUMAN_REQUIRED', 'TEST', now(), 0 FROM outlast_workflow WHERE id = %s RETURNING id
"""


@pytest.mark.req("B4")
def test_what_is_owed_is_sent(site: Site) -> None:
    """To nobody: the run has no accountable user, so that no mail server is needed."""
    site.worker()
    site.beat()
    until = site.rows("SELECT now()")[0][0] + timedelta(seconds=1)
    run = site.start(Nap, {"until": until.isoformat()})
    number = site.rows(OWE, run)[0][0]
    site.wait("the notice", lambda: site.rows("SELECT 1 FROM outlast_notice WHERE id = %s AND sent_at IS NOT NULL", number))
    assert site.rows("SELECT tries FROM outlast_notice") == [(1,)]
    site.wait_complete(run)
