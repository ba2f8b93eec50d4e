"""A small layered layout for graphs: layers by longest path, long edges through bends, few crossings. Pure and deterministic.

back edges turned round (depth first from the first vertex) ──► layers ──► bends on long edges ──► order ──► positions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[str, str]

GAP, BEND = 36.0, 12.0
SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """Where everything is: the middle and the row of each vertex, and of each point of an edge from its source to its target."""

    at: Mapping[str, tuple[float, int]]
    paths: Mapping[Pair, Sequence[tuple[float, int]]]
    width: float
    rows: int


def place(widths: Mapping[str, float], pairs: Sequence[Pair]) -> Placed:
    """Lay out vertices (name → width, in order, the first on top) and edges between different vertices."""
    back = _back_edges(list(widths), pairs)
    down = {pair: ((pair[1], pair[0]) if pair in back else pair) for pair in pairs}
    layer = _layers(list(widths), list(down.values()))
    rows, chains, size = _with_bends(widths, layer, down)
    _reduce_crossings(rows, chains)
    x = _positions(rows, chains, size)
    left = min((x[name] - size[name] / 2 for name in x), default=0.0)
    at = {name: (x[name] - left, depth) for depth, row in enumerate(rows) for name in row}
    paths = {pair: [at[name] for name in chain][:: -1 if pair in back else 1] for pair, chain in chains.items()}
    right = max((at[name][0] + size[name] / 2 for name in at), default=0.0)
    return Placed({name: at[name] for name in widths}, paths, right, len(rows))


def _back_edges(names: Sequence[str], pairs: Sequence[Pair]) -> set[Pair]:
    """The edges that lead back to a vertex on the way down to them."""
    following = {name: [target for source, target in pairs if source == name] for name in names}
    state: dict[str, int] = {}
    back: set[Pair] = set()
    for root in names:
        stack = [(root, iter(following[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            name, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[name] = 2
                stack.pop()
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(following[target])))
            elif state[target] == 1:
                back.add((name, target))
    return back


def _layers(names: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """The longest path down to each vertex."""
    into = {name: [source for source, target in edges if target == name] for name in names}
    layer: dict[str, int] = {}
    while len(layer) < len(names):
        for name in names:
            if name not in layer and all(source in layer for source in into[name]):
                layer[name] = max((layer[source] + 1 for source in into[name]), default=0)
    return layer


def _with_bends(
    widths: Mapping[str, float], layer: Mapping[str, int], down: Mapping[Pair, Pair]
) -> tuple[list[list[str]], dict[Pair, list[str]], dict[str, float]]:
    """Rows of vertices and bends, the chain of each edge downwards through them, and the widths of all."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in widths:
        rows[layer[name]].append(name)
    chains, size = {}, dict(widths)
    for number, (pair, (source, target)) in enumerate(down.items()):
        bends = [f"\x00{number}\x00{depth}" for depth in range(layer[source] + 1, layer[target])]
        for depth, bend in enumerate(bends, layer[source] + 1):
            rows[depth].append(bend)
            size[bend] = BEND
        chains[pair] = [source, *bends, target]
    return rows, chains, size


def _neighbours(chains: Mapping[Pair, Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    return above, below


def _reduce_crossings(rows: list[list[str]], chains: Mapping[Pair, Sequence[str]]) -> None:
    """Order each row by the middle of its neighbours, downwards and upwards in turn."""
    above, below = _neighbours(chains)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            index = {name: place for other in rows for place, name in enumerate(other)}
            middle = {
                name: sum(index[other] for other in near[name]) / len(near[name]) if name in near else float(index[name])
                for name in row
            }
            row.sort(key=middle.__getitem__)


def _positions(
    rows: Sequence[Sequence[str]], chains: Mapping[Pair, Sequence[str]], size: Mapping[str, float]
) -> dict[str, float]:
    """Middles from left to right without overlaps, drawn towards their neighbours."""
    above, below = _neighbours(chains)
    x: dict[str, float] = {}
    for row in rows:
        _pack(row, dict.fromkeys(row, 0.0), size, x)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = {name: sum(x[other] for other in near[name]) / len(near[name]) if name in near else x[name] for name in row}
            _pack(row, wanted, size, x)
    return x


def _pack(row: Sequence[str], wanted: Mapping[str, float], size: Mapping[str, float], x: dict[str, float]) -> None:
    """Put a row where it wants to be as far as order and gaps allow: groups that touch share the mean of their wishes."""
    groups: list[tuple[list[str], float]] = []  # members, and where the first one's middle is
    for name in row:
        groups.append(([name], wanted[name]))
        while len(groups) > 1 and _end(groups[-2], size) + GAP + size[groups[-1][0][0]] / 2 > groups[-1][1]:
            members = groups.pop()[0]
            joined = groups.pop()[0] + members
            offsets = _offsets(joined, size)
            groups.append((joined, sum(wanted[one] - offsets[one] for one in joined) / len(joined)))
    for members, first in groups:
        for one, offset in _offsets(members, size).items():
            x[one] = first + offset


def _offsets(members: Sequence[str], size: Mapping[str, float]) -> dict[str, float]:
    offsets, right = {}, -size[members[0]] / 2 - GAP
    for name in members:
        offsets[name] = right + GAP + size[name] / 2
        right = offsets[name] + size[name] / 2
    return offsets


def _end(group: tuple[list[str], float], size: Mapping[str, float]) -> float:
    members, first = group
    last = members[-1]
    return first + _offsets(members, size)[last] + size[last] / 2
