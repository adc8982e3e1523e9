"""ResourceSlices: what a driver publishes for its node, and keeps as it is."""

from __future__ import annotations

from collections import Counter
from typing import Final

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.slices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.client.options import Scope
from allot.client.resources import NODES, RESOURCE_SLICES
from allot.conformance.harness import Harness
from allot.conformance.published_slices import are_complete
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level

SLICES: Final = "resource.k8s.io/v1 ResourceSliceSpec"
HELPER: Final = "dynamic-resource-allocation/resourceslice"


@check(
    "publishing/complete",
    "The node's pools are published, and complete: one generation, as many slices as announced",
    f"{SLICES}.pool, KEP-4381 (pools and generations)",
)
async def publishes(harness: Harness) -> None:
    await harness.slices.complete()


@check(
    "publishing/unique-names",
    "Device names are unique in a pool",
    f"{SLICES}.devices, KEP-4381",
)
async def has_unique_names(harness: Harness) -> None:
    names = Counter(
        (slice_.spec.pool.name, device.name)
        for slice_ in await harness.slices.complete()
        for device in slice_.spec.devices or ()
    )
    for (pool, name), count in names.items():
        if count > 1:
            raise CheckFailedError(f"pool {pool} has {count} devices named {name}")


@check(
    "publishing/owner",
    "Slices of a node are owned by the Node, so that they are deleted with it",
    f"{HELPER}: owner",
)
async def has_owner(harness: Harness) -> None:
    node = await harness.client.get(NODES, ObjectKey("", harness.node))
    for slice_ in await harness.slices.complete():
        owners = {owner.uid for owner in slice_.metadata.owner_references}
        if node.metadata.uid not in owners:
            raise CheckFailedError(
                f"slice {slice_.metadata.name} is not owned by node {harness.node}"
            )


@check(
    "publishing/counters",
    "Counter sets that devices consume are in the pool",
    f"{SLICES}.sharedCounters, KEP-4815",
)
async def has_counters(harness: Harness) -> None:
    slices = await harness.slices.complete()
    known = {
        (slice_.spec.pool.name, each.name)
        for slice_ in slices
        for each in slice_.spec.shared_counters or ()
    }
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            for consumed in device.consumes_counters:
                if (slice_.spec.pool.name, consumed.counter_set) not in known:
                    raise CheckFailedError(
                        f"device {device.name} consumes counter set {consumed.counter_set}, which the pool does not have"
                    )


@check(
    "publishing/quiet",
    "Slices are not written without a change",
    f"{HELPER}: unchanged slices are not updated",
)
async def is_quiet(harness: Harness) -> None:
    before = _versions(await harness.slices.complete())
    await harness.client.clock.sleep(harness.limits.quiet)
    if _versions(await harness.slices.now()) != before:
        raise CheckFailedError(f"slices were written again within {harness.limits.quiet:.0f} s")


@check(
    "publishing/wiped",
    "Slices that the kubelet deleted are published again",
    "kubelet cm/dra: slices of a node are deleted when its kubelet starts",
)
async def survives_a_wipe(harness: Harness) -> None:
    before = _devices(await harness.slices.complete())
    scope = Scope(field_selector=f"spec.nodeName={harness.node},spec.driver={harness.driver_name}")
    await harness.client.delete_collection(RESOURCE_SLICES, scope)
    await _until_published(harness, before, "slices to be published again after they were deleted")


@check(
    "publishing/repaired",
    "Slices that others change are repaired",
    f"{HELPER}: foreign changes are undone",
)
async def repairs_changes(harness: Harness) -> None:
    slices = await harness.slices.complete()
    before = _devices(slices)
    changed = next((each for each in slices if each.spec.devices), None)
    if changed is None:
        raise CheckSkippedError("the driver publishes no devices")
    spec = replace(changed.spec, devices=(Device("conformance-harness"),))
    await harness.client.update(RESOURCE_SLICES, replace(changed, spec=spec))
    await _until_published(harness, before, "a slice to be repaired after it was changed")


@check(
    "publishing/stale",
    "A slice of a pool that the driver does not have is deleted",
    f"{HELPER}: obsolete slices are deleted",
    Level.SHOULD,
)
async def deletes_stale_slices(harness: Harness) -> None:
    await harness.slices.complete()
    name = "conformance-stale"
    stale = _foreign_slice(name, harness.driver_name, harness.node, "conformance-stale")
    await harness.client.create(RESOURCE_SLICES, stale)
    try:

        async def is_gone() -> bool:
            return await harness.client.find(RESOURCE_SLICES, ObjectKey("", name)) is None

        await harness.until(is_gone, "an obsolete slice to be deleted", harness.limits.repair)
    finally:
        await _delete(harness, name)


@check(
    "publishing/others",
    "Slices of other drivers and nodes are left alone",
    f"{HELPER}: a driver lists only its own slices; KEP-4381 (authorization)",
)
async def leaves_others_alone(harness: Harness) -> None:
    before = _devices(await harness.slices.complete())
    others = [
        _foreign_slice(
            "conformance-driver", "other.conformance.example.com", harness.node, harness.node
        ),
        _foreign_slice("conformance-node", harness.driver_name, "conformance-other", "other"),
    ]
    for other in others:
        await harness.client.create(RESOURCE_SLICES, other)
    try:
        scope = Scope(
            field_selector=f"spec.nodeName={harness.node},spec.driver={harness.driver_name}"
        )
        await harness.client.delete_collection(RESOURCE_SLICES, scope)  # makes the driver look
        await _until_published(
            harness, before, "slices to be published again after they were deleted"
        )
        for other in others:
            name = other.metadata.name
            if await harness.client.find(RESOURCE_SLICES, ObjectKey("", name)) is None:
                raise CheckFailedError(
                    f"a slice of driver {other.spec.driver} on node {other.spec.node_name} was deleted"
                )
    finally:
        for other in others:
            await _delete(harness, other.metadata.name)


def _foreign_slice(name: str, driver: str, node: str, pool: str) -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver, ResourcePool(pool, 1, 1), node_name=node, devices=(Device("conformance-harness"),)
    )
    return ResourceSlice(ObjectMeta(name=name), spec)


async def _delete(harness: Harness, name: str) -> None:
    scope = Scope(field_selector=f"metadata.name={name}")
    await harness.client.delete_collection(RESOURCE_SLICES, scope)


def _versions(slices: list[ResourceSlice]) -> dict[str, str]:
    return {each.metadata.name: each.metadata.resource_version for each in slices}


def _devices(slices: list[ResourceSlice]) -> set[tuple[str, str]]:
    return {
        (slice_.spec.pool.name, device.name)
        for slice_ in slices
        for device in slice_.spec.devices or ()
    }


async def _until_published(harness: Harness, wanted: set[tuple[str, str]], what: str) -> None:
    async def is_so() -> bool:
        found = await harness.slices.now()
        return bool(found) and are_complete(found) and _devices(found) == wanted

    await harness.until(is_so, what, harness.limits.repair)
