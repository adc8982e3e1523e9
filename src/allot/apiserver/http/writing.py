"""create, update, patch, delete and deletecollection of objects and their statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind, ObjectKey
from allot.api.json_limits import MAX_VALUES, has_too_many_values, is_too_deep
from allot.api.managed_fields import without_managed_fields
from allot.api.meta import ObjectMeta
from allot.api.protobuf.envelope import MAGIC, open_envelope
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, bad_request
from allot.apiserver.auth.authorization import Attributes, Authorizer, require
from allot.apiserver.http.apply_bodies import read_configuration as read_applied
from allot.apiserver.http.apply_bodies import refuse_duplicates
from allot.apiserver.http.field_tracking import (
    Managers,
    managers_of_new,
    tracked,
    with_managers_of,
    with_reset_managers,
)
from allot.apiserver.http.list_options import list_options
from allot.apiserver.http.negotiation import (
    JSON,
    PROTOBUF,
    YAML,
    Body,
    BodyError,
    media_type,
    patch_format,
    read_body,
    unsupported,
)
from allot.apiserver.http.requests import (
    ApiRequest,
    WriteOptions,
    check_patch_options,
    options_error,
    write_options,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.http.server_side_apply import MAX_TRIES as MAX_APPLY_TRIES
from allot.apiserver.http.server_side_apply import Configuration, apply_to, new_object
from allot.apiserver.kinds.request import Caller, Permission, RequestInfo, WriteRequest
from allot.apiserver.pacing import LARGE, SLOW, Workers, release_interpreter
from allot.apiserver.registry.deletion import POLICIES, DeleteOptions
from allot.apiserver.registry.object_store import ObjectStore, Written
from allot.apiserver.registry.patches import (
    PatchError,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from allot.apiserver.registry.reading import Listing, Reader
from allot.apiserver.registry.selection import Selection
from allot.apiserver.registry.write_pipeline import Outcome, Update, pipeline_for
from allot.apiserver.schemas.types import type_of
from allot.apiserver.watch_cache.codecs import codec_for
from allot.client.cooperative import with_pauses
from allot.rules import BAD_CONFIGURATION_IS_BAD_REQUEST
from allot.validation.fields import FieldPath, not_supported
from allot.validation.fields import invalid as invalid_field

DELETES_AT_ONCE: Final = 10
"""Objects of a collection that are deleted between two pauses."""
MAX_SUMMARY: Final = 30
"""Bytes of a body that is no object."""
MAX_ISSUES: Final = 100
"""Unknown and duplicate fields that are told, as in Kubernetes."""


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


class WriteHandlers:
    """The writing verbs."""

    def __init__(
        self, objects: ObjectStore, reader: Reader, authorizer: Authorizer, workers: Workers
    ) -> None:
        self._objects = objects
        self._reader = reader
        self._authorizer = authorizer
        self._workers = workers

    async def create(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "create")
        read = await self.read_object(request, target, options, "create")
        written = await self._objects.create(
            target.resource,
            target.namespace,
            read.object,
            self.request_info(request, target, "create", options),
            read.managers,
        )
        return written.with_warnings(read.warnings)

    async def update(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "update")
        read = await self.read_object(request, target, options, "update")
        update = Update(lambda _old, _request: read.object, _pipeline_step(target))
        update = tracked(update, request, target)
        written = await self.apply(request, target, update, "update", options)
        return written.with_warnings(read.warnings)

    async def patch(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "patch")
        patch = _Patch(request, target)
        check_patch_options(request, is_apply=patch.is_apply)
        if patch.is_apply:
            return await self._apply_configuration(request, target, options)
        warnings: list[str] = []

        def patched(old: Any, _request: WriteRequest) -> Any:
            base = old if b"managedFields" in request.body else without_managed_fields(old)
            document = codec_for(target.resource).document(base, target.version)
            read = self._read_patched(patch.applied_to(document), old, target, options)
            warnings[:] = read.warnings
            return in_place(read.object, target, verb="patch")

        update = tracked(Update(patched, _pipeline_step(target)), request, target)
        written = await self.apply(request, target, update, "patch", options)
        return written.with_warnings(warnings)

    async def _apply_configuration(
        self, request: ApiRequest, target: Target, options: WriteOptions
    ) -> Written:
        """Server-side apply: to the object, or to a new one if it does not exist."""
        configuration, warnings = await self.read_configuration(request, options)

        def applied(old: Any, write: WriteRequest) -> tuple[Any, Managers]:
            new, managers = apply_to(old, configuration, target, write.now)
            return in_place(new, target, verb="patch"), managers

        update = with_managers_of(applied, _pipeline_step(target), target)
        for _ in range(MAX_APPLY_TRIES):
            try:
                written = await self.apply(request, target, update, "patch", options)
                return written.with_warnings(warnings)
            except ApiError as error:
                if error.code != 404 or target.subresource is not None:
                    raise
            try:
                written = await self._create_applied(request, target, configuration, options)
                return written.with_warnings(warnings)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        raise api_errors.conflict(target.resource, target.name, api_errors.MODIFIED)

    async def _create_applied(
        self,
        request: ApiRequest,
        target: Target,
        configuration: Configuration,
        options: WriteOptions,
    ) -> Written:
        resource = target.resource
        attributes = Attributes(
            "create", request.path, resource.group, resource.plural, target.namespace, target.name
        )
        require(self._authorizer, request.user, attributes)
        info = self.request_info(request, target, "create", options)
        new, managers = await self._workers.run(
            info.size, lambda: new_object(configuration, target, self._objects.clock())
        )
        placed = in_place(new, target, verb="patch")
        written = await self._objects.create(resource, target.namespace, placed, info, managers)
        return written._replace(created=True)

    async def read_configuration(
        self, request: ApiRequest, options: WriteOptions
    ) -> tuple[Configuration, list[str]]:
        """What a request applies, and warnings about the way it says so."""
        size = len(request.body) * SLOW
        read = await self._workers.run(size, lambda: read_applied(request.body))
        duplicates = [] if options.field_validation == "Ignore" else read.duplicates
        if duplicates and options.field_validation == "Strict":
            raise refuse_duplicates(duplicates)
        manager, force = request.query.get("fieldManager", ""), request.flag("force")
        misfit_code = 400 if BAD_CONFIGURATION_IS_BAD_REQUEST in self._objects.gates else 500
        return Configuration(read.document, manager, force, misfit_code), duplicates

    async def delete(self, request: ApiRequest, target: Target) -> Written:
        options = delete_options(request, "delete")
        info = self.request_info(request, target, "delete", _plain(options))
        key = ObjectKey(target.namespace, target.name)
        return await self._objects.delete(target.resource, key, options, info)

    async def delete_collection(
        self, request: ApiRequest, target: Target, selection: Selection
    ) -> Listing:
        """Delete what a list with the same options shows, which is also the answer."""
        options = delete_options(request, "deletecollection")
        info = self.request_info(request, target, "deletecollection", _plain(options))
        listing = await self._reader.list(selection, list_options(request))
        async for stored in with_pauses(listing.objects, DELETES_AT_ONCE):
            metadata = stored.object.metadata
            key = metadata.key
            try:
                await self._objects.delete(target.resource, key, options, info)
            except ApiError as error:
                if error.code != 404:  # deleted concurrently
                    raise
        return listing

    # --- what subresources share ---

    async def apply(
        self,
        request: ApiRequest,
        target: Target,
        update: Update,
        verb: str,
        options: WriteOptions,
    ) -> Written:
        key = ObjectKey(target.namespace, target.name)
        info = self.request_info(request, target, verb, options)
        return await self._objects.update(target.resource, key, update, info)

    def request_info(
        self, request: ApiRequest, target: Target, verb: str, options: WriteOptions
    ) -> RequestInfo:
        user, authorizer, group = request.user, self._authorizer, target.resource.group

        def may(permission: Permission) -> bool:
            verb, resource, namespace, name = permission
            attributes = Attributes(verb, request.path, group, resource, namespace, name)
            return authorizer.authorize(user, attributes).allowed

        caller = Caller(user.name, user.extra, may, user.groups)
        size = work_size(request, target)
        part = target.subresource.name if target.subresource else ""
        return RequestInfo(caller, target.version, verb, options.dry_run, size, part)

    async def read_object(
        self, request: ApiRequest, target: Target, options: WriteOptions, verb: str
    ) -> ReadBody:
        """The object in the body of a request, in the place that the URL names."""
        size = max(work_size(request, target), reading_size(request))
        if size <= LARGE:
            return self._read(request, target, options, verb)
        return await self._workers.run(size, lambda: self._read(request, target, options, verb))

    def _read(
        self, request: ApiRequest, target: Target, options: WriteOptions, verb: str
    ) -> ReadBody:
        warnings: list[str] = []
        if media_type(request.header("content-type")) == PROTOBUF:
            obj = self._read_protobuf(request.body, target)
        else:
            body = json_body(request, target.resource.gvk(target.version))
            obj, warnings, _ = self.read_json(body.json, target, options, body.duplicates)
        placed = in_place(obj, target, verb=verb)
        if verb != "create":
            return ReadBody(placed, warnings)
        managers = managers_of_new(placed, request, target, self._objects.clock())
        return ReadBody(placed, warnings, managers)

    async def read_body(
        self, request: ApiRequest, expected: GroupVersionKind | None = None
    ) -> Body:
        """The body of a request as JSON; 400 if it is empty."""
        return await self._workers.run(reading_size(request), lambda: json_body(request, expected))

    def _read_protobuf(self, body: bytes, target: Target) -> Any:
        """The object in protobuf, which has no unknown or duplicate fields to be strict about."""
        resource, version = target.resource, target.version
        gvk = resource.gvk(version)
        codec = codec_for(resource)
        if not codec.has_protobuf(version):
            error = unsupported((JSON, YAML))
            raise ApiError(error.code, error.reason, error.message)
        try:
            envelope = open_envelope(body)
        except DecodeError as error:
            raise bad_request(
                f"the object provided is unrecognized (must be of type {gvk.kind}): "
                f"{error} ({_summary(body)})"
            ) from None
        check_kind(envelope.api_version, envelope.kind, gvk)
        try:
            return codec.decode_protobuf(envelope.content, version, self._objects.clock())
        except DecodeError as error:
            raise api_errors.cannot_be_read(resource.kind, version, error.located) from None

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
        check_type(body, gvk)
        codec = codec_for(resource)
        release_interpreter(len(body))
        try:
            if options.field_validation == "Ignore":
                obj = codec.decode(body, version, self._objects.clock())
                return ReadBody(with_reset_managers(obj, body, target), [])
            obj, ignored = codec.decode_strictly(body, version, self._objects.clock())
        except DecodeError as error:
            raise api_errors.cannot_be_read(resource.kind, version, error.located) from None
        issues = [*(f'duplicate field "{path}"' for path in duplicates), *ignored]
        del issues[MAX_ISSUES:]
        if issues and options.field_validation == "Strict":
            raise api_errors.strict_decoding(resource.kind, version, issues)
        return ReadBody(with_reset_managers(obj, body, target), issues)

    def _read_patched(
        self, body: bytes, old: Any, target: Target, options: WriteOptions
    ) -> ReadBody:
        """The object after a patch of `old`; 422 if it cannot be decoded."""
        resource, version = target.resource, target.version
        check_type(body, resource.gvk(version))
        codec = codec_for(resource)
        release_interpreter(len(body))
        try:
            if options.field_validation == "Ignore":
                obj = codec.decode(body, version, self._objects.clock())
                return ReadBody(with_reset_managers(obj, body, target), [])
            obj, issues = codec.decode_strictly(body, version, self._objects.clock())
        except DecodeError as error:
            raise api_errors.bad_patch(body, error.located) from None
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
        raise ApiError(error.code, error.reason, error.message) from None
    if not body.json.strip():
        raise bad_request("the body of the request is empty; an object was expected")
    return body


def _pipeline_step(target: Target) -> Callable[[Any, Any, WriteRequest], Outcome]:
    """The step of the write pipeline that completes an update of the object or of its status."""
    pipeline = pipeline_for(target.resource)
    return pipeline.update_status if target.subresource else pipeline.update


_type_decoder: Final = msgspec.json.Decoder(TypeMeta)


def check_type(body: bytes, expected: GroupVersionKind) -> None:
    """400 if the body says it is of another kind or version. It need not say anything."""
    if has_too_many_values(body):
        raise api_errors.too_many_values(MAX_VALUES)
    if is_too_deep(body):
        raise bad_request("json: document is nested too deeply")
    _check_encoding(body)
    try:
        found = _type_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).removeprefix("JSON is ")
        raise bad_request(
            f'{expected.kind} in version "{expected.version}" cannot be handled as a {expected.kind}: '
            f"{text[:1].lower()}{text[1:]}"
        ) from None
    check_kind(found.api_version, found.kind, expected)


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
            f"the body is a {kind}, not a {expected.kind}"
        )


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


def in_place(obj: Any, target: Target, *, verb: str) -> Any:
    """The object with the namespace of the URL; 400 if it names another place."""
    metadata: ObjectMeta = obj.metadata
    if target.resource.namespaced and metadata.namespace not in ("", target.namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
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


def is_apply_patch(request: ApiRequest) -> bool:
    """Whether a patch is a configuration to apply; 415 if it is nothing that is known."""
    try:
        return patch_format(request.header("content-type")) == "apply"
    except BodyError as error:
        raise ApiError(error.code, error.reason, error.message) from None


class _Patch:
    """A patch that can be applied again after a write conflict."""

    def __init__(self, request: ApiRequest, target: Target) -> None:
        try:
            self._format = patch_format(request.header("content-type"))
        except BodyError as error:
            raise ApiError(error.code, error.reason, error.message) from None
        self._body = request.body
        self._schema = type_of(target.resource.gvk(target.version))

    @property
    def is_apply(self) -> bool:
        return self._format == "apply"

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
            raise ApiError(error.code, error.reason, error.message) from None
        if not isinstance(patched, dict):
            raise bad_request("the patched document is not an object")
        return msgspec.json.encode(patched)


# --- delete ---


def delete_options(request: ApiRequest, verb: str) -> DeleteOptions:
    """The options of a delete, from the body or, if that is empty, the query."""
    write_options(request, verb)  # checks what the query says
    if request.body.strip():
        options = _options_from_body(request)
    else:
        options = DeleteOptions(
            grace_period_seconds=request.number("gracePeriodSeconds"),
            propagation_policy=request.query.get("propagationPolicy") or None,
            orphan_dependents=(
                request.flag("orphanDependents") if "orphanDependents" in request.query else None
            ),
        )
    if request.query.get("dryRun"):
        options = msgspec.structs.replace(options, dry_run=("All",))
    check_options(options)
    return options


def _options_from_body(request: ApiRequest) -> DeleteOptions:
    try:
        body = read_body(request.body, request.header("content-type"), _DELETE_OPTIONS).json
        kind = _type_decoder.decode(body).kind
        if kind not in (None, "", "DeleteOptions"):
            raise bad_request(f"the body of a delete must be DeleteOptions, not a {kind}")
        return msgspec.json.decode(body, type=DeleteOptions)
    except BodyError as error:
        raise ApiError(error.code, error.reason, error.message) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the delete options cannot be read: {error}") from None


_DELETE_OPTIONS: Final = GroupVersionKind("", "v1", "DeleteOptions")


def check_options(options: DeleteOptions) -> None:
    errors = []
    policy = options.propagation_policy
    if policy is not None and policy not in POLICIES:
        errors.append(not_supported(FieldPath("propagationPolicy"), policy, POLICIES))
    if policy is not None and options.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_field(FieldPath("propagationPolicy"), policy, detail))
    errors += [
        not_supported(FieldPath("dryRun"), value, ["All"])
        for value in options.dry_run
        if value != "All"
    ]
    if errors:
        raise options_error("DeleteOptions", errors)


def _plain(options: DeleteOptions) -> WriteOptions:
    return WriteOptions(bool(options.dry_run), "Ignore")
