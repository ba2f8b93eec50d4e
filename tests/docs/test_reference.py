"""The reference is complete: each setting and each code has its line, and the drawing is the protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows.conf import DEFAULTS
from flows.core import deadlines, decide, effects, errors, releases, verdicts
from flows.core.liveness import DOES, KINDS, RIGHTS
from flows.core.nodes import activity, approval, ask, continued, job, waits
from flows.core.protocol import MOVES, WAIT_KINDS
from flows.services import obligations, servicing, settling

DOCS = Path(__file__).parents[2] / "docs"


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*(subclasses(child) for child in cls.__subclasses__()))


def test_each_setting_is_documented() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    assert [name for name in DEFAULTS if f"| `{name}` |" not in page] == []


def test_no_setting_is_documented_that_does_not_exist() -> None:
    page = (DOCS / "reference" / "settings.md").read_text().split("## Codes")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)) == set(DEFAULTS)


def test_each_code_is_documented() -> None:
    page = (DOCS / "reference" / "settings.md").read_text().split("## Codes")[1]
    abstract = {"OUTLAST_ERROR", "USAGE_ERROR"}
    codes = {cls.code for cls in subclasses(errors.OutlastError) if cls.__module__.startswith("flows.")} - abstract
    codes |= {
        decide.DEFINITION_FAULT, *(row.code for row in deadlines.KINDS.values()), decide.VISITS_EXHAUSTED,
        activity.RETRIES_EXHAUSTED, activity.WORKER_LOST,
        waits.WAIT_EXPIRED, job.JOB_EXPIRED, approval.APPROVAL_EXPIRED, ask.ASK_EXPIRED, approval.CANDIDATE_MISSING, approval.NOBODY_ELIGIBLE,
        errors.UNCLASSIFIED,
        effects.NOT_RECONCILABLE, effects.OUTCOME_UNKNOWN, effects.SERVICING_FAILED, effects.LOOKS_LOST,
        servicing.NOT_DECLARED, obligations.ESCALATED,
        obligations.COMMITMENT_OPEN, settling.LATE_EFFECT, continued.CHILDREN_OPEN,
        verdicts.Verdict.BUDGET_EXHAUSTED,
        releases.RELEASE_CHANGED, releases.RELEASE_NOT_OFFERED, verdicts.Verdict.RELEASE_INCOMPATIBLE,
        verdicts.Verdict.WORKFLOW_MIGRATION_REQUIRED, verdicts.Verdict.APPROVAL_REQUIRED, verdicts.Verdict.CANDIDATE_INVALID,
    }  # fmt: skip
    assert sorted(code for code in codes if code not in page) == []


@pytest.mark.req("C5")
def test_the_table_of_waits_is_the_one_that_code_reads() -> None:
    page = (DOCS / "reference" / "waits.md").read_text()
    shown = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    assert shown == [
        [
            kind.name, kind.by, kind.right or "–", "ends it" if kind.resumes else "waits on", kind.on_cancel, kind.counts or "–",
            kind.alert, kind.escalation, kind.slo,
        ]
        for kind in WAIT_KINDS.values()
    ]  # fmt: skip


@pytest.mark.req("P2")
def test_the_table_of_orphans_is_the_one_that_the_scan_reads() -> None:
    page = (DOCS / "reference" / "orphans.md").read_text()
    table = [line.strip("|").split("|") for line in page.partition("## The kinds")[2].splitlines() if line.startswith("| `")]
    shown = [[cell.strip() for cell in line] for line in table]
    kinds = [
        [
            f"`{kind.name}`", kind.broken, kind.breaks, f"{kind.patience} s", kind.first, f"`{kind.repair}`" if kind.repair else "–",
            ", ".join(f"`{one}`" for one in kind.offered) or "–", kind.otherwise or "–",
        ]
        for kind in KINDS.values()
    ]  # fmt: skip
    repairs = [[f"`{name}`", does, f"`{RIGHTS[name]}`" if name in RIGHTS else "–"] for name, does in DOES.items()]
    assert shown == [*kinds, *repairs]


def test_the_drawing_shows_exactly_the_legal_moves() -> None:
    page = (DOCS / "explanation" / "how-it-works.md").read_text()
    drawn = set(re.findall(r"^ {4}(\S+) --> (\S+)$", page, re.MULTILINE))
    legal = {(source.value if source else "[*]", target.value) for source, targets in MOVES.items() for target in targets}
    assert drawn == legal
