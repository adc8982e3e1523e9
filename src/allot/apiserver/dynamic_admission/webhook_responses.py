"""What webhooks answer: AdmissionReviews, checked, or the reason why they are none."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.json_limits import MAX_VALUES, has_too_many_values
from allot.apiserver.api_errors import ApiError, Cause, Details
from allot.apiserver.dynamic_admission.webhook_client import WebhookCallError, WebhookResponse
from allot.apiserver.pacing import release_interpreter
from allot.validation.webhook_configurations import REVIEW_VERSIONS

GROUP: Final = "admission.k8s.io"
_STATUS_TEXTS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
}
_SERVER_ERROR: Final = (
    'an error on the server ("unknown") has prevented the request from succeeding'
)


class InvalidResponseError(Exception):
    """The webhook answered something that is no valid answer to the review."""


class Verdict(NamedTuple):
    """What a webhook decides about a request."""

    allowed: bool
    status: Mapping[str, Any]
    patch: bytes
    patch_type: str
    warnings: list[str]
    annotations: Mapping[str, str]


def read_review(response: WebhookResponse) -> Mapping[str, Any]:
    """The AdmissionReview in a response; `WebhookCallError` if it has none."""
    return read_document(response, "AdmissionReview", {f"{GROUP}/{v}" for v in REVIEW_VERSIONS})


def read_document(
    response: WebhookResponse, expected: str, versions: Container[str]
) -> dict[str, Any]:
    """The review of this kind in a response; `WebhookCallError` if it has none."""
    code, content_type, body = response
    if not 200 <= code < 300:
        raise WebhookCallError(_status_problem(code, body))
    if not body:
        raise WebhookCallError(
            f"0-length response with status code: {code} and content type: {content_type}"
        )
    if has_too_many_values(body):
        raise WebhookCallError(f"the response has more than {MAX_VALUES} values")
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise WebhookCallError(_not_json(body)) from None
    release_interpreter(len(body))
    if not isinstance(document, dict):
        raise WebhookCallError(_not_json(body))
    version, kind = document.get("apiVersion", ""), document.get("kind", "")
    if kind != expected or version not in versions:
        raise WebhookCallError(
            f'no kind "{kind}" is registered for version "{version}" '
            'in scheme "pkg/util/webhook/client.go:74"'
        )
    return document


def _not_json(body: bytes) -> str:
    # The answer is read as YAML, too, in which a word is a string.
    kind = {b"[": "array", b"{": "object"}.get(body.lstrip()[:1], "string")
    return (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of "
        'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" }'
    )


def _status_problem(code: int, body: bytes) -> str:
    """The message of a Status, or what clients say about an answer without one."""
    try:
        document = None if has_too_many_values(body) else msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status":
        return str(document.get("message", ""))
    return _STATUS_TEXTS.get(code) or _SERVER_ERROR


def read_verdict(review: Mapping[str, Any], uid: str, version: str, *, mutates: bool) -> Verdict:
    """The verdict in an AdmissionReview; `InvalidResponseError` if it is not one about `uid`."""
    response = review.get("response")
    if not isinstance(response, dict):
        raise InvalidResponseError("webhook response was absent")
    if version == "v1":
        _check_v1(review, response, uid)
    patch, patch_type = response.get("patch") or "", response.get("patchType") or ""
    if version == "v1":
        if not mutates:
            if patch:
                raise InvalidResponseError("validating webhook may not return response.patch")
            if patch_type:
                raise InvalidResponseError("validating webhook may not return response.patchType")
        elif patch and not patch_type:
            raise InvalidResponseError("webhook returned response.patch but not response.patchType")
        elif patch_type and not patch:
            raise InvalidResponseError("webhook returned response.patchType but not response.patch")
    try:
        decoded = base64.b64decode(patch, validate=True) if isinstance(patch, str) else b""
    except (binascii.Error, ValueError):
        raise InvalidResponseError("illegal base64 data in response.patch") from None
    status = response.get("status")
    warnings = response.get("warnings")
    annotations = response.get("auditAnnotations")
    return Verdict(
        response.get("allowed") is True,
        status if isinstance(status, dict) else {},
        decoded if mutates else b"",
        str(patch_type) or "JSONPatch",
        [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else [],
        annotations if isinstance(annotations, dict) else {},
    )


def _check_v1(review: Mapping[str, Any], response: Mapping[str, Any], uid: str) -> None:
    if response.get("uid") != uid:
        raise InvalidResponseError(
            f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
        )
    seen = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
    wanted = f"{GROUP}/v1, Kind=AdmissionReview"
    if seen != wanted:
        raise InvalidResponseError(f"expected webhook response of {wanted}, got {seen}")


def rejection(name: str, status: Mapping[str, Any]) -> ApiError:
    """The answer to a request that a webhook denies."""
    denied = f'admission webhook "{name}" denied the request'
    message, reason = str(status.get("message") or ""), str(status.get("reason") or "")
    if message:
        text = f"{denied}: {message}"
    elif reason:
        text = f"{denied}: {reason}"
    else:
        text = f"{denied} without explanation"
    code = status.get("code")
    shown = code if isinstance(code, int) and code >= 400 else 400
    return ApiError(shown, reason, text, _details(status.get("details")))


def _details(details: Any) -> Details | None:
    if not isinstance(details, dict):
        return None
    causes = details.get("causes")
    return Details(
        str(details.get("name") or ""),
        str(details.get("group") or ""),
        str(details.get("kind") or ""),
        str(details.get("uid") or ""),
        tuple(
            Cause(*(str(each.get(name) or "") for name in ("reason", "message", "field")))
            for each in (causes if isinstance(causes, list) else [])
            if isinstance(each, dict)
        ),
        details["retryAfterSeconds"] if isinstance(details.get("retryAfterSeconds"), int) else 0,
    )
