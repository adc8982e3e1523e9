"""Parts of objects that are kinds of their own: binding, eviction, scale, token; and finalize."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, Cause, Details, bad_request
from allot.apiserver.auth.authentication import User
from allot.apiserver.dynamic_admission.admission import DynamicAdmission
from allot.apiserver.http.delete_options import check_options
from allot.apiserver.http.field_tracking import Managers, tracked, with_managers_of
from allot.apiserver.http.negotiation import JSON
from allot.apiserver.http.object_bodies import OTHER_NAMESPACE, unnamed
from allot.apiserver.http.patch_bodies import is_apply_patch
from allot.apiserver.http.pod_logs import NO_KUBELET, NO_PROCESSES, no_connection
from allot.apiserver.http.requests import (
    ApiRequest,
    WriteOptions,
    check_patch_options,
    write_options,
)
from allot.apiserver.http.responses import Response, json_response, warning_headers
from allot.apiserver.http.routes import Target
from allot.apiserver.http.scale_writes import ScaleWrites, check_place, document_of
from allot.apiserver.http.writing import WriteHandlers
from allot.apiserver.kinds.definition import BINDING, BINDING_KIND, EVICTION
from allot.apiserver.kinds.eviction import (
    BUDGET_CAUSE,
    EvictionGranted,
    EvictionRefused,
    decide_eviction,
    evicted,
    protects,
)
from allot.apiserver.kinds.namespace import finalize
from allot.apiserver.kinds.pod_binding import BindingRefused, bind, plain_binding, validate_binding
from allot.apiserver.kinds.request import RequestInfo, WriteRequest
from allot.apiserver.kinds.scale import scale_of, validate_scale, with_scale
from allot.apiserver.pacing import LARGE, Pacer, Workers, json_work
from allot.apiserver.registry.deletion import DeleteOptions, Preconditions, check_preconditions
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.reading import Reader
from allot.apiserver.registry.token_requests import TokenRequests
from allot.apiserver.registry.write_pipeline import (
    Accepted,
    Outcome,
    Update,
    accept,
    pipeline_for,
    unmet_precondition,
)
from allot.apiserver.registry.write_results import Written
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named
from allot.apiserver.watch_cache.storage_errors import api_errors_for_storage
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.validation.fields import FieldPath, invalid

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_CREATED: Final = json_response(201, {**SUCCESS, "code": 201})


TokenCheck = Callable[[User, str, str, dict[str, Any]], None]
"""Raises `ApiError` if the user must not have this token for the account of that namespace and name."""


@cache
def _type_of(kind: GroupVersionKind) -> dict[str, str]:
    return {"kind": kind.kind, "apiVersion": str(kind.group_version)}


def proxied_name(given: str) -> str | None:
    """The name in `name`, `name:port` or `scheme:name:port`; None if it is none of these."""
    match given.split(":"):
        case [name] | [name, _] | ["" | "http" | "https", name, _] if name:
            return name
    return None


def _asked_deletion(
    eviction: dict[str, Any], target: Target, options: WriteOptions
) -> DeleteOptions:
    """The options in an Eviction of the pod that the URL names."""
    metadata = eviction.get("metadata") or {}
    if metadata.get("namespace") not in (None, "", target.namespace):
        raise bad_request(OTHER_NAMESPACE)
    if metadata.get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    written = eviction.get("deleteOptions") or {}
    try:
        asked = msgspec.convert(written, DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"the delete options cannot be read: {error}") from None
    if options.dry_run and asked.dry_run not in ((), ("All",)):
        shown = " ".join(asked.dry_run)
        message = f"Non-matching dry-run options in request and content: [All] and [{shown}]"
        raise api_errors.unclassified(message)
    if written.get(_IGNORE_ERRORS):
        path = FieldPath("deleteOptions") / _IGNORE_ERRORS
        rule = "can not be set for pod eviction, try after removing the option"
        raise api_errors.invalid("policy", "Eviction", target.name, [invalid(path, True, rule)])
    check_options(asked)
    return asked


def _protects(stored: StoredObject, pod: Pod) -> bool:
    """Whether a stored budget is about a pod."""
    return protects(stored.object, pod)


NOT_FOUND: Final = 404
_IGNORE_ERRORS: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"


class Subresources:
    """What can be done with parts of objects."""

    def __init__(
        self,
        objects: ObjectStore,
        reader: Reader,
        caches: Caches,
        writes: WriteHandlers,
        tokens: TokenRequests,
        check_token: TokenCheck,
        clock: Callable[[], datetime],
        workers: Workers,
        dynamic: DynamicAdmission,
    ) -> None:
        self._objects = objects
        self._reader = reader
        self._caches = caches
        self._writes = writes
        self._tokens = tokens
        self._check_token = check_token
        self._clock = clock
        self._workers = workers
        self._dynamic = dynamic
        self._budgets = resource_named("policy", "poddisruptionbudgets")
        self._pods = resource_named("", "pods")

    async def handle(self, request: ApiRequest, target: Target, verb: str) -> Response:
        assert target.subresource is not None
        match target.subresource.name:
            case "binding":
                return await self._bind(request, target)
            case "eviction":
                return await self._evict(request, target)
            case "token":
                return await self._token(request, target)
            case "attach" | "exec" | "portforward" as part:
                key = ObjectKey(target.namespace, target.name)
                await self._reader.get(target.resource, key, "")
                raise no_connection(part, "pod", target.name, NO_PROCESSES)
            case "proxy":
                raise await self._no_proxy(target)
            case _:
                return await self._scale(request, target, verb)

    async def _no_proxy(self, target: Target) -> ApiError:
        """The name of the object may come with a scheme and a port: `https:web:443`."""
        kind = target.resource.kind.lower()
        name = proxied_name(target.name)
        if name is None:
            raise bad_request(f'invalid {kind} request "{target.name}"')
        await self._reader.get(target.resource, ObjectKey(target.namespace, name), "")
        return no_connection("proxy", kind, name, NO_KUBELET if kind == "node" else NO_PROCESSES)

    # --- binding ---

    async def bind_named(self, request: ApiRequest, target: Target) -> Response:
        """A Binding in the collection of bindings: its name is that of the pod."""
        options = write_options(request, "create")
        gvk = target.resource.gvk(target.version)
        document, ignored = await self.document(request, gvk)
        metadata = document.get("metadata") or {}
        if not metadata.get("name"):
            raise bad_request("Name parameter required.")
        named = replace(target, name=metadata["name"])
        if await self._caches.namespace(target.namespace) is None:
            raise api_errors.not_found(self._caches.namespaces, target.namespace)
        placed = document | {"metadata": {"namespace": target.namespace, **metadata}}
        info = self._writes.request_info(request, named, "create", options)
        binding, warnings = await self._admit(named, placed, info)
        pod = replace(named, resource=self._pods, subresource=BINDING)
        info = self._writes.request_info(request, pod, "create", options)
        return await self._bound(pod, info, binding, (*ignored, *warnings))

    async def _bind(self, request: ApiRequest, target: Target) -> Response:
        options = write_options(request, "create")
        binding, warnings = await self.document(request, BINDING_KIND)
        info = self._writes.request_info(request, target, "create", options)
        if not self._dynamic.activity.is_idle:
            binding, more = await self._admit(target, binding, info)
            warnings += more
        return await self._bound(target, info, binding, tuple(warnings))

    async def _bound(
        self,
        target: Target,
        info: RequestInfo,
        binding: dict[str, Any],
        warnings: tuple[str, ...],
    ) -> Response:
        metadata = binding.get("metadata") or {}
        if metadata.get("namespace") not in (None, "", target.namespace):
            raise bad_request(OTHER_NAMESPACE)
        if metadata.get("name") != target.name:
            raise bad_request("name in URL does not match name in Binding object")
        errors = list(validate_binding(binding))
        if errors:
            listed = ", ".join(map(str, errors))
            raise api_errors.unclassified(f"[{listed}]" if len(errors) > 1 else listed)

        def bound_pod(pod: Pod, write: WriteRequest) -> Pod:
            bound = bind(pod, binding, write.now, dry_run=info.dry_run)
            if isinstance(bound, BindingRefused):
                kind, name = bound.kind, target.name
                message = f'Operation cannot be fulfilled on {kind} "{name}": {bound.message}'
                raise ApiError(409, "Conflict", message, Details(name, "", kind))
            return bound

        update = Update(bound_pod, accept)
        key = ObjectKey(target.namespace, target.name)
        try:
            await self._objects.update(target.resource, key, (update, info))
        except ApiError as error:
            await self._explain_missing(error, target)
            raise
        return replace(_CREATED, headers=warning_headers(warnings)) if warnings else _CREATED

    async def _explain_missing(self, error: ApiError, target: Target) -> None:
        """A part is created in the namespace of its object: 404 about that if it is missing."""
        if error.code == NOT_FOUND and await self._caches.namespace(target.namespace) is None:
            raise api_errors.not_found(self._caches.namespaces, target.namespace) from error

    # --- eviction ---

    async def _evict(self, request: ApiRequest, target: Target) -> Response:
        options = write_options(request, "create")
        eviction, warnings = await self._admitted(request, target, options)
        asked = _asked_deletion(eviction, target, options)
        dry_run = options.dry_run or bool(asked.dry_run)
        key = ObjectKey(target.namespace, target.name)
        try:
            stored = await self._reader.get(target.resource, key, "")
        except ApiError as error:
            await self._explain_missing(error, target)
            raise
        pod: Pod = stored.object
        check_preconditions(asked, pod.metadata, target.resource)
        granted = await self._decision(pod)
        quietly = WriteOptions(dry_run, "Ignore")
        if granted.budget is not None and not dry_run:
            await self._spend(request, target, granted.budget)
        if not granted.only_this_version and pod.metadata.deletion_timestamp is None:
            await self._writes.apply(
                request,
                target,
                Update(lambda old, write: evicted(old, write.now), accept),
                "update",
                quietly,
            )
        # A condition that was just added makes a new version of the same pod.
        version = str(stored.revision) if granted.only_this_version else None
        same = Preconditions(uid=pod.metadata.uid, resource_version=version)
        asked = msgspec.structs.replace(asked, preconditions=same)
        info = self._writes.request_info(request, target, "delete", quietly)
        await self._objects.delete(target.resource, key, asked, info)
        return replace(_CREATED, headers=warning_headers(warnings)) if warnings else _CREATED

    async def _decision(self, pod: Pod) -> EvictionGranted:
        cache = self._caches.of(self._budgets)
        with api_errors_for_storage():
            await cache.refresh()
        prefix = key_prefix(self._budgets, pod.metadata.namespace)
        concerned: list[RawObject] = []
        work = 0
        async for stored in Pacer().each(cache.select(prefix)):
            size = json_work(stored.entry.value)
            if await self._workers.run(size, partial(_protects, stored, pod)):
                concerned.append(stored.object)
                work += size
            if len(concerned) > 1:
                break  # more make no difference
        now = self._clock()
        decision = await self._workers.run(work, lambda: decide_eviction(pod, concerned, now))
        if isinstance(decision, EvictionRefused):
            causes = (Cause(BUDGET_CAUSE, decision.cause),) if decision.cause else ()
            raise ApiError(
                decision.code,
                decision.reason,
                decision.message,
                Details(causes=causes, retry_after_seconds=decision.retry_after_seconds)
                if decision.reason
                else None,
            )
        return decision

    async def _spend(self, request: ApiRequest, target: Target, budget: RawObject) -> None:
        """Write the budget exactly as it was decided on; 409 if it changed meanwhile."""
        place = Target(self._budgets, "v1", target.namespace, budget.metadata.name)

        def complete(new: RawObject, old: RawObject, _: WriteRequest) -> Outcome:
            return unmet_precondition(new.metadata, old.metadata) or Accepted(new, [])

        update = Update(lambda _old, _write: budget, complete)
        await self._writes.apply(request, place, update, "update", WriteOptions(False, "Ignore"))

    # --- scale ---

    async def _scale(self, request: ApiRequest, target: Target, verb: str) -> Response:
        custom = target.resource.custom
        paths = None if custom is None else custom.scale
        if verb == "get":
            key = ObjectKey(target.namespace, target.name)
            stored = await self._reader.get(target.resource, key, "")
            return json_response(200, scale_of(stored.object, paths))
        options = write_options(request, verb)
        ignored: list[str] = []
        sent = None
        if verb == "update":
            sent, ignored = await self._document(request, target)
        configuration = None
        if verb == "patch":
            is_apply = is_apply_patch(request)
            check_patch_options(request, is_apply=is_apply)
            if is_apply:
                configuration, _ = await self._writes.read_configuration(request, options)
        if sent is not None and not (sent.get("metadata") or {}).get("name"):
            raise bad_request(unnamed(target.name))
        writes = ScaleWrites(request, target, ignored, sent, configuration)

        def scaled(workload: RawObject, write: WriteRequest) -> tuple[RawObject, Managers]:
            scale, entries = writes.written(workload, write.now)
            # The numbers of custom resources are validated with the rest of them.
            errors = list(validate_scale(scale)) if paths is None else []
            if errors:
                raise api_errors.invalid("autoscaling", "Scale", target.name, errors)
            check_place(scale, workload, target, verb)
            return with_scale(workload, scale, paths), tuple(entries)

        update = with_managers_of(scaled, pipeline_for(target.resource).update, target)
        written = await self._writes.apply(request, target, update, verb, options)
        response = json_response(200, scale_of(written.stored.object, paths))
        shown = () if options.field_validation == "Ignore" else tuple(dict.fromkeys(ignored))
        return replace(response, headers=warning_headers(shown))

    # --- token ---

    async def _token(self, request: ApiRequest, target: Target) -> Response:
        options = write_options(request, "create")
        asked, warnings = await self._admitted(request, target, options)
        self._check_token(request.user, target.namespace, target.name, asked)
        key = ObjectKey(target.namespace, target.name)
        issued = await self._tokens.issue(target.resource, key, asked)
        if options.dry_run:
            issued.document["status"].pop("token", None)
        headers = warning_headers([*issued.warnings, *warnings])
        return replace(json_response(201, issued.document), headers=headers)

    # --- finalize ---

    async def finalize(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "update")
        info = self._writes.request_info(request, target, "update", options)
        read = await self._writes.read_object(request, target, options, info)
        sent = read.object

        def complete(new: RawObject, old: RawObject, _: WriteRequest) -> Outcome:
            refused = unmet_precondition(new.metadata, old.metadata)
            return refused or Accepted(finalize(new, old), [])

        update = tracked(Update(lambda _old, _write: sent, complete), request, target)
        key = ObjectKey(target.namespace, target.name)
        return await self._objects.update(target.resource, key, (update, info))

    async def _admitted(
        self, request: ApiRequest, target: Target, options: WriteOptions
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The body after policies and webhooks, and their warnings."""
        document, ignored = await self._document(request, target)
        info = self._writes.request_info(request, target, "create", options)
        admitted, warnings = await self._admit(target, document, info)
        return admitted, (*ignored, *warnings)

    async def _admit(
        self, target: Target, document: dict[str, Any], info: RequestInfo
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        if self._dynamic.activity.is_idle:
            return document, ()
        return await self._dynamic.admit_document(
            target.resource, target.namespace, target.name, document, info
        )

    async def _document(
        self, request: ApiRequest, target: Target
    ) -> tuple[dict[str, Any], list[str]]:
        """The body as JSON values, of the kind that belongs here, and warnings."""
        part = target.subresource
        assert part is not None
        assert part.kind is not None
        name = "" if part in (BINDING, EVICTION) else target.name  # checked with the rest of it
        return await self.document(request, part.kind, name)

    async def document(
        self, request: ApiRequest, kind: GroupVersionKind, name: str = ""
    ) -> tuple[dict[str, Any], list[str]]:
        """The body as JSON values, and unknown fields, if they are not to be ignored.

        400 if it is of another kind, has another name, or unknown fields if that matters.
        """
        if kind == BINDING_KIND and request.header("content-type") == JSON:
            plain = plain_binding(request.body)
            if plain is not None:
                return plain, []
        body = (await self._writes.read_body(request, kind)).json
        validation = request.query.get("fieldValidation")
        issues: list[str] = []
        read = partial(document_of, kind, body, name, None if validation == "Ignore" else issues)
        document = read() if len(body) <= LARGE else await self._workers.run(len(body), read)
        if issues and validation == "Strict":
            raise api_errors.strict_decoding(kind.kind, kind.version, issues)
        return document | _type_of(kind), issues
