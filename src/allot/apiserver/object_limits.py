"""How large an object may become: by defaults, mutation and managedFields it may be larger than the request."""

from __future__ import annotations

from typing import Final

from allot.apiserver import api_errors

MAX_OBJECT: Final = 8 * 1024 * 1024
"""Bytes of JSON. Stores may have lower limits: etcd takes 1.5 MiB by default."""


def check_object_size(size: int) -> None:
    """Raises `ApiError` (413) if the object is too large."""
    if size > MAX_OBJECT:
        raise api_errors.object_too_large(size, MAX_OBJECT)
