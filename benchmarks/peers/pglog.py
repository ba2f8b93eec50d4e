"""What the server was asked: its log of statements, switched on for a stretch."""

import contextlib
import re

from common import PG, servers


@contextlib.contextmanager
def all_statements_logged():
    import psycopg

    def change(setting):
        with psycopg.connect(f"{PG} dbname=postgres", autocommit=True) as c:
            c.execute(f"alter system {setting}")
            c.execute("select pg_reload_conf()")

    change("set log_statement='all'")
    try:
        yield
    finally:
        change("reset log_statement")


def statements(peer, start, end):
    """Statement (constants removed) -> how often, from this part of the server's log."""
    with open(servers()["pg_log"], "rb") as f:
        f.seek(start)
        text = f.read(end - start).decode(errors="replace")
    counts = {}
    for m in re.finditer(
        r"\[\d+\] " + peer.db + r" LOG:  (?:statement|execute [^:]*): (.*?)(?=\n\d{4}-\d\d-\d\d |\Z)", text, re.S
    ):
        q = re.sub(r"'(?:[^']|'')*'|\b\d+\b", "?", re.sub(r"\s+", " ", m.group(1)))[:110]
        counts[q] = counts.get(q, 0) + 1
    return counts


def top_of(counts):
    return [[c, q] for q, c in sorted(counts.items(), key=lambda x: -x[1])[:25]]
