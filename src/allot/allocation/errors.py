"""Errors that end an allocation attempt. Their texts are the ones Kubernetes clients see."""

from __future__ import annotations

from allot.api.identities import DeviceId
from allot.deadline import DeadlineExceededError


class AllocationError(Exception):
    """The attempt cannot go on: not "does not fit", but "cannot be decided"."""

    def __init__(self, problem: str, place: str = "") -> None:
        """`place` names the claim and request, and comes first in the text."""
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem


class ExpressionError(AllocationError):
    """A CEL expression failed on a device."""

    def __init__(
        self, problem: str, expression: str, device: DeviceId, cause: str, place: str = ""
    ) -> None:
        super().__init__(problem, place)
        self.expression = expression
        self.device = device
        self.cause = cause


class ConstraintError(AllocationError):
    """A device that mode All insists on would break a constraint."""

    def __init__(self, place: str, device: DeviceId) -> None:
        super().__init__(
            f"cannot add device {device} because a claim constraint would not be satisfied", place
        )
        self.device = device


class MissingClassError(AllocationError):
    """A device class does not exist."""


class UnusablePoolError(AllocationError):
    """All devices are asked for, and a pool is incomplete or invalid."""


class NoAlternativeLeftError(AllocationError):
    """On this node no alternative of a request can be tried."""


class StepsExhaustedError(Exception):
    """The search used up its budget."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"gave up after {steps} steps")
        self.steps = steps


class EvaluationDeadlineError(DeadlineExceededError):
    """Time ran out while an expression was evaluated on a device."""

    def __init__(self, expression: str, device: DeviceId) -> None:
        super().__init__(f"time ran out on device {device}: {expression}")
        self.expression = expression
        self.device = device


class TooManyFailuresError(Exception):
    """The search went back too often to go on in the same way."""
