"""Objects in the bodies of requests: their format, their type, their place, and how strict decoding is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.json_limits import MAX_VALUES, has_too_many_values, is_too_deep
from allot.api.json_syntax import syntax_problem
from allot.api.meta import ObjectMeta
from allot.api.protobuf.envelope import MAGIC, open_envelope
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, bad_request
from allot.apiserver.http.field_tracking import (
    Managers,
    managers_of_new,
    with_reset_managers,
)
from allot.apiserver.http.negotiation import (
    JSON,
    PROTOBUF,
    YAML,
    Body,
    BodyError,
    media_type,
    read_body,
    unsupported,
)
from allot.apiserver.http.patch_bodies import Patch
from allot.apiserver.http.requests import (
    ApiRequest,
    WriteOptions,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.pacing import LARGE, SLOW, release_interpreter
from allot.apiserver.registry.patches.conversions import conversion_problem
from allot.apiserver.registry.patches.documents import kind_of
from allot.apiserver.watch_cache.codec import PartialCodec
from allot.apiserver.watch_cache.codecs import codec_for
from allot.features import FeatureGates
from allot.rules import LOCATED_ERRORS
from allot.validation.fields import FieldPath, invalid

MAX_SUMMARY: Final = 30
"""Bytes of a body that is no object."""
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
MAX_ISSUES: Final = 100
"""Unknown and duplicate fields that are told, as in Kubernetes."""

KINDS_WITH_EXPRESSIONS: Final = frozenset(
    (
        "CustomResourceDefinition",
        "MutatingAdmissionPolicy",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    )
)
"""Raw kinds whose expressions are compiled when they are validated: never on the event loop, however short they are."""


class TypeMeta(msgspec.Struct, rename="camel"):
    """The kind and apiVersion in a body."""

    kind: str | None = None
    api_version: str | None = None


class ReadBody(NamedTuple):
    """An object from a request's body, and what was ignored in it."""

    object: Any
    warnings: list[str]
    managers: Managers = ()
    """managedFields of an object that is to be created."""


