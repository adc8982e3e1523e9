"""Fields that a write at an endpoint leaves alone whatever it says, and that it therefore never owns."""

from __future__ import annotations

from typing import Final

from allot.apiserver.kinds.resources import Resource
from allot.apiserver.managed_fields.field_sets import FieldSet, from_paths

_SPEC: Final = from_paths(("spec",))
_STATUS: Final = from_paths(("status",))
_SPEC_AND_METADATA: Final = from_paths(("spec",), ("metadata",))

_BY_STATUS_WRITES: Final[dict[tuple[str, str], FieldSet]] = {
    ("", "Pod"): from_paths(
        ("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")
    ),
    ("apps", "Deployment"): from_paths(("spec",), ("metadata", "labels")),
    ("storage.k8s.io", "VolumeAttachment"): _SPEC_AND_METADATA,
    ("resource.k8s.io", "ResourceClaim"): _SPEC_AND_METADATA,
    ("resource.k8s.io", "DeviceTaintRule"): _SPEC_AND_METADATA,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): _SPEC_AND_METADATA,
}
"""Where that is more than the spec."""


def reset_fields(resource: Resource, subresource: str) -> FieldSet:
    """What writes to a resource, or to a part of it, do not change."""
    has_status = resource.subresource("status") is not None
    if not has_status:
        return {}
    if subresource == "status" and resource.custom is not None:
        return _SPEC_AND_METADATA
    if subresource == "status":
        return _BY_STATUS_WRITES.get((resource.group, resource.kind), _SPEC)
    return _STATUS
