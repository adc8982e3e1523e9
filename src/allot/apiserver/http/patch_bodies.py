"""Patches in the bodies of requests."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.http.negotiation import (
    PATCH_FORMATS,
    BodyError,
    patch_format,
)
from allot.apiserver.http.requests import (
    ApiRequest,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.http.type_checks import no_object
from allot.apiserver.managed_fields.validation import go_text
from allot.apiserver.registry.patches import (
    PatchError,
    json_patch,
    merge_patch,
    strategic_merge_patch,
    touched_parts,
)
from allot.apiserver.schemas.types import type_of
from allot.features import FeatureGates
from allot.rules import LOCATED_ERRORS

CUSTOM_PATCHES: Final = {
    media: form for media, form in PATCH_FORMATS.items() if form != "strategic"
}
"""The patches of custom resources, for which Go has no merge keys."""


def is_apply_patch(request: ApiRequest) -> bool:
    """Whether a patch is a configuration to apply; 415 if it is nothing that is known."""
    try:
        return patch_format(request.header("content-type")) == "apply"
    except BodyError as error:
        raise error.api_error() from None


UNFIT: Final = 422
_TYPE: Final = frozenset(("kind", "apiVersion"))


class Patch:
    """A patch that can be applied again after a write conflict. What a server-side apply sends is none."""

    def __init__(self, request: ApiRequest, target: Target, gates: FeatureGates) -> None:
        self._gates = gates
        is_custom = target.resource.custom is not None
        try:
            self._format = patch_format(
                request.header("content-type"), CUSTOM_PATCHES if is_custom else PATCH_FORMATS
            )
        except BodyError as error:
            raise error.api_error() from None
        self._body = request.body
        self._schema = None
        if self.is_strategic and not is_custom:
            self._schema = type_of(target.resource.gvk(target.version))
        parts = touched_parts(self._format, self._body)
        self.parts = None if parts is None else parts - _TYPE
        """The top-level fields that it touches; None if these may be all of them."""

    @property
    def is_strategic(self) -> bool:
        return self._format == "strategic"

    @property
    def shown(self) -> bytes:
        """The patch, as Kubernetes shows one in errors."""
        return go_text(msgspec.json.decode(self._body)).encode()

    def applied_to(self, document: dict[str, Any]) -> bytes:
        try:
            match self._format:
                case "json":
                    patched = json_patch(document, self._body)
                case "merge":
                    patched = merge_patch(document, self._body)
                case _:
                    assert self._schema is not None
                    patched = strategic_merge_patch(document, self._body, self._schema)
        except PatchError as error:
            message = error.message if LOCATED_ERRORS in self._gates else error.short_message
            details = Details() if error.code == UNFIT and error.reason else None
            raise ApiError(error.code, error.reason, message, details) from None
        if not isinstance(patched, dict):
            raise no_object(msgspec.json.encode(patched))
        return msgspec.json.encode(patched)
