"""What checks work with: a driver on a node, and the parts of the kubelet and the scheduler that are played for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from allot.client.client import Client
from allot.conformance.calls import DriverCalls
from allot.conformance.claims import Claims
from allot.conformance.limits import Limits
from allot.conformance.published_slices import PublishedSlices
from allot.conformance.registrations import Registrations
from allot.conformance.results import CheckFailedError, CheckSkippedError
from allot.conformance.under_test import DriverUnderTest
from allot.conformance.waiting import Waiting
from allot.kubelet.dra.cdi import CdiError, CdiSpecs
from allot.kubelet.dra.paths import NodePaths
from allot.proto import dra_plugin_pb2

T = TypeVar("T")

FIRST: Final = "a0000000-0000-4000-8000-000000000001"
SECOND: Final = "a0000000-0000-4000-8000-000000000002"
"""The UIDs of the driver's pods."""


class Harness:
    """One driver, on one node."""

    def __init__(
        self,
        client: Client,
        driver: DriverUnderTest,
        paths: NodePaths,
        node: str,
        *,
        driver_name: str = "",
        registration_socket: str = "",
        cdi_directory: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a value
    ) -> None:
        """Without a `driver_name` it is the one that registers first."""
        self.client = client
        self.driver = driver
        self.paths = paths
        self.node = node
        self.limits = limits
        self.instance = FIRST
        """The instance of the driver that should run."""
        self.cdi_directory = cdi_directory or paths.cdi
        self._cdi = CdiSpecs(self.cdi_directory)
        self._waiting = Waiting(client.clock, limits.start, self.problem)
        self.registrations = Registrations(
            paths.registry, self._waiting, driver_name, registration_socket
        )
        self.slices = PublishedSlices(client, node, self.registrations, self._waiting)
        self.claims = Claims(client, node, self.registrations)
        self.calls = DriverCalls(self.registrations, limits.call)

    @property
    def driver_name(self) -> str:
        """Empty until the driver has registered, if it was not given."""
        return self.registrations.driver_name

    async def until(
        self, holds: Callable[[], Awaitable[T | None]], what: str, seconds: float | None = None
    ) -> T:
        """What `holds` answers, once it is true. `CheckFailedError` if that takes too long."""
        return await self._waiting.until(holds, what, seconds)

    async def clean_up(self) -> None:
        """Unprepare and delete the claims that a check has created."""
        created, self.claims.created = self.claims.created, []
        if created and not self.problem():
            with suppress(CheckFailedError):  # the check that is about this says so
                await self.calls.unprepare(*created)
        for claim in created:
            await self.claims.delete(claim)

    async def still_works(self) -> None:
        """The driver runs, and prepares and unprepares a claim."""
        problem = self.problem()
        if problem:
            raise CheckFailedError(problem)
        claim = await self.claims.create(*await self.slices.devices())
        await self.calls.prepare(claim)
        await self.calls.unprepare(claim)

    def missing_cdi_devices(self, devices: Iterable[dra_plugin_pb2.Device]) -> str:
        """Why a container runtime could not use these devices; empty if it can."""
        try:
            self._cdi.edits(id_ for device in devices for id_ in device.cdi_device_ids)
        except CdiError as error:
            return str(error)
        return ""

    # --- life of the driver ---

    def problem(self) -> str:
        """Why the driver does not run; empty if it does."""
        return self.driver.problem(self.instance)

    def needs_restart(self) -> None:
        if not self.driver.can_restart:
            raise CheckSkippedError("needs a driver that the suite starts: give its command line")

    async def kill_and_start(self) -> None:
        await self.driver.kill(self.instance)
        await self.driver.start(self.instance)
        await self.registrations.register()
