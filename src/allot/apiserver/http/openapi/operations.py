"""The operations on a resource: what can be sent to each of its URLs, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.protobuf.envelope import has_protobuf
from allot.apiserver.http.negotiation import JSON, PROTOBUF, STREAMED, YAML
from allot.apiserver.http.openapi import parameters
from allot.apiserver.http.openapi.components import PATCH, reference
from allot.apiserver.http.openapi.custom_schemas import custom_list_name, custom_name
from allot.apiserver.http.openapi.parameters import Parameter
from allot.apiserver.kinds.definition import CONNECTIONS, LOG, PROXIES, Subresource
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.schemas.tables import META
from allot.apiserver.schemas.types import type_of

APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCH_TYPES: Final = (
    APPLY_PATCH,
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
"""The patches that are served."""
CUSTOM_PATCH_TYPES: Final = tuple(each for each in PATCH_TYPES if "strategic" not in each)

MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
WATCH_TYPES: Final = tuple(STREAMED.values())

_STATUS: Final = f"{META}.Status"
_DELETE_OPTIONS: Final = f"{META}.DeleteOptions"
_WORDS: Final = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


class Operation(NamedTuple):
    """One method of one URL, before parameters that all methods share are taken out."""

    path: str
    method: str
    json: dict[str, Any]
    parameters: tuple[Parameter, ...]


class _Naming(NamedTuple):
    """How a group and version are called in names of operations."""

    group_version: GroupVersion

    @property
    def _group(self) -> list[str]:
        return (self.group_version.group or "core").removesuffix(".k8s.io").split(".")

    @property
    def tag(self) -> str:
        first, *rest = self._group
        return f"{first}{''.join(map(_capital, rest))}_{self.group_version.version}"

    def operation(self, verb: str, rest: str) -> str:
        group = "".join(map(_capital, self._group))
        return f"{verb}{group}{_capital(self.group_version.version)}{rest}"


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


def root_operation(group_version: GroupVersion) -> Operation:
    """What discovery answers for the group and version."""
    naming = _Naming(group_version)
    answer = {media: {"schema": reference(f"{META}.APIResourceList")} for media in MEDIA_TYPES}
    made = {
        "tags": [naming.tag],
        "description": "The resources there are.",
        "operationId": naming.operation("get", "APIResources"),
        "responses": {
            "200": {"description": _WORDS["200"], "content": answer},
            "401": {"description": _WORDS["401"]},
        },
    }
    return Operation(f"{base_path(group_version)}/", "get", made, ())


def base_path(group_version: GroupVersion) -> str:
    return f"/apis/{group_version}" if group_version.group else f"/api/{group_version.version}"


def operations(resource: Resource, version: str) -> Iterator[Operation]:
    """Everything that can be done with a resource in one of its versions."""
    yield from _Operations(resource, version).all()


class _Operations:
    def __init__(self, resource: Resource, version: str) -> None:
        self._resource = resource
        self._gvk = resource.gvk(version)
        self._naming = _Naming(self._gvk.group_version)
        self._base = base_path(self._gvk.group_version)
        self._scope = "Namespaced" if resource.namespaced else ""
        self._has_protobuf = resource.custom is None and has_protobuf(self._gvk)

    def all(self) -> Iterator[Operation]:
        resource, kind = self._resource, self._resource.kind
        prefix = "/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"{self._base}{prefix}/{resource.plural}"
        yield from self._of_collection(collection)
        if resource.namespaced and "list" in resource.verbs:
            yield self._operation(
                f"{self._base}/{resource.plural}", "get", "list", "list", f"{kind}ForAllNamespaces",
                f"All objects of kind {kind} in all namespaces, or with `watch` their changes.",
                parameters.LIST, {"200": self._list_name}, media=(*MEDIA_TYPES, *WATCH_TYPES),
            )  # fmt: skip
        one = f"{collection}/{{name}}"
        yield from self._of_object(one, self._gvk, "", resource.verbs)
        for part in resource.subresources:
            if part is LOG or part in CONNECTIONS or part in PROXIES:
                continue  # no objects of the API
            yield from self._of_subresource(f"{one}/{part.name}", part)

    @property
    def _list_name(self) -> str:
        if self._resource.custom is not None:
            return custom_list_name(self._resource)
        return f"{self._name_of(self._gvk)}List"

    def _name_of(self, gvk: GroupVersionKind) -> str:
        """The schema of what is sent: of the kind itself, or that of a subresource."""
        if gvk == self._gvk and self._resource.custom is not None:
            return custom_name(self._resource)
        return _schema_name(gvk)

    def _of_collection(self, path: str) -> Iterator[Operation]:
        kind, name, verbs = (
            self._resource.kind,
            f"{self._scope}{self._resource.kind}",
            self._resource.verbs,
        )
        if "list" in verbs:
            yield self._operation(
                path, "get", "list", "list", name,
                f"All objects of kind {kind}, or with `watch` their changes.",
                parameters.LIST, {"200": self._list_name}, media=(*MEDIA_TYPES, *WATCH_TYPES),
            )  # fmt: skip
        if "create" in verbs:
            yield self._create(path, self._gvk, name)
        if "deletecollection" in verbs:
            yield self._operation(
                path, "delete", "delete", "deletecollection", f"Collection{name}",
                f"Deletes all selected objects of kind {kind}.",
                parameters.DELETE_COLLECTION, {"200": _STATUS}, body=_DELETE_OPTIONS,
            )  # fmt: skip

    def _of_object(
        self, path: str, gvk: GroupVersionKind, suffix: str, verbs: tuple[str, ...]
    ) -> Iterator[Operation]:
        name, schema = f"{self._scope}{self._resource.kind}{suffix}", self._name_of(gvk)
        what = f"{suffix.lower()} of one {self._resource.kind}" if suffix else f"one {gvk.kind}"
        both = {"200": schema, "201": schema}
        if "get" in verbs:
            yield self._operation(
                path, "get", "read", "get", name, f"Reads {what}.", (), {"200": schema}, gvk=gvk
            )
        if "update" in verbs:
            yield self._operation(
                path, "put", "replace", "put", name, f"Replaces {what}.",
                parameters.WRITE, both, body=schema, gvk=gvk,
            )  # fmt: skip
        if "delete" in verbs:
            shown = gvk.version in self._resource.returns_deleted_in
            answer = schema if shown else _STATUS
            yield self._operation(
                path, "delete", "delete", "delete", name, f"Deletes {what}.",
                parameters.DELETE, {"200": answer, "202": answer}, body=_DELETE_OPTIONS,
            )  # fmt: skip
        if "patch" in verbs:
            yield self._operation(
                path, "patch", "patch", "patch", name, f"Changes fields of {what}.",
                (*parameters.WRITE, parameters.FORCE), both, body=PATCH, gvk=gvk,
            )  # fmt: skip

    def _of_subresource(self, path: str, part: Subresource) -> Iterator[Operation]:
        gvk = part.kind or self._gvk
        if "create" in part.verbs:
            yield self._create(
                path, gvk, f"{self._scope}{self._resource.kind}{_capital(part.name)}"
            )
        yield from self._of_object(path, gvk, _capital(part.name), part.verbs)

    def _create(self, path: str, gvk: GroupVersionKind, name: str) -> Operation:
        schema = self._name_of(gvk)
        return self._operation(
            path, "post", "create", "post", name, f"Creates one {gvk.kind}.",
            parameters.WRITE, {"200": schema, "201": schema, "202": schema}, body=schema, gvk=gvk,
        )  # fmt: skip

    def _operation(
        self,
        path: str,
        method: str,
        verb: str,
        action: str,
        name: str,
        description: str,
        query: tuple[Parameter, ...],
        answers: dict[str, str],
        *,
        body: str = "",
        gvk: GroupVersionKind | None = None,
        media: tuple[str, ...] = MEDIA_TYPES,
    ) -> Operation:
        made: dict[str, Any] = {
            "tags": [self._naming.tag],
            "description": description,
            "operationId": self._naming.operation(verb, name),
        }
        if body:
            accepted = self._patch_types if body == PATCH else ("*/*",)
            made["requestBody"] = {
                "content": {media_type: {"schema": reference(body)} for media_type in accepted}
            }
            if body != _DELETE_OPTIONS:
                made["requestBody"]["required"] = True
        made["responses"] = {
            code: {
                "description": _WORDS[code],
                "content": {
                    media_type: {"schema": reference(answer)}
                    for media_type in media
                    if self._has_protobuf or not media_type.startswith(PROTOBUF)
                },
            }
            for code, answer in answers.items()
        }
        made["responses"]["401"] = {"description": _WORDS["401"]}
        made["x-kubernetes-action"] = action
        made["x-kubernetes-group-version-kind"] = (gvk or self._gvk)._asdict()
        return Operation(path, method, made, (*self._in_path(path), parameters.PRETTY, *query))

    @property
    def _patch_types(self) -> Iterable[str]:
        return PATCH_TYPES if self._resource.custom is None else CUSTOM_PATCH_TYPES

    def _in_path(self, path: str) -> Iterator[Parameter]:
        if "{name}" in path:
            yield parameters.name_of(self._resource.kind)
        if "{namespace}" in path:
            yield parameters.NAMESPACE


def _schema_name(gvk: GroupVersionKind) -> str:
    schema = type_of(gvk)
    assert schema is not None, gvk
    return schema.name
