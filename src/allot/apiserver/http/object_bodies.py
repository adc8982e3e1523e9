"""Objects in the bodies of requests: their format, their type, their place, and how strict decoding is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersionKind
from allot.api.json_limits import MAX_VALUES
from allot.api.meta import ObjectMeta
from allot.api.protobuf.envelope import open_envelope
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
from allot.apiserver.http.type_checks import (
    check_custom_kind,
    check_kind,
    check_type,
    checked_patched,
    other_version,
    shown_body,
)
from allot.apiserver.pacing import LARGE, release_interpreter
from allot.apiserver.registry.patches.conversions import conversion_problem
from allot.apiserver.watch_cache.codec import PartialCodec
from allot.apiserver.watch_cache.codecs import codec_for
from allot.features import FeatureGates
from allot.rules import LOCATED_ERRORS

_TYPE_FIRST: Final = (b'{"kind":', b'{"apiVer')
"""How objects begin that say first of which kind they are."""
MAX_ISSUES: Final = 100
"""Unknown and duplicate fields that are reported, as in Kubernetes."""


class ReadBody(msgspec.Struct, frozen=True):
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
        obj, now = None, self._clock()
        warnings: list[str] = []
        if request.body[:8] in _TYPE_FIRST and request.headers.get("content-type") == JSON:
            obj = codec_for(target.resource).decode_known(request.body, target.version)
        if obj is None:
            obj, warnings = self._read_body(request, target, options, now)
        placed = in_place(obj, target, verb=verb)
        if verb != "create":
            return ReadBody(placed, warnings)
        # The namespace that it is given has no owner: the object as it was sent will do, which is decoded already.
        managers = managers_of_new(obj, request, target, now)
        return ReadBody(placed, warnings, managers)

    def _read_body(
        self, request: ApiRequest, target: Target, options: WriteOptions, now: datetime
    ) -> tuple[Any, list[str]]:
        """An object that has to be read as a whole."""
        content_type = request.headers.get("content-type", "")
        if content_type != JSON:
            content_type = media_type(content_type)
        if content_type == PROTOBUF:
            return self.read_protobuf(request.body, target, now), []
        if content_type == JSON and request.body[:1] == b"{":
            return self.read_json(request.body, target, options, now)
        body = json_body(request, target.resource.gvk(target.version))
        return self.read_json(body.json, target, options, now, body.duplicates)

    def _decode_error_text(self, error: DecodeError) -> str:
        return error.located if LOCATED_ERRORS in self._gates else str(error)

    def read_json(
        self,
        body: bytes,
        target: Target,
        options: WriteOptions,
        now: datetime,
        duplicates: tuple[str, ...] = (),
    ) -> tuple[Any, list[str]]:
        """The object in JSON, and what was ignored in it, with the field validation that the client asks for."""
        resource, version = target.resource, target.version
        codec = codec_for(resource)
        gvk = resource.gvk(version)
        if resource.custom is not None:
            check_custom_kind(body, gvk)
        check_type(body, gvk)
        if len(body) > LARGE:
            release_interpreter(len(body))
        try:
            if options.field_validation == "Ignore":
                return with_reset_managers(codec.decode(body, version, now), body, target), []
            obj, ignored = codec.decode_strictly(body, version, now)
        except DecodeError as error:
            raise api_errors.cannot_be_read(
                resource.kind, version, self._decode_error_text(error)
            ) from None
        issues = [f'duplicate field "{path}"' for path in duplicates] if duplicates else []
        issues += ignored
        del issues[MAX_ISSUES:]
        if issues and options.field_validation == "Strict":
            raise api_errors.strict_decoding(resource.kind, version, issues)
        return with_reset_managers(obj, body, target), issues

    def read_protobuf(self, body: bytes, target: Target, now: datetime) -> Any:
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
                f"{error} ({shown_body(body)})"
            ) from None
        check_kind(envelope.api_version, envelope.kind, gvk)
        try:
            return codec.decode_protobuf(envelope.content, version, now)
        except DecodeError as error:
            raise api_errors.cannot_be_read(
                resource.kind, version, self._decode_error_text(error)
            ) from None

    def read_patched(
        self, patch: Patch, old: Any, target: Target, options: WriteOptions, stored_size: int
    ) -> ReadBody:
        """The object that a patch makes of `old`; 422 if it cannot be decoded.

        Only what the patch touches is decoded. If anything is wrong with it, the error is about the whole object.
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
        gvk = resource.gvk(version)
        other = None if patch.is_strategic else other_version(body, gvk)
        if other is not None:
            version = other
        else:
            body = checked_patched(body, gvk, is_strategic=patch.is_strategic)
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
            raise api_errors.bad_patch(body, self._decode_error_text(error)) from None
        if issues:
            # Unknown fields are kept: those that are stored already are not this patch's.
            stored = msgspec.json.encode(codec.document(old, version))
            known = frozenset(codec.strict_issues(stored, version))
            issues = [issue for issue in issues if issue not in known][:MAX_ISSUES]
        if issues and options.field_validation == "Strict":
            shown = (
                patch.shown if patch.is_strategic and LOCATED_ERRORS not in self._gates else body
            )
            raise api_errors.bad_patch(shown, f"strict decoding error: {', '.join(issues)}")
        return ReadBody(with_reset_managers(obj, body, target), issues)


def json_body(request: ApiRequest, expected: GroupVersionKind | None = None) -> Body:
    """The body of a request as JSON; 400 if it is empty."""
    try:
        body = read_body(request.body, request.header("content-type"), expected)
    except BodyError as error:
        raise error.api_error() from None
    if not body.json.strip():
        kind = "" if expected is None else expected.kind
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get "
            "version/kind; json parse error: unexpected end of JSON input (<empty>)"
        )
    return body


OTHER_NAMESPACE: Final = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


def unnamed(name: str) -> str:
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def in_place(obj: Any, target: Target, *, verb: str) -> Any:
    """The object with the namespace of the URL; 400 if it names another place."""
    metadata: ObjectMeta = obj.metadata
    is_here = metadata.namespace == target.namespace
    if not is_here and metadata.namespace and target.resource.namespaced:
        raise bad_request(OTHER_NAMESPACE)
    if verb != "create" and metadata.name != target.name:
        if not metadata.name:
            raise bad_request(unnamed(target.name))
        raise bad_request(
            f"the name of the object ({metadata.name}) does not match the name on the URL ({target.name})"
        )
    if is_here:
        return obj
    # A namespace given for a cluster-wide kind is cleared, as Kubernetes does.
    placed = replace(metadata, namespace=target.namespace)
    return codec_for(target.resource).with_metadata(obj, placed)
