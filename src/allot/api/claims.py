"""ResourceClaim and ResourceClaimTemplate in resource.k8s.io/v1, the hub version."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import field

from allot.api.base import ABSENT, ApiObject, GoName, Int64, Opaque, Time, always
from allot.api.identities import NamesDevice
from allot.api.meta import Condition, KubernetesObject, NodeSelector, ObjectMeta, Uid
from allot.api.quantity import Quantity
from allot.api.resource import (
    DeviceSelector,
    DeviceToleration,
    FullyQualifiedName,
    OpaqueDeviceConfiguration,
)

AllocationMode = Annotated[str, GoName("{v}.DeviceAllocationMode")]
ConfigSource = Annotated[str, GoName("{v}.AllocationConfigSource")]
SkippedOperation = Annotated[str, GoName("{v}.NodeOperation")]


QuantityMap = Annotated[dict[str, Quantity], GoName("map[{v}.QualifiedName]resource.Quantity")]


class CapacityRequirements(ApiObject, frozen=True):
    """How much of each capacity every allocated device must provide (KEP-5075)."""

    requests: QuantityMap = field(default_factory=dict)


class DeviceDerivedAttribute(ApiObject, frozen=True):
    """An attribute computed from each candidate device, for constraints to refer to (KEP-6080)."""

    name: str = always(str)
    expression: str = always(str)


class ExactDeviceRequest(ApiObject, frozen=True):
    """A request for devices of one class."""

    device_class_name: str = always(str)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: AllocationMode = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ApiObject, frozen=True):
    """One of several alternatives for the same request (KEP-4816)."""

    name: str = always(str)
    device_class_name: str = always(str)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: AllocationMode = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(ApiObject, frozen=True):
    """What a claim asks for under one name: exactly this, or the first available of these."""

    name: str = always(str)
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiObject, frozen=True):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: FullyQualifiedName | None = None
    distinct_attribute: FullyQualifiedName | None = None


class DeviceClaimConfiguration(ApiObject, frozen=True):
    """Driver parameters for the named requests, or for all of them."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiObject, frozen=True):
    """The requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiObject, frozen=True):
    """The requested devices. Immutable."""

    devices: DeviceClaim = always(DeviceClaim)


class DeviceRequestAllocationResult(NamesDevice, ApiObject, frozen=True):
    """One device, or one share of it, allocated for a request."""

    request: str = always(str)
    driver: str = always(str)
    pool: str = always(str)
    device: str = always(str)
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: Annotated[str, GoName("types.UID")] | None = field(default=None, name="shareID")
    consumed_capacity: QuantityMap = field(default_factory=dict)
    skip_node_operations: tuple[SkippedOperation, ...] = ()


class DeviceAllocationConfiguration(ApiObject, frozen=True):
    """Driver parameters of the class or claim at the time of allocation."""

    source: ConfigSource = always(str)
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiObject, frozen=True):
    """All devices of a claim, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiObject, frozen=True):
    """The outcome of an allocation and the nodes it can be used on."""

    devices: DeviceAllocationResult = always(DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


MAX_CONSUMERS: Final = 256
"""Entries of `status.reservedFor`."""


class ResourceClaimConsumerReference(ApiObject, frozen=True):
    """A consumer of the claim: usually a pod."""

    api_group: str = ""
    resource: str = always(str)
    name: str = always(str)
    uid: Uid = always(str)


class NetworkDeviceData(ApiObject, frozen=True):
    """A network device as it appears in the pod."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(NamesDevice, ApiObject, frozen=True):
    """What a driver reports about one allocated device."""

    driver: str = always(str)
    pool: str = always(str)
    device: str = always(str)
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Opaque = ABSENT
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(ApiObject, frozen=True):
    """Allocation, consumers and device status."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubernetesObject, frozen=True):
    """A request for devices, to be used by one or more pods."""

    spec: ResourceClaimSpec = always(ResourceClaimSpec)
    status: ResourceClaimStatus = always(ResourceClaimStatus)


class ResourceClaimTemplateSpec(ApiObject, frozen=True):
    """The claim to create for each pod that refers to the template."""

    metadata: ObjectMeta = always(ObjectMeta)
    spec: ResourceClaimSpec = always(ResourceClaimSpec)


class ResourceClaimTemplate(KubernetesObject, frozen=True):
    """A template for claims, one per pod."""

    spec: ResourceClaimTemplateSpec = always(ResourceClaimTemplateSpec)
