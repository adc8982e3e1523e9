"""Views of the core kinds that DRA uses, and typed parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import field

from allot.api.base import ApiObject, always
from allot.api.lazy import lazy
from allot.api.meta import Condition, ObjectMeta
from allot.api.quantity import Quantity, quantity_from_json
from allot.api.raw import OpenObject, RawObject

# --- the DRA parts of a pod ---


class PodResourceClaim(ApiObject, frozen=True):
    """A claim the pod needs: an existing one, or one created from a template."""

    name: str = always(str)
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ContainerClaim(ApiObject, frozen=True):
    """A claim, or one request of it, that a container uses."""

    name: str = always(str)
    request: str = ""


class ResourceRequirements(OpenObject, frozen=True):
    """What a container needs."""

    claims: tuple[ContainerClaim, ...] = ()
    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


class PodLevelResources(OpenObject, frozen=True):
    """What the containers of a pod need together. Claims cannot be named here: not even none of them."""

    claims: tuple[ContainerClaim, ...] | None = None
    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


class Container(OpenObject, frozen=True):
    """A container, as far as DRA is concerned."""

    name: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)


class PodSpec(OpenObject, frozen=True):
    """The DRA parts of a pod's spec."""

    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: PodLevelResources | None = None


class PodResourceClaimStatus(ApiObject, frozen=True):
    """The claim that was created for an entry of the spec."""

    name: str = always(str)
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiObject, frozen=True):
    """Which request of the claim serves an extended resource of a container."""

    container_name: str = always(str)
    resource_name: str = always(str)
    request_name: str = always(str)


class PodExtendedResourceClaimStatus(ApiObject, frozen=True):
    """The claim behind the pod's extended resources (KEP-5004)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = always(str)


class NodeAllocatableAmount(ApiObject, frozen=True):
    """How much of a node resource a claim provides."""

    name: str = always(str)
    quantity: Quantity | None = None


class NodeAllocatableOverheadAmount(ApiObject, frozen=True):
    """The overhead of a claim in a node resource."""

    name: str = always(str)
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(ApiObject, frozen=True):
    """Node resources that a claim provides or consumes."""

    resource_claim_name: str = always(str)
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableAmount, ...] = ()
    overhead: tuple[NodeAllocatableOverheadAmount, ...] = ()


class ResourceHealth(ApiObject, frozen=True):
    """The health of one device."""

    resource_id: str = field(default_factory=str, name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(ApiObject, frozen=True):
    """The health of the devices behind a resource or claim."""

    name: str = always(str)
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(OpenObject, frozen=True):
    """The state of a container, as far as DRA is concerned."""

    name: str = ""
    allocated_resources_status: tuple[ResourceStatus, ...] = ()


class PodStatus(OpenObject, frozen=True):
    """The DRA parts of a pod's status."""

    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class PodParts(OpenObject, frozen=True):
    """The typed parts of a pod."""

    metadata: ObjectMeta = always(ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


# --- views ---


FINISHED: Final = ("Succeeded", "Failed")
"""The phases of pods that do not run again."""


_NO_STATUSES: Final[Mapping[str, str | None]] = {}


class PodClaimEntry(NamedTuple):
    """An entry of `spec.resourceClaims`: an existing claim, or one to be created from a template."""

    name: str
    claim_name: str
    template_name: str


class Pod(RawObject):
    """A pod. Other fields are in `data`."""

    @lazy
    def spec(self) -> PodSpec:
        return self.read(PodSpec, "spec")

    @lazy
    def status(self) -> PodStatus:
        return self.read(PodStatus, "status")

    @lazy
    def node_name(self) -> str:
        return str(self.get("spec", "nodeName", default=""))

    @property
    def scheduler_name(self) -> str:
        return str(self.get("spec", "schedulerName", default="default-scheduler"))

    @lazy
    def phase(self) -> str:
        return str(self.get("status", "phase", default=""))

    @lazy
    def is_finished(self) -> bool:
        return self.get("status", "phase") in FINISHED

    @lazy
    def volumes(self) -> Sequence[dict[str, Any]]:
        """`spec.volumes` as JSON."""
        volumes: Sequence[dict[str, Any]] = self.get("spec", "volumes", default=())
        return volumes

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.read(PodConditions, "status").conditions

    # --- claims: from raw JSON, as event handlers ask every version of every pod ---

    @lazy
    def claim_entries(self) -> Sequence[PodClaimEntry]:
        return [
            PodClaimEntry(
                entry.get("name") or "",
                entry.get("resourceClaimName") or "",
                entry.get("resourceClaimTemplateName") or "",
            )
            for entry in (self.rest.get("spec") or {}).get("resourceClaims") or ()
        ]

    @lazy
    def claim_statuses(self) -> Mapping[str, str | None]:
        """The claims in `status.resourceClaimStatuses` by entry; None for entries that need no claim."""
        entries = (self.rest.get("status") or {}).get("resourceClaimStatuses")
        if not entries:
            return _NO_STATUSES
        return {entry.get("name") or "": entry.get("resourceClaimName") for entry in entries}

    @lazy
    def extended_claim(self) -> str:
        """The claim for the pod's extended resources; empty if it has none."""
        status = (self.rest.get("status") or {}).get("extendedResourceClaimStatus")
        return status.get("resourceClaimName") or "" if status else ""

    @lazy
    def used_claims(self) -> Sequence[str]:
        """The names of all claims that the pod refers to, whether they exist or not."""
        statuses = self.claim_statuses
        names: dict[str | None, None] = {}
        for entry in self.claim_entries:
            names[entry.claim_name or statuses.get(entry.name)] = None
        names[self.extended_claim] = None
        return list(filter(None, names))

    @lazy
    def used_claim_keys(self) -> Sequence[str]:
        """The keys of these claims, as text."""
        namespace = self.key.namespace
        return [f"{namespace}/{name}" for name in self.used_claims]


class PodConditions(OpenObject, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Node(RawObject):
    """A node, as schedulers see it."""

    @property
    def is_unschedulable(self) -> bool:
        return bool(self.get("spec", "unschedulable", default=False))

    @lazy
    def allocatable(self) -> dict[str, Quantity]:
        amounts = self.get("status", "allocatable", default={})
        return {name: quantity_from_json(amount) for name, amount in amounts.items()}

    @property
    def taints(self) -> list[dict[str, Any]]:
        taints: list[dict[str, Any]] = self.get("spec", "taints", default=[])
        return taints


class Namespace(RawObject):
    """A namespace."""

    @lazy
    def is_terminating(self) -> bool:
        return bool(self.get("status", "phase") == "Terminating")


class ResourceQuota(RawObject):
    """Limits of a namespace and their usage."""

    @lazy
    def hard(self) -> dict[str, Quantity]:
        return self._amounts("spec", "hard")

    @lazy
    def used(self) -> dict[str, Quantity]:
        return self._amounts("status", "used")

    def _amounts(self, *path: str) -> dict[str, Quantity]:
        amounts = self.get(*path, default={})
        return {name: quantity_from_json(amount) for name, amount in amounts.items()}


class Event(RawObject):
    """An event about an object."""

    @property
    def reason(self) -> str:
        return str(self.get("reason", default=""))

    @property
    def message(self) -> str:
        return str(self.get("message", default=""))
