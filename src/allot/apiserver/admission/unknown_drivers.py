"""Warns about ResourcePoolStatusRequests for a driver without ResourceSlices (KEP-5677)."""

from __future__ import annotations

from allot.api.identities import GroupVersion
from allot.api.messages import no_slice_of_driver
from allot.api.pool_status import ResourcePoolStatusRequest
from allot.api.resource import GROUP
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.admission.published_devices import PublishedDevices
from allot.apiserver.kinds.resources import Resource, find
from allot.apiserver.watch_cache.caches import Caches
from allot.features import FeatureGates
from allot.rules import UNKNOWN_DRIVER_WARNING


class UnknownDriverWarning:
    """Accepts every request: a driver may publish later, and the controller reports the same in the status."""

    def __init__(self, caches: Caches, gates: FeatureGates) -> None:
        self._devices = PublishedDevices(caches)
        self._is_on = UNKNOWN_DRIVER_WARNING in gates
        self._resource = find(GroupVersion(GROUP, "v1alpha3"), "resourcepoolstatusrequests")

    def handles(self, operation: str, resource: Resource) -> bool:
        return self._is_on and resource is self._resource and operation == "create"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        request: ResourcePoolStatusRequest = attributes.new
        drivers = await self._devices.drivers()
        if request.spec.driver not in drivers:
            warning = f"spec.driver: {no_slice_of_driver(request.spec.driver, drivers)}"
            return Admitted(warnings=(warning,))
        return ADMITTED