class ObjectBodies:
    """Reads objects. What takes long is for the caller to run beside the event loop."""

    def __init__(self, clock: Callable[[], datetime], gates: FeatureGates) -> None:
        self._clock = clock
        self._gates = gates

    def read(
        self, request: ApiRequest, target: Target, options: WriteOptions, verb: str
    ) -> ReadBody:
        warnings: list[str] = []
        if media_type(request.header("content-type")) == PROTOBUF:
            obj = self.read_protobuf(request.body, target)
        else:
            body = json_body(request, target.resource.gvk(target.version))
            obj, warnings, _ = self.read_json(body.json, target, options, body.duplicates)
        placed = in_place(obj, target, verb=verb)
        if verb != "create":
            return ReadBody(placed, warnings)
        managers = managers_of_new(placed, request, target, self._clock())
        return ReadBody(placed, warnings, managers)

    def _told(self, error: DecodeError) -> str:
        return error.located if LOCATED_ERRORS in self._gates else str(error)

    def read_json(
        self,
        body: bytes,
        target: Target,
        options: WriteOptions,
        duplicates: tuple[str, ...] = (),
    ) -> ReadBody:
        """The object in JSON, with the field validation that the client asks for."""
        resource, version = target.resource, target.version
        gvk = resource.gvk(version)
        if resource.custom is not None:
            _check_custom_kind(body, gvk)
        check_type(body, gvk)
        codec = codec_for(resource)
        release_interpreter(len(body))
        try:
            if options.field_validation == "Ignore":
                obj = codec.decode(body, version, self._clock())
                return ReadBody(with_reset_managers(obj, body, target), [])
            obj, ignored = codec.decode_strictly(body, version, self._clock())
        except DecodeError as error:
            raise api_errors.cannot_be_read(resource.kind, version, self._told(error)) from None
        issues = [*(f'duplicate field "{path}"' for path in duplicates), *ignored]
        del issues[MAX_ISSUES:]
        if issues and options.field_validation == "Strict":
            raise api_errors.strict_decoding(resource.kind, version, issues)
        return ReadBody(with_reset_managers(obj, body, target), issues)

    def read_protobuf(self, body: bytes, target: Target) -> Any:
        """The object in protobuf, which has no unknown or duplicate fields to be strict about."""
        resource, version = target.resource, target.version
        gvk = resource.gvk(version)
        codec = codec_for(resource)
        if not codec.has_protobuf(version):
            raise unsupported((JSON, YAML)).api_error()
        try:
            envelope = open_envelope(body)
        except DecodeError as error:
            raise bad_request(
                f"the object provided is unrecognized (must be of type {gvk.kind}): "
                f"{error} ({_summary(body)})"
            ) from None
        check_kind(envelope.api_version, envelope.kind, gvk)
        try:
            return codec.decode_protobuf(envelope.content, version, self._clock())
        except DecodeError as error:
            raise api_errors.cannot_be_read(resource.kind, version, self._told(error)) from None

    def read_patched(
        self, patch: Patch, old: Any, target: Target, options: WriteOptions, stored_size: int
    ) -> ReadBody:
        """The object that a patch makes of `old`; 422 if it cannot be decoded.

        Only what the patch touches is decoded. If anything is wrong with it, that is told about the whole object.
        """
        codec = codec_for(target.resource)
        parts, version = patch.parts, target.version
        if (
            parts is not None
            and isinstance(codec, PartialCodec)
            and codec.has_parts(parts, version)
        ):
            read = self._read_parts(patch, parts, codec, old, target, stored_size)
            if read is not None:
                return read
        body = patch.applied_to(codec.document(old, version))
        return self._read_whole(patch, body, old, target, options)

    def _read_parts(
        self,
        patch: Patch,
        names: Collection[str],
        codec: PartialCodec,
        old: Any,
        target: Target,
        stored_size: int,
    ) -> ReadBody | None:
        """`old` with the fields that a patch touches; None if it cannot be applied, or has a mistake."""
        version = target.version
        try:
            body = patch.applied_to(codec.parts(old, names, version))
            if len(body) + stored_size > MAX_VALUES:
                return None
            check_type(body, target.resource.gvk(version))
            obj, issues = codec.with_parts(old, names, body, version, self._clock())
        except (ApiError, DecodeError):
            return None
        return None if issues else ReadBody(with_reset_managers(obj, body, target), [])

    def _read_whole(
        self, patch: Patch, body: bytes, old: Any, target: Target, options: WriteOptions
    ) -> ReadBody:
        resource, version = target.resource, target.version
        check_type(body, resource.gvk(version))
        codec = codec_for(resource)
        release_interpreter(len(body))
        try:
            if options.field_validation == "Ignore":
                obj = codec.decode(body, version, self._clock())
                return ReadBody(with_reset_managers(obj, body, target), [])
            obj, issues = codec.decode_strictly(body, version, self._clock())
        except DecodeError as error:
            if patch.is_strategic and LOCATED_ERRORS not in self._gates:
                raise api_errors.bad_patch(patch.shown, conversion_problem(error)) from None
            raise api_errors.bad_patch(body, self._told(error)) from None
        if issues:
            # Unknown fields are kept: those that are stored already are not this patch's.
            stored = msgspec.json.encode(codec.document(old, version))
            known = frozenset(codec.strict_issues(stored, version))
            issues = [issue for issue in issues if issue not in known][:MAX_ISSUES]
        if issues and options.field_validation == "Strict":
            raise api_errors.bad_patch(body, f"strict decoding error: {', '.join(issues)}")
        return ReadBody(with_reset_managers(obj, body, target), issues)


def work_size(request: ApiRequest, target: Target) -> int:
    """The work of handling a body, in bytes of a plain object."""
    is_typed, body = target.resource.info.is_typed, request.body
    if target.resource.custom is not None:
        if target.resource.custom.is_heavy:  # never on the event loop
            return max(len(body) * SLOW, LARGE + 1)
    elif target.resource.kind in KINDS_WITH_EXPRESSIONS:
        return max(len(body) * SLOW, LARGE + 1)
    # In protobuf expressions have no name.
    has_expressions = is_typed and (
        b'"expression' in body
        or (body.startswith(MAGIC) and target.resource.kind != "ResourceSlice")
    )
    return len(request.body) * (SLOW if has_expressions and target.subresource is None else 1)


def reading_size(request: ApiRequest) -> int:
    """The work of converting a body to JSON, in bytes of JSON."""
    cost = _READING_COSTS.get(media_type(request.header("content-type")), 1)
    return len(request.body) * cost


