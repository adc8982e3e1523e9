"""JSON patches of policies and webhooks, with the error texts that Kubernetes has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from allot.apiserver.dynamic_admission.review_request import Document
from allot.apiserver.registry.patches import PatchError, UnfitOperationError, apply_operations

OPERATIONS: Final = frozenset(("add", "remove", "replace", "move", "copy", "test"))


class JsonPatchError(Exception):
    """The patch does not fit the object."""


class PatchTestError(JsonPatchError):
    """The object is not what a `test` operation expects."""


def apply_json_patch(document: Document, operations: Sequence[Mapping[str, Any]]) -> Document:
    """The document after all operations. `PatchTestError` or `JsonPatchError` if one of them fails."""
    try:
        patched = apply_operations(document, operations)
    except UnfitOperationError as error:
        operation = operations[error.index]
        if operation.get("op") not in OPERATIONS:
            raise JsonPatchError(f"Unexpected kind: {operation.get('op')}") from None
        raise _problem(error.document, operation, error) from None
    except PatchError as error:
        raise JsonPatchError(error.message) from None
    if not isinstance(patched, dict):
        raise JsonPatchError("the patched object is no object")
    return patched


def _problem(document: Any, operation: Mapping[str, Any], error: PatchError) -> JsonPatchError:
    name, path = operation["op"], str(operation.get("path", ""))
    if name == "test":
        return PatchTestError(f"testing value {path} failed: test failed")
    source = str(operation.get("from", ""))
    if name in ("move", "copy") and not _has(document, source):
        what = f"{name} operation does not apply: doc is missing from path: {source}"
        return JsonPatchError(f"{what}: missing value")
    parent, _, last = path.rpartition("/")
    if not _has(document, parent):
        shown = f'"{path}"' if name == "add" else path
        what = f"{name} operation does not apply: doc is missing path: {shown}"
        return JsonPatchError(f"{what}: missing value")
    key = last.replace("~1", "/").replace("~0", "~")
    if name == "remove":
        what = f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}"
        return JsonPatchError(f"{what}: missing value")
    if name == "replace":
        what = f"replace operation does not apply: doc is missing key: {path}"
        return JsonPatchError(f"{what}: missing value")
    return JsonPatchError(error.message)


def _has(document: Any, path: str) -> bool:
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return False
    return True
