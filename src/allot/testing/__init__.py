"""Builders for tests: objects with everything that does not matter filled in."""
