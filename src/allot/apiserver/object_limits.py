"""How large and how deep bodies and objects may be.

By defaults, mutation and managedFields an object may become larger than its request.
"""

from __future__ import annotations

from typing import Final

from allot.api.json_limits import MAX_VALUES, has_too_many_values, is_too_deep
from allot.apiserver import api_errors

MAX_OBJECT: Final = 8 * 1024 * 1024
"""Bytes of JSON. Stores may have lower limits: etcd takes 1.5 MiB by default."""


def check_object_size(size: int) -> None:
    """Raises `ApiError` (413) if the object is too large."""
    if size > MAX_OBJECT:
        raise api_errors.object_too_large(size, MAX_OBJECT)


def check_json_limits(body: bytes) -> None:
    """Raises `ApiError` (413, 400) if JSON has too many values or is nested too deeply."""
    if len(body) > MAX_VALUES and has_too_many_values(body):
        raise api_errors.too_many_values(MAX_VALUES)
    if is_too_deep(body):
        raise api_errors.bad_request("json: document is nested too deeply")
