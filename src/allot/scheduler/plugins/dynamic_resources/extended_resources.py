"""Extended resources that devices back (KEP-5004), and what a claim must request to serve them.

A DeviceClass backs the extended resource that it names, and one that carries its own name. Where a
node has the resource itself, by a device plugin, NodeResourcesFit counts it; elsewhere devices serve it. So
the same pod may need different devices on different nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allot.api.amounts import is_sidecar
from allot.api.claims import DeviceRequest, ExactDeviceRequest
from allot.api.core import ContainerExtendedResourceRequest
from allot.api.resource import EXACT_COUNT
from allot.scheduler.state.resources import read_amounts

NATIVE_DOMAIN: Final = "kubernetes.io/"

ClassOf = Callable[[str], str | None]
"""The device class behind a resource; None if no class offers it."""


class ContainerRequest(NamedTuple):
    """The request of one container for one resource that a device class backs."""

    container: str
    place: int
    """Of the container: init containers come first."""
    position: int
    """Of the resource among all that the container asks for, by name."""
    ends: bool
    """Whether it is an init container that ends before the next one starts."""
    resource: str
    class_name: str
    amount: int

    @property
    def request_name(self) -> str:
        return f"container-{self.place}-request-{self.position}"


class ExtendedRequests(NamedTuple):
    """What a pod asks for of extended resources."""

    requests: tuple[ContainerRequest, ...]
    resources: frozenset[str]
    """Those that a device class backs."""
    others: tuple[str, ...]
    """Those that only nodes themselves can have."""

    @property
    def key(self) -> tuple[tuple[Any, ...], ...]:
        """Equal for pods that need the same devices on the same node."""
        return tuple(request[1:] for request in self.requests)


NO_REQUESTS: Final = ExtendedRequests((), frozenset(), ())


class ServedByDevices(NamedTuple):
    """What a claim must ask for, and which container gets which of its requests."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def read_extended_requests(
    spec: Mapping[str, Any], scalars: Sequence[tuple[str, int]], class_of: ClassOf
) -> ExtendedRequests:
    """The extended resources in a pod's spec. `scalars` are what the pod needs of each in all."""
    class_by_resource = {
        name: class_name for name, _ in scalars if (class_name := class_of(name)) is not None
    }
    if not class_by_resource:
        return NO_REQUESTS
    others = tuple(
        name
        for name, _ in scalars
        if "/" in name and NATIVE_DOMAIN not in name and name not in class_by_resource
    )
    requests = tuple(_container_requests(spec, class_by_resource))
    return ExtendedRequests(requests, frozenset(class_by_resource), others)


def _container_requests(
    spec: Mapping[str, Any], class_by_resource: Mapping[str, str]
) -> Iterator[ContainerRequest]:
    inits = spec.get("initContainers") or ()
    for place, container in enumerate((*inits, *(spec.get("containers") or ()))):
        ends = place < len(inits) and not is_sidecar(container)
        amounts = read_amounts((container.get("resources") or {}).get("requests"))
        for position, (resource, amount) in enumerate(sorted(amounts.items())):
            class_name = class_by_resource.get(resource)
            if class_name is not None and amount > 0:
                name = container.get("name") or ""
                yield ContainerRequest(name, place, position, ends, resource, class_name, amount)


def resources_from_devices(
    wanted: ExtendedRequests, allocatable: Mapping[str, int]
) -> frozenset[str] | None:
    """The resources that devices must serve on a node. None: it lacks one that they cannot serve."""
    if any(not allocatable.get(name) for name in wanted.others):
        return None
    return frozenset(name for name in wanted.resources if not allocatable.get(name))


def serve_with_devices(wanted: ExtendedRequests, resources: frozenset[str]) -> ServedByDevices:
    """What to ask for so that devices serve these resources.

    An init container that ends makes do with what containers get that start after it, and with what other
    such init containers got; only what is then still missing is asked for in its own name.

        init (3) ─ends─► app (2)      app: 2 devices of its own; init: those, and 1 more
    """
    served = [request for request in wanted.requests if request.resource in resources]
    asked = {request: request.amount for request in served if not request.ends}
    sources = {request: [request] for request in asked}
    in_use: dict[int, set[ContainerRequest]] = {}
    for request in served:
        if not request.ends:
            continue
        own = in_use.setdefault(request.place, set())
        sources[request] = found = _reusable(request, asked, own)
        missing = request.amount - sum(asked[source] for source in found)
        if missing > 0:
            asked[request] = missing
            found.append(request)
        own.update(found)
    return ServedByDevices(
        tuple(_device_request(one, asked[one]) for one in served if one in asked),
        tuple(_mapping(user, source) for user in served for source in sources[user]),
    )


def _reusable(
    request: ContainerRequest,
    asked: Mapping[ContainerRequest, int],
    in_use: Container[ContainerRequest],
) -> list[ContainerRequest]:
    """What others ask for and an init container can use before them or after them: no more than it needs."""
    found: list[ContainerRequest] = []
    missing = request.amount
    for other, amount in asked.items():
        if missing <= 0:
            break
        is_idle = other.ends or other.place > request.place
        if is_idle and other.class_name == request.class_name and other not in in_use:
            found.append(other)
            missing -= amount
    return found


def _device_request(request: ContainerRequest, count: int) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=request.class_name, allocation_mode=EXACT_COUNT, count=count
    )
    return DeviceRequest(name=request.request_name, exactly=exactly)


def _mapping(user: ContainerRequest, source: ContainerRequest) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(
        container_name=user.container,
        resource_name=user.resource,
        request_name=source.request_name,
    )
