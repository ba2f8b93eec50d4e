"""The tables of one question, read and written. Each write may be made twice, and none puts something older over something newer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from project.agents.research import graph
from project.agents.research.graph import Found, Node

if TYPE_CHECKING:
    from project.agents.research.models import Claim, Evidence

Json = dict[str, Any]


def plan(run: str, claims: Iterable[Mapping[str, Any]]) -> None:
    """The claims of a plan."""
    from project.agents.research.models import Claim

    rows = [Claim(run=run, **{name: one[name] for name in ("name", "statement", "sources", "premises")}) for one in claims]
    Claim.objects.bulk_create(rows, ignore_conflicts=True)


def claims(run: str) -> list[Claim]:
    from project.agents.research.models import Claim

    return list(Claim.objects.filter(run=run).order_by("name"))


def graph_of(rows: Iterable[Claim]) -> dict[str, Node]:
    return {row.name: Node(row.name, row.statement, tuple(row.sources), tuple(row.premises)) for row in rows}


def found_of(rows: Iterable[Claim]) -> dict[str, Found]:
    return {row.name: Found(row.verdict, row.confidence, row.basis) for row in rows}


def newest(run: str) -> dict[str, Evidence]:
    """Source → its newest version that was read."""
    from project.agents.research.models import Evidence

    rows = Evidence.objects.filter(run=run, refused=False).order_by("source", "version")
    return {row.source: row for row in rows}


def looked_at(run: str) -> dict[str, int]:
    """Source → the newest version about which nobody needs to be asked again: it was read, or refused."""
    from project.agents.research.models import Evidence

    found = Evidence.objects.filter(run=run).order_by("version").values_list("source", "version")
    return dict(found)


def refuse(run: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """These versions are not to be read."""
    from project.agents.research.models import Evidence

    Evidence.objects.bulk_create([_row(run, one, refused=True) for one in entries], ignore_conflicts=True)


def keep(run: str, entry: Mapping[str, Any], text: str) -> None:
    """A version, as it was read."""
    from project.agents.research.models import Evidence

    Evidence.objects.bulk_create([_row(run, entry, text=text)], ignore_conflicts=True)


def _row(run: str, entry: Mapping[str, Any], **more: Any) -> Evidence:
    from project.agents.research.models import Evidence

    named = {name: entry[name] for name in ("version", "digest", "publisher")}
    return Evidence(run=run, source=entry["name"], **named, **more)


def texts(run: str, shown: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Source → the text of exactly the version that is named; what is not there as it was read is left out."""
    from project.agents.research.models import Evidence

    rows = {
        (row.source, row.version): row for row in Evidence.objects.filter(run=run, source__in=[one["source"] for one in shown])
    }
    found = {}
    for one in shown:
        row = rows.get((one["source"], one["version"]))
        if row is not None and row.digest == one["digest"] and not row.refused:
            found[row.source] = row.text
    return found


def to_judge(run: str) -> tuple[list[Json], list[str]]:
    """What each claim that can be judged now is judged on; and the names of all that may be concerned."""
    rows, evidence = claims(run), newest(run)
    nodes, found = graph_of(rows), found_of(rows)
    digests = {source: one.digest for source, one in evidence.items()}
    items = []
    for name in graph.ready(nodes, digests, found):
        node = nodes[name]
        shown = [evidence[source] for source in node.rests_on if source in evidence]
        items.append(
            {
                "run": str(run),
                "claim": name,
                "statement": node.statement,
                "basis": graph.basis(node, digests, found),
                "evidence": [{"source": one.source, "version": one.version, "digest": one.digest} for one in shown],
                "premises": [
                    {"claim": one, "verdict": found[one].verdict, "confidence": found[one].confidence} for one in node.premises
                ],
            }
        )
    return items, sorted(graph.affected(nodes, digests, found))


def judged(run: str, item: Mapping[str, Any], value: Mapping[str, Any], by: Any, visit: int) -> None:
    """What a claim was found to be, on that basis. A later visit's word is never overwritten by an earlier one's."""
    from project.agents.research.models import Claim

    cites = set(value["cites"])
    Claim.objects.filter(run=run, name=item["claim"], visit__lte=visit).update(
        verdict=value["verdict"],
        confidence=value["confidence"],
        gap=value["gap"],
        provenance=[{**one, "cited": one["source"] in cites} for one in item["evidence"]],
        basis=item["basis"],
        judged_by=by,
        visit=visit,
    )


def ask_for(run: str, missing: Mapping[str, Sequence[str]], kinds: Mapping[str, str], ordered: Mapping[str, Any] | None) -> None:
    """What is wanted and not there stands as open; what is there (or was refused) as answered; what was ordered with its reference."""
    from project.agents.research.models import EvidenceRequest

    rows = [EvidenceRequest(run=run, source=name, kind=kinds[name], claims=list(by)) for name, by in missing.items()]
    EvidenceRequest.objects.bulk_create(rows, ignore_conflicts=True)
    EvidenceRequest.objects.filter(run=run).exclude(source__in=list(missing)).update(open=False)
    if ordered:
        EvidenceRequest.objects.filter(run=run, source__in=list(ordered["names"]), reference="").update(
            reference=ordered["reference"]
        )


def not_ordered(run: str) -> list[str]:
    from project.agents.research.models import EvidenceRequest

    return list(
        EvidenceRequest.objects.filter(run=run, open=True, reference="").order_by("source").values_list("source", flat=True)
    )
