"""Prepares and unprepares claims: everything around the driver's own work.

    GET the claim ──► its UID and allocation ──► the devices exist, and no other claim has them
      ──► checkpoint: about to be prepared ──► Driver.prepare ──► metadata and CDI files ──► checkpoint: prepared

A claim that is prepared is answered from the checkpoint. One that was only about to be, or whose allocation has changed,
is unprepared or prepared again: `Driver.prepare` and `Driver.unprepare` are idempotent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.client.client import Client
from allot.client.discovery import served
from allot.client.errors import ClientError
from allot.client.resources import RESOURCE_CLAIMS, Resource
from allot.driver.kubelet_plugin.cdi_files import CdiFiles, is_safe_uid
from allot.driver.kubelet_plugin.checkpoint import (
    CheckpointedClaim,
    CheckpointedDevice,
    Claims,
    DriverCheckpoint,
    locked,
)
from allot.driver.kubelet_plugin.claims import (
    AllocatedClaim,
    AllocatedDevice,
    ClaimReference,
    PreparedDevice,
    allocated_devices,
)
from allot.driver.kubelet_plugin.device_metadata import DeviceMetadataError, DeviceMetadataFiles
from allot.driver.kubelet_plugin.driver import Driver, PrepareError
from allot.driver.kubelet_plugin.metrics import PREPARE, UNPREPARE, DriverMetrics

log = logging.getLogger(__name__)

SERIALIZE_LOCK: Final = "serialize.lock"
"""Held during a call, so that two instances of a driver do not work at the same time. The name in Kubernetes' helper."""


_Work = Callable[[ClaimReference], Awaitable[tuple[CheckpointedDevice, ...]]]


class ClaimAnswer(NamedTuple):
    """What the kubelet is told about a claim."""

    devices: tuple[CheckpointedDevice, ...] = ()
    error: str = ""


