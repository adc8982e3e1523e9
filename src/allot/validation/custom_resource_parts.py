"""Parts of CustomResourceDefinitions: printer columns, subresources, selectable fields and conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from allot.validation.structural.embedded import dns_1035_problems
from allot.validation.structural.field_paths import PathError, path_parts, schema_at
from allot.validation.structural.schemas import Schema
from allot.validation.structural.structure_rules import unsupported
from allot.validation.webhook_configurations import validate_service_path, validate_webhook_url

Document = Mapping[str, Any]

COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
STRATEGIES: Final = ("None", "Webhook")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
MAX_SELECTABLE: Final = 8
_ONE_OF_TYPES: Final = "must be one of " + ",".join(COLUMN_TYPES)


def validate_column(column: Document, path: FieldPath) -> Iterator[FieldError]:
    """One of additionalPrinterColumns."""
    if not column.get("name"):
        yield required(path / "name")
    kind = column.get("type") or ""
    if not kind:
        yield required(path / "type", _ONE_OF_TYPES)
    elif kind not in COLUMN_TYPES:
        yield invalid(path / "type", kind, _ONE_OF_TYPES)
    format_ = column.get("format") or ""
    if format_ and format_ not in COLUMN_FORMATS:
        problem = "must be one of " + ",".join(COLUMN_FORMATS)
        yield invalid(path / "format", format_, problem)
    json_path = column.get("jsonPath") or ""
    if not json_path:
        yield required(path / "JSONPath")
    elif not is_simple_path(json_path):
        yield invalid(path / "JSONPath", json_path, "must be a simple json path starting with .")


def is_simple_path(text: str) -> bool:
    """Whether it is a JSONPath below the object: it starts with a dot and has no braces."""
    return text.startswith(".") and "{" not in text and "}" not in text


# --- subresources ---


def validate_subresources(subresources: Document, path: FieldPath) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    where = path / "scale"
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        text = scale.get(name) or ""
        if not text:
            yield required(where / name)
        elif not is_simple_path(text) or not text.startswith(f"{root}."):
            yield invalid(where / name, text, f"should be a json path under {root}")
    selector = scale.get("labelSelectorPath")
    if selector and not (is_simple_path(selector) and selector.startswith((".spec.", ".status."))):
        problem = "should be a json path under either .spec or .status"
        yield invalid(where / "labelSelectorPath", selector, problem)


# --- selectable fields ---


def validate_selectable_fields(
    fields: Sequence[Document], schema: Schema, path: FieldPath
) -> Iterator[FieldError]:
    if len(fields) > MAX_SELECTABLE:
        yield too_many(path, len(fields), MAX_SELECTABLE)
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where = path @ index / "jsonPath"
        text = field.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        if text in seen:
            yield duplicate(where, text)
            continue
        seen.add(text)
        try:
            found = schema_at(path_parts(text), schema)
        except PathError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if found is None or text.startswith(".metadata"):
            yield invalid(where, text, "is an invalid path: does not refer to a valid field")
        elif found.type not in ("string", "boolean", "integer"):
            yield invalid(
                where,
                text,
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed.",
            )


# --- conversion ---


def validate_conversion(conversion: Document, path: FieldPath) -> Iterator[FieldError]:
    if not conversion:
        return
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook") or {}
    if not strategy:
        yield required(path / "strategy")
    elif strategy not in STRATEGIES:
        yield unsupported(path / "strategy", strategy, STRATEGIES)
    if strategy == "Webhook":
        yield from _validate_webhook(webhook, path)
        return
    if webhook.get("clientConfig"):
        yield forbidden(
            path / "webhookClientConfig", "should not be set when strategy is not set to Webhook"
        )
    if webhook.get("conversionReviewVersions"):
        yield forbidden(
            path / "conversionReviewVersions",
            "should not be set when strategy is not set to Webhook",
        )


def _validate_webhook(webhook: Document, path: FieldPath) -> Iterator[FieldError]:
    client = webhook.get("clientConfig")
    if client is None:
        yield required(path / "webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from _validate_client(client, path / "webhookClientConfig")
    versions = webhook.get("conversionReviewVersions") or []
    where = path / "conversionReviewVersions"
    if not versions:
        yield required(where)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(where @ index, version, "duplicate version")
        elif problems := dns_1035_problems(version):
            yield invalid(where @ index, version, ",".join(problems))
        seen.add(version)
    if seen.isdisjoint(REVIEW_VERSIONS):
        problem = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        yield invalid(where, list(versions), problem)


def _validate_client(client: Document, path: FieldPath) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    if service is None:
        yield from validate_webhook_url(url or "", path / "url")
        return
    where = path / "service"
    if not service.get("name"):
        yield required(where / "name")
    if not service.get("namespace"):
        yield required(where / "namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        problem = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid(where / "port", port, problem)
    if service.get("path") is not None:
        yield from validate_service_path(service["path"], where / "path")
