"""How a scenario ends when it does not end well."""

from __future__ import annotations


class StepFailedError(Exception):
    """The cluster did not do what a step says."""


class ScenarioFailedError(AssertionError):
    """A scenario failed, at this place for this reason."""

    def __init__(self, scenario: str, place: str, reason: str) -> None:
        super().__init__(f"{scenario}, {place}: {reason}")
        self.scenario, self.place, self.reason = scenario, place, reason
