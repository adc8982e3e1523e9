"""Quarantine: failed devices are tainted by a DeviceTaintRule, or removed from their slices.

A device is quarantined before the claim reports its failure, so that the scheduler normally knows of it when it
allocates another device. This is not guaranteed: watches of different kinds are not ordered.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, timedelta
from typing import Final, Protocol

from allot.api.base import replace
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.identities import DeviceId, ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.resource import NO_SCHEDULE, DeviceTaint
from allot.api.times import read_time
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import DEVICE_TAINT_RULES
from allot.client.work_queue import WorkQueue, run_workers

log = logging.getLogger(__name__)

MANAGER: Final = "allot-binding-controller"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTANCE: Final = "app.kubernetes.io/instance"


class Quarantine:
    """Keeps devices that failed permanently from being allocated. This base class does nothing."""

    async def isolate(self, device: DeviceId, reason: str) -> None:
        """Keep the device from being allocated. May be called again for the same device."""

    async def release(self, device: DeviceId) -> None:
        """Allow the device to be allocated again."""

    async def run(self) -> None:
        """Background work. May return."""


class Publisher(Protocol):
    """The publisher of the driver's slices."""

    async def remove(self, device: DeviceId) -> None: ...

    async def restore(self, device: DeviceId) -> None: ...


class SliceRemoval(Quarantine):
    """Removes failed devices from the slices until they are released."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def isolate(self, device: DeviceId, reason: str) -> None:
        await self._publisher.remove(device)

    async def release(self, device: DeviceId) -> None:
        await self._publisher.restore(device)


class TaintRules(Quarantine):
    """Creates a DeviceTaintRule for each failed device, deleted when it is released or after a time.

    The expiry time is an annotation of the rule, so that it survives a restart.
    """

    def __init__(
        self,
        client: Client,
        driver: str,
        *,
        seconds: float | None = 600.0,
        key: str = "",
        effect: str = NO_SCHEDULE,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._driver = driver
        self._seconds = seconds
        self._key = key or f"{driver.lower()}/binding-failed"
        self._effect = effect
        self._until = f"{driver.lower()}/tainted-until"
        self._expiring: WorkQueue[str] = WorkQueue(clock=client.clock)

    async def isolate(self, device: DeviceId, reason: str) -> None:
        rule = self._rule(device, reason)
        try:
            await self._client.create(DEVICE_TAINT_RULES, rule)
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise
            await self._client.update_with_retry(
                DEVICE_TAINT_RULES,
                ObjectKey("", rule.metadata.name),
                lambda known: replace(
                    known,
                    metadata=replace(
                        known.metadata,
                        annotations=known.metadata.annotations | rule.metadata.annotations,
                    ),
                ),
            )
        if self._seconds is not None:
            self._expiring.add_after(rule.metadata.name, self._seconds)

    async def release(self, device: DeviceId) -> None:
        await self._remove(rule_name(device))

    async def run(self) -> None:
        """Delete expired rules, including those of an earlier instance."""
        labels = f"{MANAGED_BY}={MANAGER},{INSTANCE}={self._driver}"
        for rule in (await self._client.list(DEVICE_TAINT_RULES, Scope("", labels))).items:
            self._expiring.add(rule.metadata.name)
        await run_workers(self._expiring, self._expire)

    async def _expire(self, name: str) -> None:
        rule = await self._client.find(DEVICE_TAINT_RULES, ObjectKey("", name))
        until = read_time(rule.metadata.annotations.get(self._until, "")) if rule else None
        if (
            rule is None or until is None
        ):  # a rule without an expiry time stays until it is released
            return
        rest = (until - self._clock.today()).total_seconds()
        if rest > 0:
            self._expiring.add_after(name, rest)
        else:
            await self._remove(name, rule.metadata.uid)

    async def _remove(self, name: str, uid: str = "") -> None:
        try:
            await self._client.delete(DEVICE_TAINT_RULES, ObjectKey("", name), DeleteOptions(uid))
        except ApiStatusError as error:
            if not (error.is_not_found or (uid and error.is_conflict)):
                raise
        else:
            log.info("%s: deleted, the device may be allocated again", name)

    def _rule(self, device: DeviceId, reason: str) -> DeviceTaintRule:
        until = {}
        if self._seconds is not None:
            end = self._clock.today() + timedelta(seconds=self._seconds)
            until = {self._until: end.astimezone(UTC).isoformat()}
        metadata = ObjectMeta(
            name=rule_name(device),
            labels={MANAGED_BY: MANAGER, INSTANCE: self._driver},
            annotations={f"{self._driver.lower()}/reason": reason} | until,
        )
        taint = DeviceTaint(self._key, effect=self._effect)
        return DeviceTaintRule(metadata, DeviceTaintRuleSpec(DeviceTaintSelector(*device), taint))


def rule_name(device: DeviceId) -> str:
    """Derived from the device, so that it has at most one rule."""
    digest = hashlib.sha256(str(device).encode()).hexdigest()[:12]
    return f"binding-failed-{device.device}-{digest}"
