"""Device exclusivity: rejects an allocation of a device that another claim holds.

The store has a record of the holders of every allocated device. A write to a claim changes the claim and the
records of its devices in one transaction, each on condition that it has not changed since it was read. So exclusivity
also holds with several API servers on one store. Kubernetes does not check this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from allot.api.base import ApiObject
from allot.api.claims import ResourceClaim
from allot.api.decoding import from_builtin
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.resource import DEVICE_ALREADY_ALLOCATED, GROUP
from allot.api.slices import Device, unrequested_amount
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.admission.published_devices import PublishedDevices
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Workers
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.features import FeatureGates
from allot.rules import CHECK_CONSUMED_CAPACITY
from allot.storage.interface import MISSING, Delete, Entry, Operation, Put, Store
from allot.validation.consumed_capacity import validate_consumed_capacity

PREFIX: Final = "allocated-devices/"


class Holder(ApiObject, frozen=True):
    """A claim that holds a device, or one share of it."""

    claim: str
    uid: str
    share_id: str = ""
    consumed: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Record(ApiObject, frozen=True):
    """All holders of one device."""

    holders: tuple[Holder, ...] = ()


Holdings = Mapping[DeviceId, tuple[Holder, ...]]


class AlreadyHeld(NamedTuple):
    """Another claim holds the device: answered with 409."""

    message: str
    device: DeviceId


class DeviceExclusivity:
    """The admission plugin. Dry runs are not checked."""

    def __init__(self, store: Store, caches: Caches, gates: FeatureGates, workers: Workers) -> None:
        self._store = store
        self._workers = workers
        self._published = PublishedDevices(caches)
        self._gates = gates
        self._claims = resource_named(GROUP, "resourceclaims")

    def handles(self, operation: str, resource: Resource) -> bool:
        """A new claim has no status, so it holds no devices."""
        return resource is self._claims and operation != "create"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        old: ResourceClaim = attributes.old
        new: ResourceClaim | None = None if attributes.is_removal else attributes.new or old
        if attributes.info.dry_run or (
            new is not None
            and new.status.allocation is old.status.allocation
            and new.metadata.uid == old.metadata.uid
        ):
            return ADMITTED  # most writes of claims leave the allocation as it is
        before = holdings_of(old) if old.status.allocation is not None else {}
        after = holdings_of(new)
        devices = touched_devices(before, after)
        if not devices:
            return ADMITTED
        entries: dict[DeviceId, Entry | None] = {}
        size = 0  # a device may have thousands of shares
        for device in devices:
            entry = entries[device] = await self._store.get(record_key(device))
            if entry is not None:
                size += len(entry.value)
        published = await self._published.find(devices)
        resource, name = attributes.resource, attributes.key.name
        if new is not None:
            errors = list(validate_consumed_capacity(new, old, published, self._gates))
            if errors:
                raise api_errors.invalid(resource.group, resource.kind, name, errors)
        checks_shares = CHECK_CONSUMED_CAPACITY in self._gates
        find = partial(
            changed_records, before, after, entries, published, checks_shares=checks_shares
        )
        changed = find() if size <= LARGE else await self._workers.run(size, find)
        if isinstance(changed, AlreadyHeld):
            cause = api_errors.Cause(
                DEVICE_ALREADY_ALLOCATED,
                str(changed.device),
                "status.allocation.devices.results",
            )
            raise api_errors.conflict(resource, name, changed.message, [cause])
        return Admitted(tuple(changed))


_decoder: Final = msgspec.json.Decoder(Record, dec_hook=from_builtin)
_encoder: Final = msgspec.json.Encoder(enc_hook=str)


@lru_cache(maxsize=10_000)
def record_key(device: DeviceId) -> str:
    """Names are short: they have been validated."""
    driver, pool, name = device
    if not _is_unreserved(driver + pool + name):
        driver, pool, name = (quote(part, safe="") for part in device)
    return f"{PREFIX}{driver}/{pool}/{name}"


_is_unreserved: Final = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
"""Whether there is nothing to quote in a string."""


def touched_devices(before: Holdings, after: Holdings) -> list[DeviceId]:
    """The devices whose records a write must change, in order."""
    if not before:
        return sorted(after) if len(after) > 1 else list(after)
    return sorted(
        device for device in before.keys() | after.keys() if before.get(device) != after.get(device)
    )


def changed_records(
    before: Holdings,
    after: Holdings,
    entry_by_device: Mapping[DeviceId, Entry | None],
    published: Mapping[DeviceId, Device],
    *,
    checks_shares: bool,
) -> list[Operation] | AlreadyHeld:
    """The operations to write along with the claim, or the conflict with another claim.

    `entry_by_device` has the records of all `touched_devices`, `published` the devices that are published.
    `checks_shares` is the rule `CheckConsumedCapacity`.
    """
    operations: list[Operation] = []
    for device, entry in entry_by_device.items():
        ours, former = after.get(device, ()), before.get(device, ())
        others: tuple[Holder, ...] = ()
        if entry:
            uids = {holder.uid for holder in (*ours, *former)}
            holders = _decoder.decode(entry.value).holders
            others = tuple([holder for holder in holders if holder.uid not in uids])
        added = tuple([holder for holder in ours if holder not in former]) if former else ours
        held = _held_by_others(
            device, added, ours, others, published.get(device), checks_shares=checks_shares
        )
        if held is not None:
            return held
        key, expected = record_key(device), entry.revision if entry else MISSING
        if others or ours:
            value = _encoder.encode(Record(holders=(*others, *ours)))
            operations.append(Put(key, value, expected))
        elif entry:
            operations.append(Delete(key, expected))
    return operations


def holdings_of(claim: ResourceClaim | None) -> Holdings:
    """The devices that a claim holds."""
    holdings: dict[DeviceId, tuple[Holder, ...]] = {}
    if claim is None or claim.status.allocation is None:
        return holdings
    metadata = claim.metadata
    name = f"{metadata.namespace}/{metadata.name}"
    for result in claim.status.allocation.devices.results:
        if result.admin_access:
            continue  # may use devices that others hold
        device = result.device_id
        consumed = dict(result.consumed_capacity) if result.share_id else {}
        holder = Holder(name, metadata.uid, result.share_id or "", consumed)
        holdings[device] = (*holdings[device], holder) if device in holdings else (holder,)
    return holdings


def _held_by_others(
    device: DeviceId,
    added: tuple[Holder, ...],
    ours: tuple[Holder, ...],
    others: tuple[Holder, ...],
    published: Device | None,
    *,
    checks_shares: bool,
) -> AlreadyHeld | None:
    if not added:
        return None
    # A device is held as a whole by one claim, or in shares; the latter only as long as it may be shared.
    is_exclusive = published is not None and published.allow_multiple_allocations is not True
    for holder in added:
        for other in others:
            if is_exclusive or not holder.share_id or not other.share_id:
                how = "in shares to" if other.share_id else "to"
                by = _named((other,), holder)
                return AlreadyHeld(f"device {device} is already allocated {how} {by}", device)
            if checks_shares and holder.share_id == other.share_id:
                by = _named((other,), holder)
                return AlreadyHeld(
                    f"share {holder.share_id} of device {device} belongs to {by}", device
                )
    everyone = (*ours, *others)
    for name, capacity in published.capacity.items() if published is not None else ():
        # A share without consumed capacity counts like a request without a capacity.
        unstated = unrequested_amount(capacity) if checks_shares else None
        total = 0
        for amount in _amounts(everyone, name, unstated):
            total += amount.nanos
        if total > capacity.value.nanos and any(True for _ in _amounts(added, name, unstated)):
            wanted = sum(_amounts(ours, name, unstated), Quantity.of(0))
            taken = sum(_amounts(others, name, unstated), Quantity.of(0))
            by = _named(others, added[0])
            message = _over_consumed(device, name, capacity.value, taken, wanted, by)
            return AlreadyHeld(message, device)
    return None


def _amounts(
    holders: tuple[Holder, ...], name: str, unstated: Quantity | None
) -> Iterator[Quantity]:
    """What they consume; `unstated` stands for what is missing or negative."""
    for holder in holders:
        amount = holder.consumed.get(name)
        if unstated is not None and (amount is None or amount.nanos < 0):
            amount = unstated
        if amount is not None:
            yield amount


def _over_consumed(
    device: DeviceId,
    name: str,
    capacity: Quantity,
    taken: Quantity,
    wanted: Quantity,
    by: str,
) -> str:
    held = f"{taken} of it is consumed by {by}" if by else "no other claim consumes it"
    return (
        f'device {device} has a capacity "{name}" of {capacity}; {held}, '
        f"and the allocation would consume {wanted}"
    )


def _named(others: tuple[Holder, ...], own: Holder) -> str:
    """The claims of other holders, by name in the namespace of `own` only: its pod's events repeat this message."""
    claims = list(dict.fromkeys(holder.claim for holder in others))
    known = [claim for claim in claims if _namespace(claim) == _namespace(own.claim)]
    quoted = ", ".join(f'"{claim}"' for claim in known)
    parts = [f"claim {quoted}"] if known else []
    match len(claims) - len(known):
        case 0:
            pass
        case 1:
            parts.append("a claim in another namespace")
        case hidden:
            parts.append(f"{hidden} claims in other namespaces")
    return " and ".join(parts)


def _namespace(claim: str) -> str:
    return claim.partition("/")[0]
