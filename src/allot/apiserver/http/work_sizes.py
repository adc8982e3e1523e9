"""How much work a body is, in bytes of a plain object: what is more than `LARGE` runs in a thread."""

from __future__ import annotations

from typing import Final

from allot.api.protobuf.envelope import MAGIC
from allot.apiserver.http.negotiation import JSON, PROTOBUF, YAML, media_type
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, SLOW, json_work

KINDS_WITH_EXPRESSIONS: Final = frozenset(
    (
        "CustomResourceDefinition",
        "MutatingAdmissionPolicy",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    )
)
"""Raw kinds whose expressions are compiled when they are validated: never on the event loop, however short they are."""


def work_size(request: ApiRequest, target: Target, verb: str) -> int:
    """The work of handling a body, in bytes of a plain object."""
    body, resource = request.body, target.resource
    if _is_heavy(resource):  # never on the event loop
        return max(len(body) * SLOW, LARGE + 1)
    if verb == "patch" and _may_copy(request):
        return max(len(body), LARGE + 1)
    if resource.info.is_typed and _compiles_expressions(request, target, verb):
        return len(body) * SLOW
    # In protobuf and YAML values may be as short as two bytes, and are not as easily counted.
    return json_work(body) if body[:1] in b"{[" else len(body) * (SLOW // 2)


def _may_copy(request: ApiRequest) -> bool:
    """Whether it is a JSON patch that copies: a short one may make a large object, twice as large with each copy."""
    body = request.body
    return (
        body[:1] != b"{" and body.lstrip().startswith(b"[") and (b"copy" in body or b"\\u" in body)
    )


def reading_size(request: ApiRequest, target: Target) -> int:
    """The work of decoding a body, which compiles no expressions, in bytes of a plain object.

    It is more than `LARGE` only if the body has more than `FEW_BYTES`, or if `work_size` is, too.
    """
    body, is_json = request.body, request.headers.get("content-type") == JSON
    size = json_work(body) if is_json else converting_size(request)
    return max(size, len(body) * SLOW, LARGE + 1) if _is_heavy(target.resource) else size


def _is_heavy(resource: Resource) -> bool:
    if resource.custom is not None:
        return resource.custom.is_heavy
    return resource.kind in KINDS_WITH_EXPRESSIONS


def _compiles_expressions(request: ApiRequest, target: Target, verb: str) -> bool:
    """Whether validation compiles expressions of a typed object: in a claim, only when it is created."""
    kind, body = target.resource.kind, request.body
    if target.subresource is not None or (kind == "ResourceClaim" and verb != "create"):
        return False
    # In protobuf expressions have no name.
    return b'"expression' in body or (body.startswith(MAGIC) and kind != "ResourceSlice")


def converting_size(request: ApiRequest) -> int:
    """The work of converting a body to JSON, in bytes of JSON."""
    content_type = request.headers.get("content-type", "")
    cost = None if content_type == JSON else _READING_COSTS.get(media_type(content_type))
    return json_work(request.body) if cost is None else len(request.body) * cost


_READING_COSTS: Final = {YAML: SLOW, PROTOBUF: SLOW // 2}
