"""Admission: plugins that may change a write, add to its transaction, or reject it."""
