"""The interface of a driver on a node, and the errors of calls to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from allot.kubelet.dra.claim_info import ClaimReference, PreparedClaim


class DriverCallError(Exception):
    """A call failed as a whole, in the words of Go's gRPC."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {description}")
        self.code = code


class DriverNotRegisteredError(Exception):
    def __init__(self, driver: str) -> None:
        super().__init__(f"DRA driver {driver} is not registered")
        self.driver = driver


class DriverPlugin(Protocol):
    """The node side of a driver. Answers are by UID of the claim."""

    @property
    def driver(self) -> str: ...

    @property
    def is_simulated(self) -> bool: ...

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources. Raises `DriverCallError`."""
        ...

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources: an error for each claim, or an empty string. Raises `DriverCallError`."""
        ...