class ClaimPreparation:
    """The claims of one driver on one node."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        directory: Path,
        checkpoint: DriverCheckpoint,
        cdi: CdiFiles,
        metadata: DeviceMetadataFiles,
        known_devices: Callable[[], Collection[tuple[str, str]]],
        metrics: DriverMetrics,
        *,
        serialize: bool = True,
    ) -> None:
        """`known_devices` are pool and name of all devices that the driver has published."""
        self._driver = driver
        self._client = client
        self._directory = directory
        self._checkpoint = checkpoint
        self._cdi = cdi
        self._metadata = metadata
        self._known_devices = known_devices
        self._metrics = metrics
        self._serialize = serialize
        self._turn = asyncio.Lock()
        self._claim_turns: dict[str, asyncio.Lock] = {}
        self._claims: Resource[ResourceClaim] | None = None
        metrics.prepared_claims(len(checkpoint.read()))

    # --- calls ---

    async def prepare(self, references: Iterable[ClaimReference]) -> dict[str, ClaimAnswer]:
        """An answer for each claim, by UID."""
        return await self._answer(references, self._prepare_one, PREPARE)

    async def unprepare(self, references: Iterable[ClaimReference]) -> dict[str, ClaimAnswer]:
        return await self._answer(references, self._unprepare_one, UNPREPARE)

    async def _answer(
        self, references: Iterable[ClaimReference], work: _Work, operation: str
    ) -> dict[str, ClaimAnswer]:
        answers = {}
        async with self._own_turn():
            for reference in references:
                log.debug("%s: %s (%s)", operation, reference, reference.uid)
                answers[reference.uid] = await self._answer_one(reference, work, operation)
        self._metrics.prepared_claims(len(self._checkpoint.read()))
        return answers

    async def _answer_one(
        self, reference: ClaimReference, work: _Work, operation: str
    ) -> ClaimAnswer:
        if not is_safe_uid(reference.uid):
            return ClaimAnswer(error=f"claim {reference}: invalid UID {reference.uid!r}")
        turn = self._claim_turns.setdefault(reference.uid, asyncio.Lock())
        try:
            async with turn:
                with self._metrics.claim(operation):
                    return ClaimAnswer(await work(reference))
        except (PrepareError, ClientError, OSError) as error:
            log.warning("%s: claim %s: %s", operation, reference, error)
            return ClaimAnswer(error=str(error) or type(error).__name__)
        except Exception as error:
            log.exception("%s: claim %s", operation, reference)
            return ClaimAnswer(error=f"{type(error).__name__}: {error}")
        finally:
            if not turn.locked():
                self._claim_turns.pop(reference.uid, None)

    @asynccontextmanager
    async def _own_turn(self) -> AsyncIterator[None]:
        """Alone among the calls of all instances, unless calls may run at the same time."""
        async with AsyncExitStack() as stack:
            if self._serialize:
                await stack.enter_async_context(self._turn)
                lock = locked(self._directory / SERIALIZE_LOCK)
                await asyncio.to_thread(lock.__enter__)
                stack.callback(lock.__exit__, None, None, None)
            yield

    # --- prepare ---

    async def _prepare_one(self, reference: ClaimReference) -> tuple[CheckpointedDevice, ...]:
        claim = await self._read(reference)
        allocation = claim.status.allocation
        if allocation is None:
            raise PrepareError(f"claim {reference} is not allocated")
        devices = allocated_devices(allocation, self._driver.name)
        known = self._checkpoint.read().get(reference.uid)
        if known is not None and known.allocated != devices:
            await self._undo(known)
            known = None
        if known is not None and known.is_prepared and self._has_files(known):
            return known.devices
        self._reserve(reference, devices)
        allocated = AllocatedClaim(reference, devices, claim)
        prepared = tuple(await self._driver.prepare(allocated))
        self._check(prepared, devices)
        prepared += _without_answer(prepared, devices)
        metadata = self._metadata.write(claim, prepared)
        self._cdi.write(reference.uid, prepared, metadata)
        ids = self._cdi.device_ids(reference.uid, prepared, metadata)
        ids_by_device = dict(zip((each.allocated for each in prepared), ids, strict=True))
        answer = tuple(
            CheckpointedDevice(device, ids_by_device.get(device, ())) for device in devices
        )
        with self._checkpoint.changing() as claims:
            claims[reference.uid] = CheckpointedClaim(reference, answer, is_prepared=True)
        return answer

    async def _read(self, reference: ClaimReference) -> ResourceClaim:
        if self._claims is None:
            self._claims = await served(self._client, RESOURCE_CLAIMS)
        if self._claims is None:
            raise PrepareError("the API server does not serve resourceclaims.resource.k8s.io")
        claim = await self._client.find(self._claims, reference.key)
        if claim is None:
            raise PrepareError(f"claim {reference} does not exist")
        if claim.metadata.uid != reference.uid:
            raise PrepareError(
                f"claim {reference} got replaced: its UID is {claim.metadata.uid}, not {reference.uid}"
            )
        return claim

    def _has_files(self, claim: CheckpointedClaim) -> bool:
        """Whether the metadata is there, and the CDI file, if the claim has one: /var/run does not survive a reboot."""
        requests = {each.base_request for each in claim.allocated}
        if not self._metadata.exist(claim.reference.uid, requests):
            return False
        is_needed = any(
            self._cdi.owns(id_) for each in claim.devices for id_ in each.cdi_device_ids
        )
        return not is_needed or self._cdi.exists(claim.reference.uid)

    def _reserve(self, reference: ClaimReference, devices: tuple[AllocatedDevice, ...]) -> None:
        """Check the devices, and note that the claim is about to be prepared."""
        known = self._known_devices()
        for device in devices:
            if (device.pool, device.device) not in known:
                raise PrepareError(f"device {device.device} of pool {device.pool} does not exist")
        with self._checkpoint.changing() as claims:
            for device in devices:
                holder = _holder(claims, reference.uid, device)
                if holder is not None:
                    raise PrepareError(
                        f"device {device.device} of pool {device.pool} is prepared for claim {holder}"
                    )
            entries = tuple(CheckpointedDevice(device) for device in devices)
            claims[reference.uid] = CheckpointedClaim(reference, entries)

    def _check(
        self, prepared: tuple[PreparedDevice, ...], devices: tuple[AllocatedDevice, ...]
    ) -> None:
        for device in prepared:
            if device.allocated not in devices:
                raise PrepareError(
                    f"the driver prepared {device.allocated.device}, which the claim does not have"
                )

    # --- prepared claims ---

    def prepared_claims(self) -> tuple[AllocatedClaim, ...]:
        """The claims that are prepared, also by an earlier process."""
        return tuple(
            AllocatedClaim(claim.reference, claim.allocated)
            for claim in self._checkpoint.read().values()
            if claim.is_prepared
        )

    def update_metadata(self, uid: str, devices: Iterable[PreparedDevice]) -> None:
        """Replace the metadata of the requests that these devices are for. Raises `DeviceMetadataError`."""
        by_request: dict[str, list[PreparedDevice]] = {}
        for device in devices:
            by_request.setdefault(device.allocated.base_request, []).append(device)
        with self._checkpoint.changing() as claims:
            claim = claims.get(uid)
            if claim is None or not claim.is_prepared:
                raise DeviceMetadataError(f"no claim with UID {uid} is prepared")
            for request, given in by_request.items():
                _check_devices_of_request(claim, request, given)
            for request, given in by_request.items():
                self._metadata.update(uid, request, given)

    # --- unprepare ---

    async def _unprepare_one(self, reference: ClaimReference) -> tuple[CheckpointedDevice, ...]:
        known = self._checkpoint.read().get(reference.uid)
        if known is not None:
            await self._undo(known)
        return ()

    async def _undo(self, claim: CheckpointedClaim) -> None:
        await self._driver.unprepare(AllocatedClaim(claim.reference, claim.allocated))
        self._cdi.remove(claim.reference.uid)
        self._metadata.remove(claim.reference.uid)
        with self._checkpoint.changing() as claims:
            claims.pop(claim.reference.uid, None)


def _without_answer(
    prepared: Iterable[PreparedDevice], devices: Iterable[AllocatedDevice]
) -> tuple[PreparedDevice, ...]:
    """Devices that containers do not get, such as network interfaces: only their metadata, which comes later."""
    answered = {each.allocated for each in prepared}
    return tuple(each.prepared(attributes={}) for each in devices if each not in answered)


def _check_devices_of_request(
    claim: CheckpointedClaim, request: str, given: Iterable[PreparedDevice]
) -> None:
    """The file of a request is about all its devices."""
    own = [each for each in claim.allocated if each.base_request == request]
    if not own:
        raise DeviceMetadataError(
            f'request "{request}" not found in prepared claim {claim.reference}'
        )
    if {each.allocated for each in given} != set(own):
        names = ", ".join(each.device for each in own)
        raise DeviceMetadataError(
            f'request "{request}" of claim {claim.reference} has the devices {names}: '
            "give the metadata of all of them, and of no others"
        )


def _holder(claims: Claims, uid: str, device: AllocatedDevice) -> ClaimReference | None:
    """Another claim that has the device, or the same share of it."""
    for other_uid, claim in claims.items():
        if other_uid == uid or device.admin_access:
            continue
        for other in claim.allocated:
            if (other.pool, other.device) != (device.pool, device.device) or other.admin_access:
                continue
            if device.is_exclusive or other.is_exclusive or other.share_id == device.share_id:
                return claim.reference
    return None
