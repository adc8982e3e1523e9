"""Faults of drivers on command: an annotation of the Node, for simulated drivers and for those behind sockets.

    allot.dev/driver-faults: "gpu.example.com prepare-fails=2; nic.example.com gone"

Entries are separated by semicolons; each names a driver, or `*` for all, and its faults:

    prepare-fails=N      the next N calls of NodePrepareResources fail; without a number: all
    prepare-seconds=S    they take so long before the driver is asked
    prepare-hangs        they are never answered, and end with the kubelet's deadline
    unprepare-fails=N, unprepare-seconds=S, unprepare-hangs: the same for NodeUnprepareResources
    gone                 the driver is not registered
    unhealthy=DEVICE,…   these devices report bad health; unknown=DEVICE,… healthy=DEVICE,… likewise

A number counts calls since the annotation had this value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from allot.client.clock import Clock
from allot.kubelet.dra.claim_info import ClaimReference, PreparedClaim
from allot.kubelet.dra.driver_plugin import DriverCallError, DriverPlugin
from allot.kubelet.dra.health import HealthStatus

DRIVER_FAULTS: Final = "allot.dev/driver-faults"
ALL_DRIVERS: Final = "*"
INJECTED: Final = f"requested by the node's annotation {DRIVER_FAULTS}"
CALL_SECONDS: Final = 45.0
_HEALTH: Final = {
    "healthy": HealthStatus.HEALTHY,
    "unhealthy": HealthStatus.UNHEALTHY,
    "unknown": HealthStatus.UNKNOWN,
}


class FaultSyntaxError(ValueError):
    """The annotation cannot be read."""


@dataclass
class CallFaults:
    """The faults of one method."""

    failures: float = 0.0
    """How many more calls fail."""
    seconds: float = 0.0
    hangs: bool = False

    @property
    def is_any(self) -> bool:
        return bool(self.failures or self.seconds or self.hangs)

    async def inject(self, clock: Clock) -> None:
        if self.hangs:
            await clock.sleep(CALL_SECONDS)
            raise DriverCallError("DeadlineExceeded", "context deadline exceeded")
        if self.seconds:
            await clock.sleep(min(self.seconds, CALL_SECONDS))
            if self.seconds > CALL_SECONDS:
                raise DriverCallError("DeadlineExceeded", "context deadline exceeded")
        if self.failures >= 1:
            self.failures -= 1
            raise DriverCallError("Unavailable", INJECTED)


@dataclass
class DriverFaults:
    """The faults of one driver on one node."""

    is_gone: bool = False
    prepare: CallFaults = field(default_factory=CallFaults)
    unprepare: CallFaults = field(default_factory=CallFaults)
    health_by_device: dict[str, HealthStatus] = field(default_factory=dict)


def parse_faults(text: str) -> dict[str, DriverFaults]:
    """Faults by driver. Raises `FaultSyntaxError`."""
    found: dict[str, DriverFaults] = {}
    for entry in text.split(";"):
        words = entry.split()
        if not words:
            continue
        faults = found.setdefault(words[0], DriverFaults())
        if len(words) == 1:
            raise FaultSyntaxError(f"{words[0]!r} has no fault, such as prepare-fails=1")
        for word in words[1:]:
            _add(faults, word)
    return found


def _add(faults: DriverFaults, word: str) -> None:
    name, _, value = word.partition("=")
    method, _, fault = name.partition("-")
    if name == "gone" and not value:
        faults.is_gone = True
    elif name in _HEALTH and value:
        faults.health_by_device |= dict.fromkeys(value.split(","), _HEALTH[name])
    elif method in ("prepare", "unprepare") and fault in ("fails", "seconds", "hangs"):
        calls = faults.prepare if method == "prepare" else faults.unprepare
        if fault == "fails":
            calls.failures = _number(word, value) if value else math.inf
        elif fault == "seconds":
            calls.seconds = _number(word, value)
        elif value:
            raise FaultSyntaxError(f"{word!r}: prepare-hangs has no value")
        else:
            calls.hangs = True
    else:
        raise FaultSyntaxError(
            f"{word!r} is not a fault; available: prepare-fails[=N], prepare-seconds=S, prepare-hangs, "
            "unprepare-fails[=N], unprepare-seconds=S, unprepare-hangs, gone, unhealthy=DEVICE,…, "
            "unknown=DEVICE,…, healthy=DEVICE,…"
        )


def _number(word: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not math.isfinite(number) or number < 0:
        raise FaultSyntaxError(f"{word!r}: {text!r} is not a number")
    return number


class FaultyPlugin:
    """A driver whose calls have faults."""

    def __init__(self, plugin: DriverPlugin, faults: DriverFaults, clock: Clock) -> None:
        self._plugin = plugin
        self._faults = faults
        self._clock = clock

    @property
    def driver(self) -> str:
        return self._plugin.driver

    @property
    def is_simulated(self) -> bool:
        return self._plugin.is_simulated

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        await self._faults.prepare.inject(self._clock)
        return await self._plugin.prepare(claims)

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        await self._faults.unprepare.inject(self._clock)
        return await self._plugin.unprepare(claims)


class NodeFaults:
    """The faults of a node's drivers, from its annotation."""

    def __init__(self) -> None:
        self._text = ""
        self._by_driver: dict[str, DriverFaults] = {}

    def read(self, text: str) -> bool:
        """Whether the annotation has changed. Raises `FaultSyntaxError`, and has no faults then."""
        if text == self._text:
            return False
        self._text = text
        self._by_driver = {}
        self._by_driver = parse_faults(text)
        return True

    @property
    def by_driver(self) -> Mapping[str, DriverFaults]:
        return self._by_driver

    @property
    def names_devices(self) -> bool:
        return any(faults.health_by_device for faults in self._by_driver.values())

    def of(self, driver: str) -> DriverFaults | None:
        return self._by_driver.get(driver) or self._by_driver.get(ALL_DRIVERS)

    def with_faults(self, plugin: DriverPlugin, clock: Clock) -> DriverPlugin:
        faults = self.of(plugin.driver)
        if faults is None or not (faults.prepare.is_any or faults.unprepare.is_any):
            return plugin
        return FaultyPlugin(plugin, faults, clock)
