"""A write as policies and webhooks see it: its object in any version, and the fields of an AdmissionReview's request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.large_json import decode_in_pieces
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.api_errors import ApiError, Cause, Details
from allot.apiserver.kinds.request import RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.kinds.scale import scale_of, with_scale
from allot.apiserver.managed_fields.custom_schemas import custom_value_type
from allot.apiserver.managed_fields.kind_schemas import value_type
from allot.apiserver.managed_fields.value_types import ValueType
from allot.apiserver.object_limits import check_object_size
from allot.apiserver.pacing import json_work
from allot.apiserver.registry.conversion import Converter, is_converted
from allot.apiserver.schemas.types import type_of
from allot.apiserver.watch_cache.codecs import codec_for
from allot.client.wall_clock import wall_clock

Document = dict[str, Any]

OWN_KINDS: Final = frozenset(("binding", "eviction", "token"))
"""Subresources that are kinds of their own; their handlers ask for admission themselves."""
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_WRITE_OPTIONS: Final = ("fieldManager", "fieldValidation")


class StrictError(Exception):
    """A changed object has fields that its kind does not have."""


class Replaced(NamedTuple):
    """The object to write instead of another one."""

    object: Any
    size: int
    """The work on it, in bytes of JSON."""


class ReviewedObject(Protocol):
    """The object of a request."""

    def kind(self, version: str) -> GroupVersionKind: ...

    def document(self, version: str) -> Document:
        """The object in a version of its API group; if a webhook converts it, after `convert`."""

    def has_document(self, version: str) -> bool:
        """Whether `document` has been made in a version: it takes no time then."""

    async def convert(self, version: str, converter: Converter) -> None:
        """Have `document` in a version, if a webhook converts the object."""

    def value_type(self, version: str) -> ValueType | None:
        """How documents are merged; None if that is not known."""

    def labels(self) -> Mapping[str, str]: ...

    def replaced(self, document: Document, version: str, *, strict: bool) -> Replaced:
        """The object to write instead, in this version if a webhook converts it.

        Raises `DecodeError`, `ApiError` if it is too large, or `StrictError` if `strict`.
        """


class ObjectSubject:
    """An object of a resource."""

    def __init__(self, resource: Resource, obj: Any) -> None:
        self._codec = codec_for(resource)
        self._resource = resource
        self._object = obj
        self._documents: dict[str, Document] = {}

    def kind(self, version: str) -> GroupVersionKind:
        return self._resource.gvk(version)

    def document(self, version: str) -> Document:
        found = self._documents.get(version)
        if found is None:
            found = self._documents[version] = self._document(self._object, version)
        return found

    def has_document(self, version: str) -> bool:
        return version in self._documents

    def _document(self, obj: Any, version: str) -> Document:
        gvk = self.kind(version)
        body: Document = decode_in_pieces(self._codec.encode(obj, version))
        found = {"kind": gvk.kind, "apiVersion": str(gvk.group_version), **body}
        revision = self._object.metadata.resource_version
        if revision:
            found["metadata"] = {**found["metadata"], "resourceVersion": revision}
        return found

    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self._object.metadata.labels
        return labels

    async def convert(self, version: str, converter: Converter) -> None:
        if is_converted(self._resource) and version not in self._documents:
            obj = await converter.in_version(self._resource, self._object, version)
            self._documents[version] = self._document(obj, version)

    def value_type(self, version: str) -> ValueType | None:
        custom = self._resource.custom
        if custom is not None:
            return custom_value_type(custom.kind.versions[version].schema)
        return _value_type(self.kind(version))

    def replaced(self, document: Document, version: str, *, strict: bool) -> Replaced:
        body = msgspec.json.encode(document)
        check_object_size(len(body))
        now = wall_clock()
        codec = self._codec
        custom = self._resource.custom
        if custom is not None and custom.kind.has_webhook:
            codec = codec_for(custom.kind.resources[version])
        if not strict:
            return Replaced(codec.decode(body, version, now), json_work(body))
        made, issues = codec.decode_strictly(body, version, now)
        if issues:
            raise StrictError(f"strict decoding error: {', '.join(issues)}")
        return Replaced(made, json_work(body))


class DocumentSubject:
    """A document of a kind with one version, such as a Binding."""

    def __init__(self, document: Document, replaced: Callable[[Document], Any]) -> None:
        self._document = document
        self._replaced = replaced

    def kind(self, version: str) -> GroupVersionKind:
        group, number = GroupVersion.parse(self._document["apiVersion"])
        return GroupVersionKind(group, number, self._document["kind"])

    def document(self, version: str) -> Document:
        return self._document

    def has_document(self, version: str) -> bool:
        return True

    def labels(self) -> Mapping[str, str]:
        return (self._document.get("metadata") or {}).get("labels") or {}

    async def convert(self, version: str, converter: Converter) -> None:
        """It has one version."""

    def value_type(self, version: str) -> ValueType | None:
        return _value_type(self.kind(version))

    def replaced(self, document: Document, version: str, *, strict: bool) -> Replaced:
        return Replaced(self._replaced(document), json_work(msgspec.json.encode(document)))


def _value_type(gvk: GroupVersionKind) -> ValueType | None:
    found = type_of(gvk)
    return None if found is None else value_type(found.name)


class ReviewRequest:
    """One write."""

    def __init__(
        self,
        operation: str,
        resource: Resource,
        namespace: str,
        name: str,
        new: ReviewedObject | None,
        old: ReviewedObject | None,
        info: RequestInfo,
        delete_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.operation = operation
        """CREATE, UPDATE or DELETE."""
        self.resource = resource
        self.namespace = namespace
        """Of a namespace, its own name."""
        self.name = name
        self.new = new
        self.old = old
        self.info = info
        self._delete_options = delete_options

    @property
    def is_about_namespace(self) -> bool:
        return not self.resource.group and self.resource.plural == "namespaces"

    def with_object(self, new: Any) -> ReviewRequest:
        """The same request about another object."""
        subject: ReviewedObject
        if self.info.subresource == "scale":
            subject = _scale(new)
        elif isinstance(self.new, DocumentSubject):
            subject = DocumentSubject(new, lambda document: document)
        else:
            subject = ObjectSubject(self.resource, new)
        return ReviewRequest(
            self.operation,
            self.resource,
            self.namespace,
            self.name,
            subject,
            self.old,
            self.info,
            self._delete_options,
        )

    def labels(self) -> list[Mapping[str, str]]:
        """The labels of the new and of the old object."""
        return [subject.labels() for subject in (self.new, self.old) if subject is not None]

    @cached_property
    def options(self) -> Document:
        options: Document = {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"}
        if self._delete_options is not None:
            return options | dict(self._delete_options)
        if self.info.dry_run:
            options["dryRun"] = ["All"]
        for name in _WRITE_OPTIONS:
            if self.info.query.get(name):
                options[name] = self.info.query[name]
        return options

    def request(self, version: str) -> Document:
        """The request in an AdmissionReview, about the object in this version; without uid and objects."""
        info = self.info
        subject = self.new or self.old
        assert subject is not None
        asked, seen = subject.kind(info.version), subject.kind(version)
        part = info.subresource
        user: Document = {"username": info.caller.name}
        if info.caller.uid:
            user["uid"] = info.caller.uid
        if info.caller.groups:
            user["groups"] = list(info.caller.groups)
        if info.caller.extra:
            user["extra"] = {name: list(values) for name, values in info.caller.extra.items()}
        request: Document = {
            "kind": asdict(seen, "kind"),
            "resource": self._resource(version),
            "subResource": part,
            "requestKind": asdict(asked, "kind"),
            "requestResource": self._resource(info.version),
            "requestSubResource": part,
            "name": self.name,
            "namespace": self.namespace,
            "operation": self.operation,
            "userInfo": user,
            "dryRun": info.dry_run,
            "options": self.options,
        }
        optional = ("subResource", "requestSubResource", "name", "namespace")
        return {name: value for name, value in request.items() if value or name not in optional}

    def _resource(self, version: str) -> Document:
        return {
            "group": self.resource.group,
            "version": version,
            "resource": self.resource.plural,
        }

    def denied(self, message: str) -> ApiError:
        """403, in the words of admission plugins."""
        return api_errors.forbidden(self.resource, self.shown_name, message)

    @property
    def shown_name(self) -> str:
        if self.name or self.new is None:
            return self.name or "Unknown"
        metadata = self.new.document(self.info.version).get("metadata") or {}
        return metadata.get("name") or metadata.get("generateName") or "Unknown"

    def refused(self, code: int, reason: str, message: str, causes: list[str]) -> ApiError:
        """A refusal by policies: the message, and one for each of the causes."""
        details = Details(
            self.shown_name,
            self.resource.group,
            self.resource.plural,
            causes=tuple(Cause("", cause) for cause in causes),
        )
        return ApiError(code, reason, message, details)


def asdict(gvk: GroupVersionKind, last: str) -> Document:
    return {"group": gvk.group, "version": gvk.version, last: gvk.kind}


def review_request(attributes: AdmissionAttributes) -> ReviewRequest:
    """The request of a write to the registry."""
    resource, info = attributes.resource, attributes.info
    namespace, name = attributes.key
    new, old = attributes.new, attributes.old
    if not resource.group and resource.plural == "namespaces":
        namespace = name
    if attributes.operation == "create":
        name = new.metadata.name
    elif info.verb == "deletecollection":
        name = ""
    options = attributes.options
    return ReviewRequest(
        attributes.operation.upper(),
        resource,
        namespace,
        name,
        None if new is None else _subject(resource, info, new),
        None if old is None else _subject(resource, info, old),
        info,
        None if options is None else msgspec.to_builtins(options),
    )


def _subject(resource: Resource, info: RequestInfo, obj: Any) -> ReviewedObject:
    return _scale(obj) if info.subresource == "scale" else ObjectSubject(resource, obj)


def _scale(workload: Any) -> ReviewedObject:
    return DocumentSubject(scale_of(workload), lambda scale: with_scale(workload, scale))


def document_request(
    resource: Resource,
    namespace: str,
    name: str,
    document: Document,
    info: RequestInfo,
) -> ReviewRequest:
    """The request to create a Binding, an Eviction or a TokenRequest of an object."""
    subject = DocumentSubject(document, lambda changed: changed)
    return ReviewRequest("CREATE", resource, namespace, name, subject, None, info)
