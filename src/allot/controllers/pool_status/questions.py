"""Requests as the controller keeps them: the question, and whether it is answered. Answers may be large, and are not kept."""

from __future__ import annotations

from typing import Final

from allot.api import v1alpha3
from allot.api.base import ABSENT, ApiObject, Opaque, always
from allot.api.identities import ObjectKey
from allot.api.meta import Condition, ObjectMeta
from allot.api.pool_status import ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec
from allot.api.scheme import encode_hub
from allot.client import resources
from allot.client.codecs import TypedCodec
from allot.client.resources import Resource


class QuestionStatus(ApiObject, frozen=True):
    """What an answer says about itself."""

    conditions: tuple[Condition, ...] = ()


class Question(ApiObject, frozen=True):
    """A ResourcePoolStatusRequest without the pools of its answer."""

    metadata: ObjectMeta = always(ObjectMeta)
    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: QuestionStatus | None = None

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("", self.metadata.name)

    @property
    def is_pending(self) -> bool:
        return self.status is None and self.metadata.deletion_timestamp is None

    def whole(self) -> ResourcePoolStatusRequest:
        """The request as it was before anything answered it."""
        return ResourcePoolStatusRequest(self.metadata, self.spec)


class _WrittenStatus(ApiObject, frozen=True):
    pool_count: int = always(int)
    pools: Opaque = ABSENT
    conditions: tuple[Condition, ...] = ()


class _Written(ApiObject, frozen=True):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = always(ObjectMeta)
    spec: v1alpha3.ResourcePoolStatusRequestSpec = always(v1alpha3.ResourcePoolStatusRequestSpec)
    status: _WrittenStatus = always(_WrittenStatus)


def answered(question: Question, pool_count: int, pools: bytes, condition: Condition) -> bytes:
    """The JSON that answers a question, in v1alpha3. `pools` is JSON already."""
    spec = question.spec
    status = _WrittenStatus(pool_count, Opaque(pools), (condition,))
    written_spec = v1alpha3.ResourcePoolStatusRequestSpec(
        spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute
    )
    return encode_hub(
        _Written(REQUESTS.kind, REQUESTS.api_version, question.metadata, written_spec, status)
    )


REQUESTS: Final = resources.RESOURCE_POOL_STATUS_REQUESTS
KEP_REQUESTS: Final = REQUESTS.in_version("v1alpha1")
QUESTIONS: Final[Resource[Question]] = Resource(
    REQUESTS.group,
    REQUESTS.version,
    REQUESTS.plural,
    REQUESTS.kind,
    REQUESTS.namespaced,
    TypedCodec(REQUESTS.gvk, Question),
)
KEP_QUESTIONS: Final = QUESTIONS.in_version("v1alpha1")
"""The version that knows a time to live, if the server has it."""