_READING_COSTS: Final = {YAML: SLOW, PROTOBUF: SLOW // 2}


def json_body(request: ApiRequest, expected: GroupVersionKind | None = None) -> Body:
    """The body of a request as JSON; 400 if it is empty."""
    try:
        body = read_body(request.body, request.header("content-type"), expected)
    except BodyError as error:
        raise error.api_error() from None
    if not body.json.strip():
        raise bad_request("the body of the request is empty; an object was expected")
    return body


type_decoder: Final = msgspec.json.Decoder(TypeMeta)


def check_type(body: bytes, expected: GroupVersionKind) -> None:
    """400 if the body says it is of another kind or version. It need not say anything."""
    if has_too_many_values(body):
        raise api_errors.too_many_values(MAX_VALUES)
    if is_too_deep(body):
        raise bad_request("json: document is nested too deeply")
    _check_encoding(body)
    try:
        found = type_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = syntax_problem(body) or _type_problem(body) or str(error)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {expected.kind}): "
            f"couldn't get version/kind; json parse error: {problem} ({_summary(body)})"
        ) from None
    check_kind(found.api_version, found.kind, expected)


def _type_problem(body: bytes) -> str:
    """Why no kind and apiVersion can be read from JSON; empty if that is not the problem."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return f"json: cannot unmarshal {kind_of(document)} into Go value of type {_TYPE_META}"
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name), str | None):
            found = kind_of(document[name])
            return f"json: cannot unmarshal {found} into Go struct field .{name} of type string"
    return ""


def _check_custom_kind(body: bytes, expected: GroupVersionKind) -> None:
    """422 if the body is of another kind of the same version: to a custom resource the kind is a field."""
    try:
        found = _named_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # which is explained later
    if found.api_version != str(expected.group_version) or found.kind in (None, "", expected.kind):
        return
    error = invalid(FieldPath("kind"), found.kind, f"must be {expected.kind}")
    name = found.metadata.name if found.metadata is not None else ""
    raise api_errors.invalid(expected.group, str(found.kind), name, [error])


class _Named(msgspec.Struct):
    name: str = ""


class _NamedType(TypeMeta):
    metadata: _Named | None = None


_named_decoder: Final = msgspec.json.Decoder(_NamedType)


def check_kind(api_version: str | None, kind: str | None, expected: GroupVersionKind) -> None:
    """400 if what a body says about itself, which may be nothing, is not what is expected."""
    wanted = str(expected.group_version)
    if api_version and api_version != wanted:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected "
            f"API version ({wanted})"
        )
    if kind and kind != expected.kind:
        version = GroupVersion.parse(wanted).version
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {expected.kind}: '
            f"converting ({version}.{kind}) to ({internal_type(expected)}): unknown conversion"
        )


def internal_type(gvk: GroupVersionKind) -> str:
    """What Kubernetes calls the type of a kind that is not in any version: `core.Binding`."""
    return f"{gvk.group.partition('.')[0] or 'core'}.{gvk.kind}"


def _summary(body: bytes) -> str:
    """As much of a body as an error shows: text if it looks like JSON."""
    if not body:
        return "<empty>"
    start = body[:MAX_SUMMARY]
    shown = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return shown if len(body) <= MAX_SUMMARY else f"{shown} ..."


def _check_encoding(body: bytes) -> None:
    """400 if the body is not UTF-8. Decoders pass over what is in fields they do not know."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise bad_request(f"json: invalid UTF-8 at byte {error.start}") from None


OTHER_NAMESPACE: Final = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


def in_place(obj: Any, target: Target, *, verb: str) -> Any:
    """The object with the namespace of the URL; 400 if it names another place."""
    metadata: ObjectMeta = obj.metadata
    if target.resource.namespaced and metadata.namespace not in ("", target.namespace):
        raise bad_request(OTHER_NAMESPACE)
    if verb != "create" and metadata.name != target.name:
        if not metadata.name:
            raise bad_request("name must be provided")
        raise bad_request(
            f"the name of the object ({metadata.name}) does not match the name on the URL ({target.name})"
        )
    if metadata.namespace == target.namespace:
        return obj
    # A namespace given for a cluster-wide kind is cleared, as Kubernetes does.
    placed = replace(metadata, namespace=target.namespace)
    return codec_for(target.resource).with_metadata(obj, placed)
