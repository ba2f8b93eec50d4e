"""Tooling of the checkout: sets itself up, runs private servers and processes.  Standard library only."""
