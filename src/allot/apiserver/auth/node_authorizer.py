"""The Node authorizer: kubelets may read the objects of their own pods, and write their own node.

Some resources have rules of their own; for all others the ClusterRole system:node decides.
"""

from __future__ import annotations

from typing import Final

from allot.api.resource import GROUP as DRA
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import ALLOWED, NO_OPINION, Attributes, Decision
from allot.apiserver.auth.node_graph import NodeGraph, Reference
from allot.apiserver.auth.rbac.bootstrap import bootstrap_roles
from allot.apiserver.auth.rbac.rules import PolicyRule

NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
_PREFIX: Final = len(NODE_PREFIX)
NODE_LEASES: Final = "kube-node-lease"
STORAGE: Final = "storage.k8s.io"
CERTIFICATES: Final = "certificates.k8s.io"
_READ: Final = ("get", "list", "watch")


def node_of(user: User) -> str | None:
    """The node of a kubelet; empty if its name is missing, None for users that are not kubelets."""
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX)


class NodeAuthorizer:
    """Allows kubelets access to their own objects."""

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._rules = _node_rules()
        self._by_resource = {
            ("", "secrets"): self._read,
            ("", "configmaps"): self._read,
            ("", "persistentvolumeclaims"): self._volume_claim,
            ("", "persistentvolumes"): self._get,
            (DRA, "resourceclaims"): self._get,
            (STORAGE, "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._service_account,
            ("coordination.k8s.io", "leases"): self._lease,
            (STORAGE, "csinodes"): self._csi_node,
            (DRA, "resourceslices"): self._slice,
            (CERTIFICATES, "podcertificaterequests"): self._pod_certificate_request,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
        }

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if user.name[:_PREFIX] != NODE_PREFIX:  # asked about every request
            return NO_OPINION
        node = node_of(user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no(f'unknown node for user "{user.name}"')
        plural, _, subresource = attributes.resource.partition("/")
        special = self._by_resource.get((attributes.group, plural))
        decision = special(node, attributes, plural, subresource) if special else None
        return self._by_role(attributes) if decision is None else decision

    def _by_role(self, attributes: Attributes) -> Decision:
        allowed = any(rule.allows(attributes) for rule in self._rules)
        return ALLOWED if allowed else NO_OPINION

    # --- objects that pods refer to ---

    def _read(self, node: str, asked: Attributes, plural: str, subresource: str) -> Decision:
        if asked.verb not in _READ:
            return _no("can only read resources of this type")
        if subresource:
            return _no("cannot read subresource")
        if not asked.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, asked, plural)

    def _get(self, node: str, asked: Attributes, plural: str, subresource: str) -> Decision:
        if asked.verb != "get":
            return _no("can only get individual resources of this type")
        if subresource:
            return _no("cannot get subresource")
        return self._related(node, asked, plural)

    def _volume_claim(
        self, node: str, asked: Attributes, plural: str, subresource: str
    ) -> Decision:
        if subresource != "status":
            return self._get(node, asked, plural, subresource)
        if asked.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, asked, plural)

    def _service_account(
        self, node: str, asked: Attributes, plural: str, subresource: str
    ) -> Decision:
        if asked.verb == "get" and not subresource:
            return self._read(node, asked, plural, subresource)
        if asked.verb != "create" or not asked.name:
            return _no("can only create tokens for individual service accounts")
        if subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, asked, plural)

    def _related(self, node: str, asked: Attributes, plural: str) -> Decision:
        if not asked.name:
            return _no("No Object name found")
        if self._is_related(node, asked, plural):
            return ALLOWED
        return _no(f"no relationship found between node '{node}' and this object")

    def _is_related(self, node: str, asked: Attributes, plural: str) -> bool:
        graph, name = self._graph, asked.name
        match plural:
            case "pods":
                return graph.has_pod(node, asked.namespace, name)
            case "resourceslices":
                return bool(graph.value(DRA, plural, "", name, "spec", "nodeName") == node)
            case "podcertificaterequests":
                place = (asked.namespace, name)
                return bool(graph.value(CERTIFICATES, plural, *place, "spec", "nodeName") == node)
            case "volumeattachments":
                return bool(graph.value(STORAGE, plural, "", name, "spec", "nodeName") == node)
            case "persistentvolumes":
                claim = graph.value("", plural, "", name, "spec", "claimRef") or {}
                place = (claim.get("namespace", ""), claim.get("name", ""))
                return graph.refers(node, Reference("persistentvolumeclaims", *place))
        return graph.refers(node, Reference(plural, asked.namespace, name))

    # --- objects of a node ---

    def _lease(self, node: str, asked: Attributes, _plural: str, _: str) -> Decision:
        if asked.verb not in ("get", "create", "update", "patch", "delete"):
            return _no("can only get, create, update, patch, or delete a node lease")
        if asked.namespace != NODE_LEASES:
            return _no(f'can only access leases in the "{NODE_LEASES}" system namespace')
        if asked.verb != "create" and asked.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return ALLOWED

    def _csi_node(self, node: str, asked: Attributes, _plural: str, subresource: str) -> Decision:
        if subresource == "status":
            return _no("CSINode status access requires CSIVolumeHealth feature")
        if subresource:
            return _no("cannot authorize CSINode subresources")
        if asked.verb not in ("get", "create", "update", "patch", "delete"):
            return _no("can only get, create, update, patch, or delete a CSINode")
        if asked.verb != "create" and asked.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return ALLOWED

    def _slice(self, node: str, asked: Attributes, plural: str, subresource: str) -> Decision:
        if subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match asked.verb:
            case "create":
                return ALLOWED  # its content is checked by admission
            case "get" | "update" | "patch" | "delete":
                return self._related(node, asked, plural)
            case "list" | "watch" | "deletecollection":
                if ("spec.nodeName", node) in asked.field_values:
                    return ALLOWED
                return _no(
                    "can only list/watch/deletecollection resourceslices with nodeName field selector"
                )
        return _no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection"
        )

    def _pod_certificate_request(
        self, node: str, asked: Attributes, plural: str, subresource: str
    ) -> Decision:
        if subresource:
            return _no(
                f"nodes may not access the {subresource} subresource of PodCertificateRequests"
            )
        match asked.verb:
            case "create":
                return ALLOWED  # its content is checked by admission
            case "get":
                return self._related(node, asked, plural)
            case "list" | "watch":
                if ("spec.nodeName", node) in asked.field_values:
                    return ALLOWED
                return _no(
                    "can only list/watch podcertificaterequests with nodeName field selector"
                )
        return _no(f"nodes may not {asked.verb} podcertificaterequests")

    def _node(
        self, node: str, asked: Attributes, _plural: str, subresource: str
    ) -> Decision | None:
        if subresource or asked.verb not in _READ:
            return None
        if asked.name == node:
            return ALLOWED
        if asked.name:
            return _no(f"node '{node}' cannot read '{asked.name}', only its own Node object")
        return _no(f"node '{node}' cannot read all nodes, only its own Node object")

    def _pod(self, node: str, asked: Attributes, plural: str, subresource: str) -> Decision | None:
        if subresource or asked.verb not in _READ:
            return None
        if asked.verb != "get" and not asked.name:
            if ("spec.nodeName", node) in asked.field_values:
                return ALLOWED
            return _no("can only list/watch pods with spec.nodeName field selector")
        return self._related(node, asked, plural)


def _no(reason: str) -> Decision:
    return Decision(False, f"node: {reason}")


def _node_rules() -> tuple[PolicyRule, ...]:
    """The rules of system:node. They apply to kubelets without a binding."""
    role = next(
        each.role for each in bootstrap_roles() if each.role["metadata"]["name"] == "system:node"
    )
    return tuple(PolicyRule.from_document(rule) for rule in role["rules"])
