"""What controllers and the kubelet report about a pod's claims."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from allot.api.core import (
    Container,
    ContainerExtendedResourceRequest,
    ContainerStatus,
    NodeAllocatableResourceClaimStatus,
    PodExtendedResourceClaimStatus,
    PodParts,
    PodSpec,
    ResourceStatus,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from allot.validation.formats import byte_length, is_subdomain
from allot.validation.lists import duplicates
from allot.validation.names import validate_label, validate_subdomain
from allot.validation.node_allocatable import (
    NOT_A_NODE_RESOURCE,
    NOT_NEGATIVE,
    is_node_allocatable,
    validate_overhead_amounts,
)
from allot.validation.pod import all_containers

STATUS: Final = FieldPath("status")
CLAIM_STATUSES: Final = STATUS / "resourceClaimStatuses"
HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
MAX_HEALTH_MESSAGE: Final = 1024
CLAIM_PREFIX: Final = "claim:"
NOT_A_CONTAINER_CLAIM: Final = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' "
    "when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


def validate_pod_status(pod: PodParts) -> Iterator[FieldError]:
    spec, status = pod.spec, pod.status
    if status.resource_claim_statuses:
        yield from _validate_claim_statuses(pod)
    if status.extended_resource_claim_status is not None:
        yield from _validate_extended(
            status.extended_resource_claim_status, spec, STATUS / "extendedResourceClaimStatus"
        )
    if status.node_allocatable_resource_claim_statuses:
        path = STATUS / "nodeAllocatableResourceClaimStatuses"
        known = {claim.resource_claim_name for claim in spec.resource_claims} | {
            claim.resource_claim_name for claim in status.resource_claim_statuses
        }
        for index, node_status in enumerate(status.node_allocatable_resource_claim_statuses):
            yield from _validate_node_allocatable(node_status, known, path @ index)
    if status.container_statuses:
        path = STATUS / "containerStatuses"
        yield from _validate_container_statuses(status.container_statuses, spec.containers, path)
    if status.init_container_statuses:
        path = STATUS / "initContainerStatuses"
        statuses, containers = status.init_container_statuses, spec.init_containers
        yield from _validate_container_statuses(statuses, containers, path)
    for index, container in enumerate(status.ephemeral_container_statuses):
        if container.allocated_resources_status:
            path = STATUS / "ephemeralContainerStatuses" @ index / "allocatedResourcesStatus"
            yield forbidden(path, "must not be specified in container status")


def _validate_claim_statuses(pod: PodParts) -> Iterator[FieldError]:
    known = {claim.name for claim in pod.spec.resource_claims}
    seen: set[str] = set()
    for index, status in enumerate(pod.status.resource_claim_statuses):
        if status.name not in known:
            yield invalid(
                CLAIM_STATUSES @ index / "name",
                status.name,
                "must match the name of an entry in `spec.resourceClaims`",
            )
        if status.name in seen:
            yield duplicate(CLAIM_STATUSES @ index / "name", status.name)
        seen.add(status.name)
        name = status.resource_claim_name
        if name is not None and not is_subdomain(name):
            yield from validate_subdomain(name, CLAIM_STATUSES @ index / "resourceClaimName")


def _validate_extended(
    status: PodExtendedResourceClaimStatus, spec: PodSpec, path: FieldPath
) -> Iterator[FieldError]:
    if not status.request_mappings:
        yield required(path / "requestMappings", "at least one request mapping is required")
    if not status.resource_claim_name:
        yield required(path / "resourceClaimName")
    else:
        yield from validate_subdomain(status.resource_claim_name, path / "resourceClaimName")
    containers = {container.name: container for container in all_containers(spec)}
    requested = {name for container in containers.values() for name in container.resources.requests}
    seen: set[ContainerExtendedResourceRequest] = set()
    for index, mapping in enumerate(status.request_mappings):
        mapping_path = path / "requestMappings" @ index
        container = containers.get(mapping.container_name)
        if container is None:
            yield invalid(
                mapping_path / "containerName",
                mapping.container_name,
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            )
        names = container.resources.requests if container is not None else requested
        if mapping.resource_name not in names:
            yield invalid(
                mapping_path / "resourceName",
                mapping.resource_name,
                "must match the extended resource name of an entry in "
                "spec.initContainers.resources.requests or spec.containers.resources.requests",
            )
        # This path has no index, as in Kubernetes.
        yield from validate_label(mapping.request_name, path / "requestName")
        if mapping in seen:
            yield duplicate(mapping_path / "containerName", mapping.container_name)
            yield duplicate(mapping_path / "resourceName", mapping.resource_name)
            yield duplicate(mapping_path / "requestName", mapping.request_name)
        seen.add(mapping)


def _validate_node_allocatable(
    status: NodeAllocatableResourceClaimStatus, known: AbstractSet[str | None], path: FieldPath
) -> Iterator[FieldError]:
    """`known`: the claims of the pod."""
    if not status.resource_claim_name:
        yield required(path / "resourceClaimName")
    elif status.resource_claim_name not in known:
        yield invalid(
            path / "resourceClaimName",
            status.resource_claim_name,
            "no mapping found in pod reference",
        )
    yield from duplicates(status.containers, path / "containers", lambda name: name, declared=False)
    for index, amount in enumerate(status.mapping):
        amount_path = path / "mapping" @ index
        if not is_node_allocatable(amount.name):
            yield invalid(amount_path / "name", amount.name, NOT_A_NODE_RESOURCE)
        if amount.quantity is not None and amount.quantity.sign < 0:
            yield invalid(amount_path / "quantity", str(amount.quantity), NOT_NEGATIVE)
    for index, overhead in enumerate(status.overhead):
        overhead_path = path / "overhead" @ index
        if not is_node_allocatable(overhead.name):
            yield invalid(overhead_path / "name", overhead.name, NOT_A_NODE_RESOURCE)
        yield from validate_overhead_amounts(
            {"perPod": overhead.per_pod, "perContainer": overhead.per_container}, overhead_path
        )


def _validate_container_statuses(
    statuses: tuple[ContainerStatus, ...], containers: tuple[Container, ...], path: FieldPath
) -> Iterator[FieldError]:
    by_name = {container.name: container for container in containers}
    for index, status in enumerate(statuses):
        container = by_name.get(status.name)  # Kubernetes ignores statuses of other containers
        claims = _claim_resources(container) if container is not None else frozenset()
        for number, resource in enumerate(status.allocated_resources_status):
            resource_path = path @ index / "allocatedResourcesStatus" @ number
            yield from _validate_resource_status(resource, container, claims, resource_path)


def _validate_resource_status(
    status: ResourceStatus, container: Container | None, claims: AbstractSet[str], path: FieldPath
) -> Iterator[FieldError]:
    if container is not None:
        yield from _validate_resource_name(status.name, container, claims, path / "name")
    seen: set[str] = set()
    for index, health in enumerate(status.resources):
        health_path = path / "resources" @ index
        if health.resource_id in seen:
            yield duplicate(health_path / "resourceID", health.resource_id)
        seen.add(health.resource_id)
        if health.health not in HEALTH:
            yield not_supported(health_path / "health", health.health, HEALTH)
        if health.message == "":
            yield required(health_path / "message", "must be non-empty if specified")
        elif health.message and byte_length(health.message) > MAX_HEALTH_MESSAGE:
            yield too_long(health_path / "message", MAX_HEALTH_MESSAGE)


def _validate_resource_name(
    name: str, container: Container, claims: AbstractSet[str], path: FieldPath
) -> Iterator[FieldError]:
    """A claim, or a request of one, that the container uses; or a resource that it requests."""
    if not name.startswith(CLAIM_PREFIX):
        if name not in container.resources.requests:
            yield invalid(path, name, "must match one of the container's resource requests")
    elif name not in claims:
        yield invalid(path, name, NOT_A_CONTAINER_CLAIM)


def _claim_resources(container: Container) -> frozenset[str]:
    """The claims of a container, as the names of resources in its status."""
    return frozenset(
        f"{CLAIM_PREFIX}{claim.name}/{claim.request}"
        if claim.request
        else f"{CLAIM_PREFIX}{claim.name}"
        for claim in container.resources.claims
    )
