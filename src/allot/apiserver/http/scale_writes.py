"""Writes to the scale endpoint: the Scale that a request makes of a workload, and who owns its replicas then."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersionKind
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, Details, bad_request
from allot.apiserver.http.field_tracking import manager_of
from allot.apiserver.http.negotiation import BodyError, patch_format
from allot.apiserver.http.object_bodies import OTHER_NAMESPACE, unnamed
from allot.apiserver.http.patch_bodies import UNFIT
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.http.server_side_apply import Configuration, merged_document
from allot.apiserver.http.type_checks import check_type, no_object, type_decoder
from allot.apiserver.kinds.scale import scale_of
from allot.apiserver.managed_fields.field_manager import FieldManager
from allot.apiserver.managed_fields.kind_schemas import empty_object, value_type
from allot.apiserver.managed_fields.managers import InvalidEntryError
from allot.apiserver.managed_fields.scale_managers import (
    SCALE_VERSION,
    entries_of_parent,
    entries_of_scale,
)
from allot.apiserver.managed_fields.updated_objects import UpdatedDocument
from allot.apiserver.managed_fields.updater import Document, UnknownVersionError
from allot.apiserver.managed_fields.validation import go_text
from allot.apiserver.managed_fields.value_types import ValueType
from allot.apiserver.registry.patches import PatchError, json_patch, merge_patch
from allot.apiserver.registry.patches.conversions import conversion_problem
from allot.apiserver.schemas.strictness import check_strictly, type_errors
from allot.apiserver.schemas.types import type_of

SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


class ScaleWrites(NamedTuple):
    """One request: a whole Scale, a patch of it, or a configuration to apply."""

    request: ApiRequest
    target: Target
    ignored: list[str]
    """Takes the fields of a patch that Scale does not have."""
    sent: Document | None = None
    configuration: Configuration | None = None

    def written(self, workload: RawObject, now: datetime) -> tuple[Document, list[dict[str, Any]]]:
        """The Scale after the write, and managedFields of the workload."""
        parent = list(workload.metadata.managed_fields)
        custom = self.target.resource.custom
        paths = None if custom is None else custom.scale
        path = paths.spec_replicas if paths is not None else ("spec", "replicas")
        live, known = scale_of(workload, paths), _entries_of_scale(parent, path)
        if self.configuration is not None:
            merged = merged_document(_field_manager(), live, tuple(known), self.configuration, now)
            scale, entries = merged.document, merged.entries
            scale = document_of(SCALE, msgspec.json.encode(scale), self.target.name)
        else:
            scale = self.sent if self.sent is not None else self._patched(live)
            updated, manager = UpdatedDocument(live, scale), manager_of(self.request)
            entries = _field_manager().updated(
                updated, known, (), manager, written_time(now), is_new=True
            )
            if custom is not None:
                # As in Kubernetes, an update takes the replicas from their owners and gives them to none.
                entries = [entry for entry in entries if entry in known]
        version = str(self.target.resource.gvk(self.target.version).group_version)
        try:
            return scale, entries_of_parent(parent, entries, version, path)
        except InvalidEntryError:
            return scale, parent

    def _patched(self, scale: Document) -> Document:
        try:
            is_json = patch_format(self.request.header("content-type")) == "json"
            patched = (json_patch if is_json else merge_patch)(scale, self.request.body)
        except BodyError as error:
            raise error.api_error() from None
        except PatchError as error:
            details = Details() if error.code == UNFIT and error.reason else None
            raise ApiError(error.code, error.reason, error.short_message, details) from None
        if not isinstance(patched, dict):
            raise no_object(msgspec.json.encode(patched))
        return self._read_patched(patched)

    def _shown_patch(self) -> bytes:
        return go_text(msgspec.json.decode(self.request.body)).encode()

    def _read_patched(self, patched: Document) -> Document:
        """The patched Scale; 422 if it is none. A strategic merge patch cannot change the kind."""
        is_strategic = patch_format(self.request.header("content-type")) == "strategic"
        if is_strategic:
            mismatch = type_errors(patched, SCALE)
            if mismatch is not None:
                raise api_errors.bad_patch(self._shown_patch(), conversion_problem(mismatch))
            patched = patched | {"kind": SCALE.kind, "apiVersion": SCALE_VERSION}
        body = msgspec.json.encode(patched)
        try:
            document = document_of(SCALE, body, self.target.name, self.ignored)
        except ApiError as error:
            _, _, problem = error.message.partition(f" cannot be handled as a {SCALE.kind}: ")
            if not problem:
                raise
            if is_strategic:
                raise api_errors.bad_patch(self._shown_patch(), problem) from None
            raise api_errors.bad_patch(body, problem) from None
        if not (document.get("metadata") or {}).get("name"):
            raise bad_request(unnamed(self.target.name))
        return document


def check_place(scale: Document, workload: RawObject, target: Target, verb: str) -> None:
    """400 if a Scale is of a workload in another namespace; 409 if a patch makes it that of another workload."""
    metadata = scale.get("metadata") or {}
    if metadata.get("namespace") not in (None, "", target.namespace):
        raise bad_request(OTHER_NAMESPACE)
    asked, found = metadata.get("uid"), workload.metadata.uid
    if verb == "patch" and asked and asked != found:
        kind, group = f"{target.resource.plural}/scale", target.resource.group
        named = f"{kind}.{group}" if group else kind
        raise ApiError(
            409,
            "Conflict",
            f'Operation cannot be fulfilled on {named} "{target.name}": Precondition failed: '
            f"UID in precondition: {asked}, UID in object meta: {found}",
            Details(target.name, group, kind),
        )


def _entries_of_scale(parent: list[dict[str, Any]], path: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        return entries_of_scale(parent, path)
    except InvalidEntryError:
        return []


class _ScaleVersions:
    """Scale has one version."""

    def type_of(self, api_version: str) -> ValueType:
        if api_version != SCALE_VERSION:
            raise UnknownVersionError(api_version)
        found = type_of(SCALE)
        assert found is not None
        return value_type(found.name)

    def convert(self, document: Document, to: str) -> Document:
        if to != SCALE_VERSION:
            raise UnknownVersionError(to)
        return document


@cache
def _field_manager() -> FieldManager:
    found = type_of(SCALE)
    assert found is not None
    return FieldManager(
        _ScaleVersions(), SCALE_VERSION, SCALE.kind, empty_object(found), subresource="scale"
    )


def document_of(
    kind: GroupVersionKind, body: bytes, name: str, issues: list[str] | None = None
) -> dict[str, Any]:
    """The JSON values in `body`; 400 if they are not of this kind, or have another name.

    Unknown fields are added to `issues`.
    """
    check_type(body, _OTHER_VERSIONS.get(_type_in(body), kind) if kind == _EVICTION else kind)
    try:
        document = dict(RawObject.from_json(body).data)
        found_issues = check_strictly(body, document, kind)
    except DecodeError as error:
        raise api_errors.cannot_be_read(kind.kind, kind.version, error.located) from None
    if issues is not None:
        issues += map(str, found_issues)
    found = (document.get("metadata") or {}).get("name")
    if name and found and found != name:
        raise bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({name})"
        )
    return document


_EVICTION: Final = GroupVersionKind("policy", "v1", "Eviction")
_OTHER_VERSIONS: Final[Mapping[tuple[str | None, str | None], GroupVersionKind]] = {
    ("policy/v1beta1", "Eviction"): GroupVersionKind("policy", "v1beta1", "Eviction")
}
"""Versions that are read like the current one."""


def _type_in(body: bytes) -> tuple[str | None, str | None]:
    try:
        found = type_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, None
    return found.api_version, found.kind
