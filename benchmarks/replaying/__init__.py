"""How fast recorded workflows are replayed, and that nothing is touched by it: `make replays`."""
