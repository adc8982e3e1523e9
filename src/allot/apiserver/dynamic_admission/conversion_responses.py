"""What conversion webhooks answer: ConversionReviews and converted objects, checked.

A webhook may change everything but the kind and the metadata, of which only labels and annotations are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.apiserver.dynamic_admission.webhook_client import WebhookResponse
from allot.apiserver.dynamic_admission.webhook_responses import read_document
from allot.validation.custom_resource_parts import REVIEW_VERSIONS
from allot.validation.fields import FieldError, FieldPath
from allot.validation.metadata import METADATA, validate_annotations, validate_labels

Document = dict[str, Any]

GROUP: Final = "apiextensions.k8s.io"
_SAME: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_GO_TYPES: Final[Mapping[type, str]] = {
    str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}",
    dict: "map[string]interface {}", type(None): "<nil>",
}  # fmt: skip


class ConversionError(Exception):
    """The answer is no conversion of the objects."""


def read_conversion_review(response: WebhookResponse) -> Document:
    """The ConversionReview in a response; `WebhookCallError` if it has none."""
    known = {f"{GROUP}/{version}" for version in REVIEW_VERSIONS}
    return read_document(response, "ConversionReview", known)


def read_objects(review: Mapping[str, Any], uid: str, version: str) -> list[Any]:
    """The objects in a ConversionReview; `ConversionError` if they were not converted."""
    seen = str(review.get("apiVersion", "")).rpartition("/")[2]
    if seen != version:
        raise ConversionError(
            f"converting ({seen}.ConversionReview) to ({version}.ConversionReview): "
            "unknown conversion"
        )
    response = review.get("response")
    if not isinstance(response, dict):
        raise ConversionError("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise ConversionError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    status = result.get("status") or ""
    if status != "Success":
        message = result.get("message")
        raise ConversionError(message or f"response.result.status was '{status}', not 'Success'")
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def checked_object(
    original: Document, answer: Document, desired: str, index: int, count: int
) -> Document:
    """A converted object with the metadata of the original one; `ConversionError` if it is another object."""
    place = "object at index 0" if count == 1 else f"converted object at index {index}"
    version, kind = answer.get("apiVersion") or "", answer.get("kind") or ""
    if version != desired:
        raise ConversionError(
            f"returned invalid {place}: invalid groupVersion (expected {desired}, received {version})"
        )
    if kind != original["kind"]:
        raise ConversionError(
            f"returned invalid {place}: invalid kind (expected {original['kind']}, received {kind})"
        )
    try:
        metadata = _restored_metadata(original, answer)
    except _OtherObjectError as error:
        shown = "object" if count == 1 else place
        raise ConversionError(f"returned invalid {shown}: {error}") from None
    except _MetadataError as error:
        shown = "metadata" if count == 1 else f"metadata in object at index {index}"
        raise ConversionError(f"returned invalid {shown}: {error}") from None
    return {**answer, "metadata": metadata}


class _OtherObjectError(Exception):
    pass


class _MetadataError(Exception):
    pass


def _restored_metadata(original: Document, answer: Document) -> Document:
    """The metadata of the original object, with the labels and annotations of the answer."""
    before, after = original["metadata"], answer.get("metadata")
    named = after if isinstance(after, dict) else {}
    for field, name in _SAME:
        expected, found = before.get(field) or "", named.get(field) or ""
        if expected != found:
            raise _OtherObjectError(f"must have the same {name}: {expected} != {found}")
    if "metadata" not in answer:
        raise _MetadataError("missing metadata in converted object")
    if not isinstance(after, dict):
        raise _MetadataError(f"invalid metadata of type {_go_type(after)} in converted object")
    restored = dict(before)
    for field, path, validate in _CHANGEABLE:
        value = after.get(field)
        restored.pop(field, None)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise _MetadataError(
                f"invalid metadata.{field} of type {_go_type(value)} in converted object"
            )
        for key, text in value.items():
            if not isinstance(text, str):
                raise _MetadataError(
                    f"metadata.{field}[{key}] must be a string, but is {_go_type(text)} "
                    "in converted object"
                )
        if value != before.get(field):
            problems = [str(error) for error in validate(value, path)]
            if problems:
                listed = ", ".join(dict.fromkeys(problems))
                raise _MetadataError(listed if len(problems) == 1 else f"[{listed}]")
        restored[field] = value
    return restored


_Validate = Callable[[Mapping[str, str], FieldPath], Iterator[FieldError]]
_CHANGEABLE: Final[tuple[tuple[str, FieldPath, _Validate], ...]] = (
    ("labels", METADATA / "labels", validate_labels),
    ("annotations", METADATA / "annotation", validate_annotations),
)


def json_problem(value: Any) -> str:
    """Why a value is no object."""
    kind = {str: "string", bool: "bool", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def _go_type(value: Any) -> str:
    return _GO_TYPES[type(value)]
