"""Errors that end an allocation attempt. Kubernetes clients see their messages."""

from __future__ import annotations

from allot.api.identities import DeviceId
from allot.deadline import DeadlineExceededError


class AllocationError(Exception):
    """The attempt cannot continue: the result is undecidable, not "does not fit"."""

    def __init__(self, problem: str, place: str = "") -> None:
        """`place` names the claim and request; the message starts with it."""
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
    """A device that mode All requires violates a constraint."""

    def __init__(self, place: str, device: DeviceId) -> None:
        super().__init__(
            f"cannot add device {device} because a claim constraint would not be satisfied", place
        )
        self.device = device


class MissingClassError(AllocationError):
    """A device class does not exist."""

    def __init__(self, class_name: str, place: str) -> None:
        super().__init__(
            f"could not retrieve device class {class_name}:"
            f' deviceclass.resource.k8s.io "{class_name}" not found',
            place,
        )
        self.class_name = class_name


class UnusablePoolError(AllocationError):
    """Mode All is requested, and a pool is incomplete or invalid."""


class NoAlternativeLeftError(AllocationError):
    """On this node no alternative of a request can be tried."""


class StepsExhaustedError(Exception):
    """The search used up its step budget."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"gave up after {steps} steps")
        self.steps = steps


class EvaluationDeadlineError(DeadlineExceededError):
    """The deadline passed while an expression was evaluated on a device."""

    def __init__(self, expression: str, device: DeviceId) -> None:
        super().__init__(f"time ran out on device {device}: {expression}")
        self.expression = expression
        self.device = device


class TooManyFailuresError(Exception):
    """The search without lookahead failed too often; forward checking continues."""
