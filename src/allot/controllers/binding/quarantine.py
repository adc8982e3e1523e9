"""Keeping broken devices from being picked again: by a taint from outside, or by not offering them.

It happens before the claim says that the device has failed, so that the scheduler, when it looks for
another device, has a chance to know already. It has no guarantee: changes of different objects may
reach it in any order.
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
    """What becomes of devices that failed for good. This one leaves them where they are."""

    async def isolate(self, device: DeviceId, reason: str) -> None:
        """Keep the device from being picked. May be called again for the same device."""

    async def release(self, device: DeviceId) -> None:
        """The device works again."""

    async def run(self) -> None:
        """Whatever has to be done in the background. May return."""


class Publisher(Protocol):
    """Whoever publishes the driver's slices."""

    async def remove(self, device: DeviceId) -> None: ...

    async def restore(self, device: DeviceId) -> None: ...


class SliceRemoval(Quarantine):
    """Broken devices are not published until they are released."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def isolate(self, device: DeviceId, reason: str) -> None:
        await self._publisher.remove(device)

    async def release(self, device: DeviceId) -> None:
        await self._publisher.restore(device)


class TaintRules(Quarantine):
    """A DeviceTaintRule for each broken device, removed when it is released or after a time.

    The time is kept in the rule, so a restart does not make it longer.
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
        """Remove rules whose time is over, also those of an earlier life."""
        labels = f"{MANAGED_BY}={MANAGER},{INSTANCE}={self._driver}"
        for rule in (await self._client.list(DEVICE_TAINT_RULES, Scope("", labels))).items:
            self._expiring.add(rule.metadata.name)
        await run_workers(self._expiring, self._expire)

    async def _expire(self, name: str) -> None:
        rule = await self._client.find(DEVICE_TAINT_RULES, ObjectKey("", name))
        until = read_time(rule.metadata.annotations.get(self._until, "")) if rule else None
        if rule is None or until is None:  # without a time it is there until it is released
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
            log.info("%s: the device may be used again", name)

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
    """The same for the same device, so that there is never more than one rule."""
    digest = hashlib.sha256(str(device).encode()).hexdigest()[:12]
    return f"binding-failed-{device.device}-{digest}"
