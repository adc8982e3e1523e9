"""Requests as the controller caches them: without the pools in their status, which may be large."""

from __future__ import annotations

from typing import Final

from allot.api import v1alpha3
from allot.api.base import ABSENT, ApiObject, Opaque, Time, always
from allot.api.identities import ObjectKey
from allot.api.meta import Condition, ObjectMeta
from allot.api.pool_status import ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec
from allot.api.scheme import encode_hub
from allot.client import resources
from allot.client.codecs import TypedCodec
from allot.client.resources import Resource


class PartialRequestStatus(ApiObject, frozen=True):
    """The status without the pools."""

    conditions: tuple[Condition, ...] = ()
    observation_time: Time | None = None


class PartialRequest(ApiObject, frozen=True):
    """A ResourcePoolStatusRequest without the pools in its status."""

    metadata: ObjectMeta = always(ObjectMeta)
    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: PartialRequestStatus | None = None

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.metadata.name)

    def is_answered(self, *, needs_observation_time: bool) -> bool:
        """Whether the status is final: any status, or one with an observation time (KEP-5677)."""
        if self.status is None:
            return False
        return self.status.observation_time is not None or not needs_observation_time

    def whole(self) -> ResourcePoolStatusRequest:
        """The request without a status."""
        return ResourcePoolStatusRequest(self.metadata, self.spec)


class _WrittenStatus(ApiObject, frozen=True):
    pool_count: int = always(int)
    pools: Opaque = ABSENT
    conditions: tuple[Condition, ...] = ()
    validation_errors: tuple[str, ...] = ()


class _Written(ApiObject, frozen=True):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = always(ObjectMeta)
    spec: v1alpha3.ResourcePoolStatusRequestSpec = always(v1alpha3.ResourcePoolStatusRequestSpec)
    status: _WrittenStatus = always(_WrittenStatus)


def answered(
    request: PartialRequest,
    pool_count: int,
    pools: bytes,
    condition: Condition,
    errors: tuple[str, ...] = (),
) -> bytes:
    """The request with its status, as JSON in v1alpha3. `pools` is encoded already.

    `errors` is for servers that know the KEP's fields. The observation time is in the condition.
    """
    spec = request.spec
    status = _WrittenStatus(pool_count, Opaque(pools), (condition,), errors)
    written_spec = v1alpha3.ResourcePoolStatusRequestSpec(
        spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute
    )
    return encode_hub(
        _Written(REQUESTS.kind, REQUESTS.api_version, request.metadata, written_spec, status)
    )


REQUESTS: Final = resources.RESOURCE_POOL_STATUS_REQUESTS
KEP_REQUESTS: Final = REQUESTS.in_version("v1alpha1")
PARTIAL_REQUESTS: Final[Resource[PartialRequest]] = Resource(
    REQUESTS.group,
    REQUESTS.version,
    REQUESTS.plural,
    REQUESTS.kind,
    REQUESTS.namespaced,
    TypedCodec(REQUESTS.gvk, PartialRequest),
)
KEP_PARTIAL_REQUESTS: Final = PARTIAL_REQUESTS.in_version("v1alpha1")
"""The version with a TTL, if the server serves it."""
