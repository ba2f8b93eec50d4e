"""The coding agent: upgrades one library of a git repository, with tests, CI and a person in between."""
