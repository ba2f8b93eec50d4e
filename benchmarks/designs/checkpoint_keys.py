"""The same checkpoints, with keys that follow from run and step: a step that is repeated asks for the same thing again."""

from __future__ import annotations

from benchmarks.designs import checkpoint


def key(run: str, step: str) -> str:
    return f"{run}/{step}"


if __name__ == "__main__":
    checkpoint.main(key)
