"""What is wrong with a hardware description."""

from __future__ import annotations


class HardwareError(Exception):
    """One sentence: which file, which field, what is wrong with it."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        problem = " ".join(problem.split())
        super().__init__(": ".join(part for part in (source, field, problem) if part))
        self.source, self.field, self.problem = source, field, problem
