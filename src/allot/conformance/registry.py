"""The list of all checks. Each names the rule, and the place in Kubernetes' documents that demands it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from allot.conformance.results import Level

if TYPE_CHECKING:
    from allot.conformance.harness import Harness

CheckFunction = Callable[["Harness"], Awaitable[None]]


class Check(NamedTuple):
    """One rule."""

    name: str
    """GROUP/RULE."""
    title: str
    demanded_by: str
    level: Level
    run: CheckFunction


CHECKS: dict[str, Check] = {}
"""In the order in which they run."""


def check(
    name: str, title: str, demanded_by: str, level: Level = Level.MUST
) -> Callable[[CheckFunction], CheckFunction]:
    def enter(function: CheckFunction) -> CheckFunction:
        assert name not in CHECKS, name
        CHECKS[name] = Check(name, title, demanded_by, level, function)
        return function

    return enter


def all_checks() -> list[Check]:
    from allot.conformance import checks  # noqa: F401 - they enter themselves

    return list(CHECKS.values())
