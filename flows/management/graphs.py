"""manage.py flows graph: the picture of a flow. The part of the command that is this verb's."""

from __future__ import annotations

from argparse import ArgumentParser

from flows import registry
from flows.core import graph
from flows.management import given, words


def add(parser: ArgumentParser) -> None:
    """The arguments of `flows graph`."""
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--flow-version", type=given.positive, metavar="N", help="default: the newest")
    parser.add_argument("--format", choices=["mermaid", "svg"], default="mermaid")
    parser.add_argument("--output", default="-", metavar="FILE", help="default: stdout")


def drawn(name: str, version: int | None, format: str) -> str:
    """The picture; `format` is "json", "svg" or "mermaid".

    Raises:
        UnknownFlow: there is none.
    """
    definition = registry.flow(name, version).definition
    if format == "json":
        nodes = [{"name": key, "kind": node.kind, "detail": graph.details(node)} for key, node in definition.nodes.items()]
        return words.as_json({"name": name, "version": definition.version, "nodes": nodes, "arrows": graph.arrows(definition)})
    return graph.svg(definition) if format == "svg" else graph.mermaid(definition)
