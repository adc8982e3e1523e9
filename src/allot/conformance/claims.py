"""Claims with allocations, as the scheduler would write them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.resources import RESOURCE_CLAIMS
from allot.conformance.published_slices import PooledDevice
from allot.conformance.registrations import Registrations
from allot.proto import dra_plugin_pb2

NAMESPACE: Final = "conformance"
DEVICE_CLASS: Final = "conformance"


class ClaimUnderTest(NamedTuple):
    """A claim that the harness has made."""

    name: str
    uid: str
    devices: tuple[PooledDevice, ...]
    requests: tuple[str, ...]
    share_ids: tuple[str | None, ...]
    namespace: str = NAMESPACE

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    def message(self) -> dra_plugin_pb2.Claim:
        return dra_plugin_pb2.Claim(namespace=self.namespace, name=self.name, uid=self.uid)


class Claims:
    """The claims of one run. Those that a check has created are in `created`."""

    def __init__(self, client: Client, node: str, registrations: Registrations) -> None:
        self.created: list[ClaimUnderTest] = []
        self._client = client
        self._node = node
        self._registrations = registrations

    async def create(
        self,
        *devices: PooledDevice,
        requests: Iterable[str] = (),
        admin_access: bool = False,
        allocated: bool = True,
        others: Iterable[Mapping[str, Any]] = (),
        config: Iterable[Mapping[str, Any]] = (),
    ) -> ClaimUnderTest:
        """A claim with these devices, one for each request. `others` are results of other drivers.

        A request with a slash is an alternative.
        """
        names = tuple(requests) or tuple(f"r{index}" for index in range(len(devices)))
        name = f"claim-{uuid.uuid4().hex[:12]}"
        share_ids = tuple(
            str(uuid.uuid4()) if each.is_shareable and not admin_access else None
            for each in devices
        )
        others = list(others)
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "devices": {
                    "requests": [
                        *(_request(each, admin_access) for each in names),
                        *(_request(each["request"], False) for each in others),
                    ]
                }
            },
        }
        stored = await self._client.create(RESOURCE_CLAIMS.as_raw(), RawObject(document))
        made = ClaimUnderTest(name, stored.data["metadata"]["uid"], devices, names, share_ids)
        self.created.append(made)
        if allocated:
            driver = self._registrations.driver_name
            results = [
                _result(driver, request, each, share_id, admin_access)
                for request, each, share_id in zip(names, devices, share_ids, strict=True)
            ]
            allocation = {
                "devices": {"results": [*results, *others], "config": list(config)},
                "nodeSelector": _only_node(self._node),
            }
            await self.allocate(made, allocation)
        return made

    async def allocate(self, claim: ClaimUnderTest, allocation: Mapping[str, Any] | None) -> None:
        """Replace the allocation."""
        resource = RESOURCE_CLAIMS.as_raw()

        def changed(current: RawObject) -> RawObject:
            status = {"allocation": allocation} if allocation is not None else {}
            return RawObject({**current.data, "status": status})

        await self._client.update_with_retry(resource, claim.key, changed, subresource="status")

    async def delete(self, claim: ClaimUnderTest) -> None:
        try:
            await self.allocate(claim, None)
            await self._client.delete(RESOURCE_CLAIMS, claim.key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise


def _only_node(node: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _request(name: str, admin_access: bool) -> dict[str, Any]:
    main, _, alternative = name.partition("/")
    if alternative:
        choice = {"name": alternative, "deviceClassName": DEVICE_CLASS}
        return {"name": main, "firstAvailable": [choice]}
    exactly: dict[str, Any] = {"deviceClassName": DEVICE_CLASS}
    if admin_access:
        exactly["adminAccess"] = True
    return {"name": main, "exactly": exactly}


def _result(
    driver: str, request: str, device: PooledDevice, share_id: str | None, admin_access: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "request": request,
        "driver": driver,
        "pool": device.pool,
        "device": device.name,
    }
    if admin_access:
        result["adminAccess"] = True
    if share_id is not None:
        result["shareID"] = share_id
        capacity = {name: str(each.value) for name, each in device.device.capacity.items()}
        if capacity:
            result["consumedCapacity"] = dict.fromkeys(capacity, "0")
    return result
