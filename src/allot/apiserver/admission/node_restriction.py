"""NodeRestriction: limits what a kubelet may write in its own node, its pods and their objects.

The node authorizer decides which objects it may access; this plugin checks their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from allot.api.resource import GROUP as DRA
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.api_errors import ApiError, Details, forbidden
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes, Authorizer
from allot.apiserver.auth.node_authorizer import NODE_LEASES, NODE_PREFIX, node_of
from allot.apiserver.auth.node_graph import MIRROR, NodeGraph, pod_references
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named
from allot.validation.parts import part, parts, text, texts

RESTRICTED_PREFIX: Final = "node-restriction.kubernetes.io"
KUBELET_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
    )
)
KUBELET_LABEL_NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_CLAIM_STATUSES: Final = (
    ("resourceClaimStatuses", "resource claim statues"),
    ("extendedResourceClaimStatus", "extended resource claim status"),
    ("nodeAllocatableResourceClaimStatuses", "node allocatable resource claim statuses"),
)
_CLAIM_FIELDS: Final = (
    "capacity",
    "conditions",
    "allocatedResources",
    "allocatedResourceStatuses",
    "currentVolumeAttributesClassName",
    "modifyVolumeStatus",
)
"""Fields that a kubelet may write in the status of a PersistentVolumeClaim."""


class NodeRestriction:
    """Rejects writes of a kubelet beyond its rights."""

    def __init__(self, graph: NodeGraph, authorizer: Authorizer) -> None:
        self._graph = graph
        self._authorizer = authorizer
        self._accounts = resource_named("", "serviceaccounts")
        self._checks = {
            resource_named("", "nodes"): self._node,
            resource_named("", "pods"): self._pod,
            resource_named("", "persistentvolumeclaims"): self._volume_claim,
            resource_named("coordination.k8s.io", "leases"): self._lease,
            resource_named("storage.k8s.io", "csinodes"): self._csi_node,
            resource_named(DRA, "resourceslices"): self._slice,
            resource_named("certificates.k8s.io", "podcertificaterequests"): self._certificate,
        }

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource in self._checks

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        caller = attributes.info.caller
        if caller.name.startswith(NODE_PREFIX):
            node = node_of(User(caller.name, groups=caller.groups))
            if node is not None:
                problem = next(self._checks[attributes.resource](node, attributes), None)
                if problem is not None:
                    raise forbidden(attributes.resource, attributes.key.name, problem)
        return ADMITTED

    # --- nodes ---

    def _node(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        name, new, old = attributes.key.name, attributes.new, attributes.old
        if name != node:
            yield f'node "{node}" is not allowed to modify node "{name}"'
        if new is None:
            return
        labels = new.get("metadata", "labels", default={})
        if old is None:
            if refused := _restricted(labels):
                yield f'node "{node}" is not allowed to set the following labels: {refused}'
            return
        before = old.get("metadata", "labels", default={})
        changed = {key for key in {*labels, *before} if labels.get(key) != before.get(key)}
        if refused := _restricted(changed):
            yield f"is not allowed to modify labels: {refused}"
        if new.get("spec", "taints", default=[]) != old.get("spec", "taints", default=[]):
            yield f'node "{node}" is not allowed to modify taints'
        owners = ("metadata", "ownerReferences")
        if new.get(*owners, default=[]) != old.get(*owners, default=[]):
            yield f'node "{node}" is not allowed to modify ownerReferences'

    # --- pods ---

    def _pod(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        new, old = attributes.new, attributes.old
        if old is None:
            yield from self._new_pod(node, new)
            return
        is_own = old.get("spec", "nodeName", default="") == node
        if attributes.info.subresource == "eviction":
            if not is_own:
                yield f"node {node} can only evict pods with spec.nodeName set to itself"
            return
        if new is None:
            if not is_own:
                yield f'node "{node}" can only delete pods with spec.nodeName set to itself'
            return
        if not is_own:
            yield (
                f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'  # noqa: S608
            )
        if new.get("metadata", "labels", default={}) != old.get("metadata", "labels", default={}):
            yield f'node "{node}" cannot update labels through pod status'
        for field, shown in _CLAIM_STATUSES:
            if new.get("status", field) != old.get("status", field):
                yield f'node "{node}" cannot update {shown}'

    def _new_pod(self, node: str, pod: Any) -> Iterator[str]:
        if MIRROR not in pod.get("metadata", "annotations", default={}):
            yield f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        if pod.get("spec", "nodeName", default="") != node:
            yield f'node "{node}" can only create pods with spec.nodeName set to itself'
        yield from self._owner(node, parts(part(pod.data, "metadata"), "ownerReferences"))
        plain = {**pod.data, "metadata": {"name": pod.metadata.name}}
        for reference in pod_references(plain):
            if reference.resource != "serviceaccounts" or reference.name != "default":
                yield f'node "{node}" can not create pods that reference {reference.resource}'
        for volume in parts(part(pod.data, "spec"), "volumes"):
            if _audiences(volume):
                yield (
                    f'node "{node}" can not create pods that reference serviceaccounts '
                    "(via projected volumes)"
                )
        if pod.get("spec", "resourceClaims", default=[]):
            yield f'node "{node}" can not create pods that reference resourceclaims'

    def _owner(self, node: str, owners: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        owner: Mapping[str, Any] = owners[0] if owners else {}
        place = (owner.get("apiVersion"), owner.get("kind"), owner.get("name"))
        if place != ("v1", "Node", node):
            yield f'node "{node}" can only create pods with an owner reference set to itself'
            return
        if not owner.get("controller"):
            yield f'node "{node}" can only create pods with a controller owner reference set to itself'
        if owner.get("blockOwnerDeletion"):
            yield f'node "{node}" must not set blockOwnerDeletion on an owner reference'
        found = self._graph.value("", "nodes", "", node, "metadata", "uid")
        if found != owner.get("uid"):
            yield f"node {node} UID mismatch: expected {owner.get('uid')} got {found}"

    # --- objects of nodes and pods ---

    def _volume_claim(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        new, old = attributes.new, attributes.old
        if new is None or old is None or attributes.info.subresource != "status":
            return
        for field in {*new.get("status", default={}), *old.get("status", default={})}:
            changed = new.get("status", field) != old.get("status", field)
            if changed and field not in _CLAIM_FIELDS:
                yield (
                    f'node "{node}" is not allowed to update fields other than status.quantity and '
                    f"status.conditions: status.{field}"
                )

    def _lease(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        if attributes.key.namespace != NODE_LEASES or attributes.key.name != node:
            yield "can only access node lease with the same name as the requesting node"

    def _csi_node(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        if attributes.key.name != node:
            yield "can only access CSINode with the same name as the requesting node"

    def _slice(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        if attributes.old is None and attributes.new.spec.node_name != node:
            yield "can only create ResourceSlice with the same NodeName as the requesting node"

    def _certificate(self, node: str, attributes: AdmissionAttributes) -> Iterator[str]:
        """A kubelet asks for certificates of its own pods."""
        if attributes.old is not None:
            return
        spec = part(attributes.new.data, "spec")
        asked = text(spec, "nodeName")
        if asked != node:
            yield (
                f'PodCertificateRequest.Spec.NodeName="{asked}", which is not the requesting node "{node}"'
            )
        name = text(spec, "podName")
        pod = self._graph.value("", "pods", attributes.key.namespace, name) or {}
        if text(part(pod, "metadata"), "uid") != text(spec, "podUID"):
            yield f'PodCertificateRequest.Spec.PodName="{name}" is not a pod with the UID in PodUID'
        elif text(part(pod, "spec"), "nodeName") != node:
            yield f'PodCertificateRequest.Spec.PodName="{name}" is not a pod of the requesting node "{node}"'
        elif text(part(pod, "spec"), "serviceAccountName") != text(spec, "serviceAccountName"):
            yield f'PodCertificateRequest.Spec.ServiceAccountName is not the account of pod "{name}"'

    # --- tokens ---

    def check_token(
        self, user: User, namespace: str, account: str, asked: Mapping[str, Any]
    ) -> None:
        """403 unless the token is bound to a pod on the kubelet's node."""
        node = node_of(user)
        if node is None:
            return
        spec = part(asked, "spec")
        bound, audiences = part(spec, "boundObjectRef"), texts(spec, "audiences")
        problem = self._token_problem(user, node, namespace, bound, audiences)
        if problem is not None:
            raise forbidden(self._accounts, account, problem)

    def _token_problem(
        self,
        user: User,
        node: str,
        namespace: str,
        bound: Mapping[str, Any],
        audiences: tuple[str, ...],
    ) -> str | None:
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod"):
            return "node requested token not bound to a pod"
        uid, name = text(bound, "uid"), text(bound, "name")
        if not uid:
            return "node requested token with a pod binding without a uid"
        pod = self._graph.value("", "pods", namespace, name)
        if pod is None:
            raise ApiError(404, "NotFound", f'pod "{name}" not found', Details(name, "", "pod"))
        if pod["metadata"].get("uid") != uid:
            return (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        if text(part(pod, "spec"), "nodeName") != node:
            return "node requested token bound to a pod scheduled on a different node"
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        if audience in self._pod_audiences(pod):
            return None
        asked = Attributes(
            "request-serviceaccounts-token-audience", "", "", audience or "*", namespace
        )
        if self._authorizer.authorize(user, asked).allowed:
            return None
        return f'{user.name} is not authorized to request tokens for audience "{audience}"'

    def _pod_audiences(self, pod: Mapping[str, Any]) -> set[str]:
        """The audiences of the tokens in a pod's volumes."""
        found: set[str] = set()
        for volume in parts(part(pod, "spec"), "volumes"):
            found.update(_audiences(volume))
            driver = text(part(volume, "csi"), "driver")
            if driver:
                requests = self._graph.value(
                    "storage.k8s.io", "csidrivers", "", driver, "spec", "tokenRequests"
                )
                found.update(text(request, "audience") for request in requests or ())
        return found


def _audiences(volume: Mapping[str, Any]) -> list[str]:
    """The audiences of the service account tokens that a volume projects."""
    sources = parts(part(volume, "projected"), "sources")
    return [
        text(part(source, "serviceAccountToken"), "audience")
        for source in sources
        if source.get("serviceAccountToken") is not None
    ]


def _restricted(labels: Iterable[str]) -> str:
    """The labels among these that only administrators may set."""
    return ", ".join(sorted(label for label in labels if not _is_kubelets(label)))


def _is_kubelets(label: str) -> bool:
    prefix, slash, _ = label.partition("/")
    if not slash:
        return True
    if prefix == RESTRICTED_PREFIX or prefix.endswith(f".{RESTRICTED_PREFIX}"):
        return False
    if not _is_in(prefix, ("kubernetes.io", "k8s.io")):
        return True
    return label in KUBELET_LABELS or _is_in(prefix, KUBELET_LABEL_NAMESPACES)


def _is_in(prefix: str, domains: Iterable[str]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)
