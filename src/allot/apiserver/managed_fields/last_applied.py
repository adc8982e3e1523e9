"""The annotation in which kubectl's client-side apply keeps the configuration that it applied last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from allot.apiserver.managed_fields.comparison import compare, field_set
from allot.apiserver.managed_fields.field_sets import FieldSet, difference
from allot.apiserver.managed_fields.updater import Document
from allot.apiserver.managed_fields.validation import type_problems
from allot.apiserver.managed_fields.value_types import ValueType

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS_BYTES: Final = 256 << 10


def last_applied_fields(live: Document, api_version: str, type_: ValueType) -> FieldSet | None:
    """The fields that client-side apply wrote last and that are unchanged; None if it never wrote in this version."""
    text = _annotations(live).get(LAST_APPLIED)
    if not text or not isinstance(text, str):
        return None
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("apiVersion") != api_version:
        return None
    if next(type_problems(type_, document), None) is not None:
        return None
    fields = field_set(type_, document)
    found = compare(type_, document, live)
    for part in (found.removed, found.modified, found.added):
        fields = difference(fields, part)
    return fields


def with_last_applied(document: Document, config: Document) -> Document:
    """The object after an apply of `config`: with its annotation updated, if it has one."""
    annotations = dict(_annotations(document))
    if not annotations.get(LAST_APPLIED):
        return document
    annotations[LAST_APPLIED] = _last_applied_text(config)
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items())
    if size > MAX_ANNOTATIONS_BYTES:
        del annotations[LAST_APPLIED]
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def _annotations(document: Document) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _last_applied_text(config: Document) -> str:
    metadata = dict(config.get("metadata") or {})
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        annotations = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
        metadata["annotations"] = annotations
    document = {**config, "metadata": metadata}
    return msgspec.json.encode(document, order="sorted").decode() + "\n"
