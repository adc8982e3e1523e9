"""Authorization of writes to a claim's status: who may write which fields.

Besides the right to update the status at all, a caller needs one to bind devices (allocation and
reservation) and, per driver, one to report on devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from allot import features
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.resource import GROUP
from allot.apiserver.kinds.request import Permission, WriteRequest
from allot.validation.claim_status import STATUS
from allot.validation.fields import FieldError, forbidden

ADMIN_ACCESS_NEEDS_LABEL: Final = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label "
    "on the containing namespace"
)
NODE_NAME_EXTRA: Final = "authentication.kubernetes.io/node-name"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


def authorize_status_update(
    new: ResourceClaim, old: ResourceClaim, request: WriteRequest
) -> Iterator[FieldError]:
    index = _first_admin_result(new)
    if index is not None:
        yield from _authorize_admin_access(index, old, request)
    if features.GRANULAR_STATUS_AUTHORIZATION in request.gates:
        yield from _authorize_binding(new, old, request)
        if new.status.devices != old.status.devices:
            yield from _authorize_devices(new, old, request)


def _authorize_admin_access(
    index: int, old: ResourceClaim, request: WriteRequest
) -> Iterator[FieldError]:
    """`index`: the first result with admin access."""
    if request.grants_admin_access or _first_admin_result(old) is not None:
        return
    path = STATUS / "allocation" / "devices" / "results" @ index / "adminAccess"
    yield forbidden(path, ADMIN_ACCESS_NEEDS_LABEL)


def _first_admin_result(claim: ResourceClaim) -> int | None:
    allocation = claim.status.allocation
    if allocation is not None:
        for index, result in enumerate(allocation.devices.results):
            if result.admin_access:
                return index
    return None


def _authorize_binding(
    new: ResourceClaim, old: ResourceClaim, request: WriteRequest
) -> Iterator[FieldError]:
    now, before = new.status, old.status
    if now.allocation == before.allocation and now.reserved_for == before.reserved_for:
        return
    permission = _binding_permission(request.verb)
    if not request.caller.may(permission):
        yield forbidden(
            STATUS / "allocation",
            "changing status.allocation or status.reservedFor requires "
            f'resource="{permission.resource}", verb="{permission.verb}" permission: '
            f"{_refusal(permission, request)}",
        )


@lru_cache(8)
def _binding_permission(verb: str) -> Permission:
    return Permission(verb, "resourceclaims/binding", "", "")


def _authorize_devices(
    new: ResourceClaim, old: ResourceClaim, request: WriteRequest
) -> Iterator[FieldError]:
    if new.status.allocation is None:
        return
    before = {device.shared_device_id: device for device in old.status.devices}
    after = {device.shared_device_id: device for device in new.status.devices}
    drivers = {
        identity.driver
        for identity in before.keys() | after.keys()
        if before.get(identity) != after.get(identity)
    }
    verbs = [f"arbitrary-node:{request.verb}"]
    if _runs_on_node(request, _single_node(new.status.allocation)):
        verbs.insert(0, f"associated-node:{request.verb}")
    for driver in sorted(drivers):
        permissions = [
            Permission(verb, "resourceclaims/driver", new.metadata.namespace, driver)
            for verb in verbs
        ]
        if not any(map(request.caller.may, permissions)):
            refused = permissions[-1]
            yield forbidden(
                STATUS / "devices",
                f'changing status.devices requires resource="{refused.resource}", '
                f'verb="[{" ".join(verbs)}]" permission: {_refusal(refused, request)}',
            )


def _single_node(allocation: AllocationResult) -> str | None:
    """The node an allocation is tied to, if it is tied to exactly one by name."""
    selector = allocation.node_selector
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    if field.key != "metadata.name" or field.operator != "In" or len(field.values) != 1:
        return None
    return field.values[0]


def _runs_on_node(request: WriteRequest, node: str | None) -> bool:
    caller = request.caller
    return (
        node is not None
        and caller.name.startswith(SERVICE_ACCOUNT_PREFIX)
        and tuple(caller.extra.get(NODE_NAME_EXTRA, ())) == (node,)
    )


def _refusal(permission: Permission, request: WriteRequest) -> str:
    name = f' "{permission.name}"' if permission.name else ""
    where = (
        f'in the namespace "{permission.namespace}"'
        if permission.namespace
        else "at the cluster scope"
    )
    return (
        f'resourceclaims.{GROUP}{name} is forbidden: User "{request.caller.name}" cannot '
        f'{permission.verb} resource "{permission.resource}" in API group "{GROUP}" {where}'
    )
