"""resource.k8s.io/v1beta1 where it differs from the hub, and conversion to and from it.

Two shapes differ: a request keeps the fields of `exactly` itself, beside `firstAvailable`; and all
of a device but its name lives under `basic`.
"""

from __future__ import annotations

from msgspec import field

from allot.api.base import ApiObject, Int64, always, replace
from allot.api.claims import (
    AllocationMode,
    CapacityRequirements,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimStatus,
)
from allot.api.claims import DeviceClaim as HubDeviceClaim
from allot.api.claims import DeviceRequest as HubDeviceRequest
from allot.api.claims import ResourceClaim as HubResourceClaim
from allot.api.claims import ResourceClaimSpec as HubResourceClaimSpec
from allot.api.claims import ResourceClaimTemplate as HubResourceClaimTemplate
from allot.api.claims import ResourceClaimTemplateSpec as HubResourceClaimTemplateSpec
from allot.api.meta import KubernetesObject, NodeSelector, ObjectMeta
from allot.api.resource import (
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    FullyQualifiedName,
)
from allot.api.slices import (
    AttributeMap,
    CapacityMap,
    CounterSet,
    DeviceCounterConsumption,
    NodeAllocatableResource,
    ResourceName,
    ResourcePool,
    SkippedOperation,
)
from allot.api.slices import Device as HubDevice
from allot.api.slices import ResourceSlice as HubResourceSlice
from allot.api.slices import ResourceSliceSpec as HubResourceSliceSpec


class DeviceRequest(ApiObject, frozen=True):
    """A request with its main alternative spelled out flat.

    Lists are None when they were not sent, because sending an empty one says that there is a main
    alternative.
    """

    name: str = always(str)
    device_class_name: str = always(str)
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: AllocationMode = ""
    count: Int64 = 0
    admin_access: bool | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] | None = None


