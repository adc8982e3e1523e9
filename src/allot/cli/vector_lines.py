"""The lines of vectors: one JSON object with a question each, and its answer."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, field

from allot.api.base import ApiObject

Answer = dict[str, Any]


class Vector(ApiObject, frozen=True):
    """The keys of an input line. Objects stay as they were sent, byte for byte."""

    id: str = ""
    gvk: str = ""
    operation: str = ""
    features: dict[str, bool] = field(default_factory=dict)
    namespace_labels: dict[str, str] = field(default_factory=dict)
    user: str = "someone"
    user_extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verb: str = "update"
    permissions: tuple[dict[str, str], ...] | None = None
    to: str = ""
    old: Raw = Raw()
    object: Raw = Raw()
    claim: Raw = Raw()
    classes: tuple[Raw, ...] | None = None
    items: tuple[str, ...] | None = None
    op: str = ""
    texts: str = ""
    s: str = ""
    a: str = ""
    b: str = ""
    n: int = 0
    scale: int = 0
    raw: Raw = Raw()


decoder: Final = msgspec.json.Decoder(Vector)
