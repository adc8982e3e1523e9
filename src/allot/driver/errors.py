"""Errors in a hardware description."""

from __future__ import annotations


class HardwareError(Exception):
    """The message names the file, the field and the problem."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        problem = " ".join(problem.split())
        super().__init__(": ".join(part for part in (source, field, problem) if part))
        self.source, self.field, self.problem = source, field, problem
