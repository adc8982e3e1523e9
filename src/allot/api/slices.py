"""ResourceSlice in resource.k8s.io/v1, the hub version."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from allot.api.base import ApiObject, GoName, Int64, always
from allot.api.identities import DeviceId
from allot.api.meta import KubernetesObject, NodeSelector
from allot.api.quantity import ZERO, Quantity
from allot.api.resource import DeviceTaint, FullyQualifiedName, QualifiedName

ResourceName = Annotated[str, GoName("v1.ResourceName")]
SkippedOperation = Annotated[str, GoName("{v}.NodeOperation")]


class DeviceAttribute(ApiObject, frozen=True):
    """One value, or one list of values (KEP-5491). Exactly one field is set in a valid attribute."""

    int_: Int64 | None = field(default=None, name="int")
    bool_: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(ApiObject, frozen=True):
    """The amounts from `min` to `max` in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiObject, frozen=True):
    """Which amounts of a capacity a request can consume (KEP-5075)."""

    default: Quantity | None = always(lambda: None)
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiObject, frozen=True):
    """How much of something a device has."""

    value: Quantity = always(lambda: ZERO)
    request_policy: CapacityRequestPolicy | None = None


def unrequested_amount(capacity: DeviceCapacity) -> Quantity:
    """The consumption of a capacity that a request does not mention: the default, or all of it."""
    policy = capacity.request_policy
    if policy is not None and policy.default is not None:
        return policy.default
    return capacity.value


# Keys are plain strings for msgspec, which is fastest, and qualified names for Go.
AttributeMap = Annotated[
    dict[str, DeviceAttribute], GoName("map[{v}.QualifiedName]{v}.DeviceAttribute")
]
CapacityMap = Annotated[
    dict[str, DeviceCapacity], GoName("map[{v}.QualifiedName]{v}.DeviceCapacity")
]


class Counter(ApiObject, frozen=True):
    """An amount that partitions of a device share."""

    value: Quantity = always(lambda: ZERO)


class CounterSet(ApiObject, frozen=True):
    """Counters that the partitions of one physical device share (KEP-4815)."""

    name: str = always(str)
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(ApiObject, frozen=True):
    """What a device consumes of a counter set."""

    counter_set: str = always(str)
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class NodeAllocatableMapping(ApiObject, frozen=True):
    """How much of a node resource the device provides: per unit of a capacity, or per device."""

    capacity_key: QualifiedName | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(ApiObject, frozen=True):
    """The overhead of using the device."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(ApiObject, frozen=True):
    """How a device relates to one of the node's own resources."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(ApiObject, frozen=True):
    """A device that can be allocated.

    `binding_conditions` is None when it is absent: an empty list makes a pool come last, too.
    """

    name: str = always(str)
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


class ResourcePool(ApiObject, frozen=True):
    """The pool a slice belongs to, and how many slices its generation has."""

    name: str = always(str)
    generation: Int64 = always(int)
    resource_slice_count: Int64 = always(int)


class ResourceSliceSpec(ApiObject, frozen=True):
    """Devices of one pool and the nodes that can use them.

    `devices` and `shared_counters` are None when absent: a slice may have one or the other, and an empty
    list counts as present.
    """

    driver: str = always(str)
    pool: ResourcePool = always(ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    partition_type_attribute: FullyQualifiedName | None = None
    skip_node_operations: tuple[SkippedOperation, ...] = ()

    def device_id(self, device: Device) -> DeviceId:
        """The identity of a device of this slice."""
        return DeviceId(self.driver, self.pool.name, device.name)


class ResourceSlice(KubernetesObject, frozen=True):
    """Devices or counters of a pool, published by a driver."""

    spec: ResourceSliceSpec = always(ResourceSliceSpec)