class DeviceClaim(ApiObject, frozen=True):
    """The requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiObject, frozen=True):
    """The requested devices. Immutable."""

    devices: DeviceClaim = always(DeviceClaim)


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


class BasicDevice(ApiObject, frozen=True):
    """All of a device but its name. Node fields are plain values: empty means unset."""

    attributes: AttributeMap = field(default_factory=dict)
    capacity: CapacityMap = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[ResourceName, NodeAllocatableResource] = field(
        default_factory=dict
    )


class Device(ApiObject, frozen=True):
    """A device that can be allocated."""

    name: str = always(str)
    basic: BasicDevice | None = None


class ResourceSliceSpec(ApiObject, frozen=True):
    """Devices of one pool and the nodes that can use them."""

    driver: str = always(str)
    pool: ResourcePool = always(ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    partition_type_attribute: FullyQualifiedName | None = None
    skip_node_operations: tuple[SkippedOperation, ...] = ()


class ResourceSlice(KubernetesObject, frozen=True):
    """Devices or counters of a pool, published by a driver."""

    spec: ResourceSliceSpec = always(ResourceSliceSpec)


# --- to the hub ---


def claim_to_hub(claim: ResourceClaim) -> HubResourceClaim:
    return HubResourceClaim(claim.metadata, _claim_spec_to_hub(claim.spec), claim.status)


def template_to_hub(template: ResourceClaimTemplate) -> HubResourceClaimTemplate:
    spec = HubResourceClaimTemplateSpec(
        template.spec.metadata, _claim_spec_to_hub(template.spec.spec)
    )
    return HubResourceClaimTemplate(template.metadata, spec)


def _claim_spec_to_hub(spec: ResourceClaimSpec) -> HubResourceClaimSpec:
    devices = spec.devices
    requests = tuple(_request_to_hub(request) for request in devices.requests)
    return HubResourceClaimSpec(HubDeviceClaim(requests, devices.constraints, devices.config))


def _has_main_alternative(request: DeviceRequest) -> bool:
    """Whether any field was sent that in v1 belongs to `exactly`."""
    return bool(
        request.device_class_name
        or request.selectors is not None
        or request.allocation_mode
        or request.count
        or request.admin_access is not None
        or request.tolerations is not None
        or request.capacity is not None
        or request.derived_attributes is not None
    )


def _request_to_hub(request: DeviceRequest) -> HubDeviceRequest:
    exactly = None
    if _has_main_alternative(request):
        exactly = ExactDeviceRequest(
            device_class_name=request.device_class_name,
            selectors=request.selectors or (),
            allocation_mode=request.allocation_mode,
            count=request.count,
            admin_access=request.admin_access,
            tolerations=request.tolerations or (),
            capacity=request.capacity,
            derived_attributes=request.derived_attributes or (),
        )
    return HubDeviceRequest(request.name, exactly, request.first_available)


def slice_to_hub(slice_: ResourceSlice) -> HubResourceSlice:
    spec = slice_.spec
    devices = spec.devices
    return HubResourceSlice(
        slice_.metadata,
        HubResourceSliceSpec(
            driver=spec.driver,
            pool=spec.pool,
            node_name=spec.node_name or None,
            node_selector=spec.node_selector,
            all_nodes=spec.all_nodes or None,
            devices=None if devices is None else tuple(map(_device_to_hub, devices)),
            per_device_node_selection=spec.per_device_node_selection,
            shared_counters=spec.shared_counters,
            partition_type_attribute=spec.partition_type_attribute,
            skip_node_operations=spec.skip_node_operations,
        ),
    )


_BASIC_FIELDS = BasicDevice.__struct_fields__


def _device_to_hub(device: Device) -> HubDevice:
    basic = device.basic
    if basic is None:
        return HubDevice(device.name)
    return HubDevice(device.name, *[getattr(basic, name) for name in _BASIC_FIELDS])


# --- from the hub ---


def claim_from_hub(claim: HubResourceClaim) -> ResourceClaim:
    return ResourceClaim(claim.metadata, _claim_spec_from_hub(claim.spec), claim.status)


def template_from_hub(template: HubResourceClaimTemplate) -> ResourceClaimTemplate:
    spec = ResourceClaimTemplateSpec(
        template.spec.metadata, _claim_spec_from_hub(template.spec.spec)
    )
    return ResourceClaimTemplate(template.metadata, spec)


def _claim_spec_from_hub(spec: HubResourceClaimSpec) -> ResourceClaimSpec:
    devices = spec.devices
    requests = tuple(_request_from_hub(request) for request in devices.requests)
    return ResourceClaimSpec(DeviceClaim(requests, devices.constraints, devices.config))


def _request_from_hub(request: HubDeviceRequest) -> DeviceRequest:
    flat = DeviceRequest(request.name, first_available=request.first_available)
    exactly = request.exactly
    if exactly is None:
        return flat
    return replace(
        flat,
        device_class_name=exactly.device_class_name,
        selectors=exactly.selectors or None,
        allocation_mode=exactly.allocation_mode,
        count=exactly.count,
        admin_access=exactly.admin_access,
        tolerations=exactly.tolerations or None,
        capacity=exactly.capacity,
        derived_attributes=exactly.derived_attributes or None,
    )


def slice_from_hub(slice_: HubResourceSlice) -> ResourceSlice:
    spec = slice_.spec
    devices = spec.devices
    return ResourceSlice(
        slice_.metadata,
        ResourceSliceSpec(
            driver=spec.driver,
            pool=spec.pool,
            node_name=spec.node_name or "",
            node_selector=spec.node_selector,
            all_nodes=spec.all_nodes or False,
            devices=None if devices is None else tuple(map(_device_from_hub, devices)),
            per_device_node_selection=spec.per_device_node_selection,
            shared_counters=spec.shared_counters,
            partition_type_attribute=spec.partition_type_attribute,
            skip_node_operations=spec.skip_node_operations,
        ),
    )


def _device_from_hub(device: HubDevice) -> Device:
    return Device(device.name, BasicDevice(*[getattr(device, name) for name in _BASIC_FIELDS]))
