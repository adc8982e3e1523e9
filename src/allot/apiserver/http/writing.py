"""create, update, patch, delete and deletecollection of objects and their statuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from allot.api.base import replace
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.managed_fields import without_managed_fields
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, MissingObjectError
from allot.apiserver.auth.authorization import Attributes, Authorizer, IsGranted, require
from allot.apiserver.http.apply_bodies import read_configuration as read_applied
from allot.apiserver.http.apply_bodies import refuse_duplicates
from allot.apiserver.http.delete_options import delete_options
from allot.apiserver.http.field_tracking import (
    Managers,
    managers_of_new,
    tracked,
    with_managers_of,
)
from allot.apiserver.http.list_options import list_options
from allot.apiserver.http.negotiation import APPLY, JSON, Body, media_type
from allot.apiserver.http.object_bodies import (
    ObjectBodies,
    ReadBody,
    in_place,
    json_body,
)
from allot.apiserver.http.patch_bodies import Patch
from allot.apiserver.http.request_attributes import action_of, attributes_of
from allot.apiserver.http.requests import (
    ApiRequest,
    WriteOptions,
    check_patch_options,
    write_options,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.http.server_side_apply import MAX_TRIES as MAX_CREATE_TRIES
from allot.apiserver.http.server_side_apply import Configuration, apply_to, new_object
from allot.apiserver.http.work_sizes import converting_size, reading_size, work_size
from allot.apiserver.kinds.request import Caller, Permission, RequestInfo, WriteRequest
from allot.apiserver.pacing import FEW_BYTES, LARGE, SLOW, Workers, on_event_loop
from allot.apiserver.registry.deletion import DeleteOptions
from allot.apiserver.registry.object_store import ObjectStore, RequestedUpdate
from allot.apiserver.registry.reading import Listing, Reader
from allot.apiserver.registry.selection import Selection
from allot.apiserver.registry.write_pipeline import Outcome, Update, pipeline_for
from allot.apiserver.registry.write_results import Written, creatable_by_update, is_as_sent
from allot.client.cooperative import with_pauses
from allot.client.transport import UNLESS_CHANGED, WITH_STATUS, WITHOUT_OBJECT
from allot.rules import BAD_CONFIGURATION_IS_BAD_REQUEST

DELETES_AT_ONCE: Final = 10
"""Objects of a collection that are deleted between two pauses."""


class WriteHandlers:
    """The writing verbs."""

    def __init__(
        self,
        objects: ObjectStore,
        reader: Reader,
        authorizer: Authorizer,
        workers: Workers,
        is_granted: IsGranted,
    ) -> None:
        self._objects = objects
        self._reader = reader
        self._authorizer = authorizer
        self._is_granted = is_granted
        self._workers = workers
        self._gates = objects.gates
        self._bodies = ObjectBodies(objects.clock, objects.gates)

    async def create(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "create")
        info = self.request_info(request, target, "create", options)
        if info.size <= LARGE and len(request.body) <= FEW_BYTES:  # mostly
            read = self._bodies.read(request, target, options, "create")
        else:
            read = await self.read_object(request, target, options, info)
        try:
            written = await self._objects.create(
                target.resource, target.namespace, read.object, info, read.managers
            )
        except ApiError as error:
            error.warnings[:0] = read.warnings
            raise
        return written.with_warnings(read.warnings) if read.warnings else written

    async def update(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "update")
        info = self.request_info(request, target, "update", options)
        read = await self.read_object(request, target, options, info)
        updates = [(_replacement(read.object, request, target), info)]
        if target.subresource is None and request.header(WITH_STATUS):
            status = self._status_of(target, request)
            of_status = replace(info, subresource="status")
            updates.append((_replacement(read.object, request, status), of_status))
        try:
            written = await self._updated_or_created(request, target, read.object, options, updates)
        except ApiError as error:
            error.warnings[:0] = read.warnings
            raise
        if not request.wants_object and request.header(WITHOUT_OBJECT) == UNLESS_CHANGED:
            is_typed = target.resource.info.is_typed
            written = replace(written, as_sent=is_typed and is_as_sent(read.object, written))
        return written.with_warnings(read.warnings)

    async def _updated_or_created(
        self,
        request: ApiRequest,
        target: Target,
        new: Any,
        options: WriteOptions,
        updates: list[RequestedUpdate],
    ) -> Written:
        """The replaced object; one that does not exist is created, if updates may create objects of its kind."""
        key = ObjectKey(target.namespace, target.name)
        for _ in range(MAX_CREATE_TRIES):
            try:
                return await self._objects.update(target.resource, key, *updates)
            except MissingObjectError:
                if target.subresource is not None or not target.resource.is_created_by_update:
                    raise
            try:
                return await self._create_missing(request, target, new, options)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        raise api_errors.conflict(target.resource, target.name, api_errors.MODIFIED)

    async def _create_missing(
        self, request: ApiRequest, target: Target, new: Any, options: WriteOptions
    ) -> Written:
        resource = target.resource
        creatable = creatable_by_update(resource, new, dry_run=options.dry_run)
        self._require_create(request, target)
        info = self.request_info(request, target, "create", options)
        managers = await self._workers.run(
            info.size, lambda: managers_of_new(new, request, target, self._objects.clock())
        )
        written = await self._objects.create(resource, target.namespace, creatable, info, managers)
        return replace(written, created=True)

    def _require_create(self, request: ApiRequest, target: Target) -> None:
        """403 unless the user may create the object that a request names but does not find."""
        resource = target.resource
        attributes = Attributes(
            "create", request.path, resource.group, resource.plural, target.namespace, target.name
        )
        require(self._authorizer, request.user, attributes)

    def _status_of(self, target: Target, request: ApiRequest) -> Target:
        """The status of an object; 403 unless the user may update it, 404 if the kind has none."""
        status = replace(target, subresource=target.resource.subresource("status"))
        if status.subresource is None:
            raise api_errors.not_found(target.resource, target.name)
        action = action_of(status, "update")
        if not self._is_granted(request.user, action, status.namespace):
            require(self._authorizer, request.user, attributes_of(request, status, action))
        return status

    async def patch(self, request: ApiRequest, target: Target) -> Written:
        options = write_options(request, "patch")
        if media_type(request.header("content-type")) == APPLY:
            check_patch_options(request, is_apply=True)
            return await self._apply_configuration(request, target, options)
        patch = Patch(request, target, self._gates)
        check_patch_options(request, is_apply=False)
        warnings: list[str] = []

        def patched(old: Any, write: WriteRequest) -> Any:
            base = old if b"managedFields" in request.body else without_managed_fields(old)
            read = self._bodies.read_patched(patch, base, target, options, write.stored_size)
            warnings[:] = read.warnings
            return in_place(read.object, target, verb="patch")

        update = tracked(Update(patched, _pipeline_step(target)), request, target)
        try:
            written = await self.apply(request, target, update, "patch", options)
        except ApiError as error:
            error.warnings[:0] = warnings
            raise
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
        for _ in range(MAX_CREATE_TRIES):
            try:
                written = await self.apply(request, target, update, "patch", options)
                return written.with_warnings(warnings)
            except MissingObjectError:
                if target.subresource is not None:
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
        self._require_create(request, target)
        info = self.request_info(request, target, "create", options)
        new, managers = await self._workers.run(
            info.size, lambda: new_object(configuration, target, self._objects.clock())
        )
        placed = in_place(new, target, verb="patch")
        written = await self._objects.create(resource, target.namespace, placed, info, managers)
        return replace(written, created=True)

    async def read_configuration(
        self, request: ApiRequest, options: WriteOptions
    ) -> tuple[Configuration, list[str]]:
        """What a request applies, and warnings about the way it says so."""
        size = len(request.body) * SLOW
        if size <= LARGE:
            read = read_applied(request.body)
        else:
            read = await self._workers.run(size, lambda: read_applied(request.body))
        duplicates = read.duplicates
        if duplicates and options.field_validation == "Ignore":
            duplicates = []
        if duplicates and options.field_validation == "Strict":
            raise refuse_duplicates(duplicates)
        manager, force = request.query.get("fieldManager", ""), request.flag("force")
        misfit_code = 400 if BAD_CONFIGURATION_IS_BAD_REQUEST in self._gates else 500
        configuration = Configuration(read.document, manager, force, misfit_code, read.claim_names)
        return configuration, duplicates

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
        """Update the object that the URL names."""
        info = self.request_info(request, target, verb, options)
        key = ObjectKey(target.namespace, target.name)
        return await self._objects.update(target.resource, key, (update, info))

    def request_info(
        self, request: ApiRequest, target: Target, verb: str, options: WriteOptions
    ) -> RequestInfo:
        user, part = request.user, target.subresource
        may = partial(self._may, request, target.resource.group, asyncio.get_running_loop())
        return RequestInfo(
            Caller(user.name, user.extra, may, user.groups, user.uid),
            target.version,
            verb,
            options.dry_run,
            work_size(request, target, verb),
            "" if part is None else part.name,
            request.query,
            False,
        )

    def _may(
        self,
        request: ApiRequest,
        group: str,
        loop: asyncio.AbstractEventLoop,
        permission: Permission,
    ) -> bool:
        """Whether the user has a permission in a group. Large objects are validated in threads, which ask there."""
        return on_event_loop(loop, partial(self._is_allowed, request, group, permission))

    def _is_allowed(self, request: ApiRequest, group: str, permission: Permission) -> bool:
        verb, resource, namespace, name = permission
        if self._is_granted(request.user, (verb, group, resource), namespace):
            return True
        attributes = Attributes(verb, request.path, group, resource, namespace, name)
        return self._authorizer.authorize(request.user, attributes).allowed

    async def read_object(
        self, request: ApiRequest, target: Target, options: WriteOptions, info: RequestInfo
    ) -> ReadBody:
        """The object in the body of a request, in the place that the URL names."""
        is_short = info.size <= LARGE and len(request.body) <= FEW_BYTES
        if is_short or (size := reading_size(request, target)) <= LARGE:
            return self._bodies.read(request, target, options, info.verb)
        return await self._workers.run(
            size, lambda: self._bodies.read(request, target, options, info.verb)
        )

    async def read_body(
        self, request: ApiRequest, expected: GroupVersionKind | None = None
    ) -> Body:
        """The body of a request as JSON; 400 if it is empty."""
        if request.body[:1] == b"{" and request.header("content-type") == JSON:
            return Body(request.body)
        size = converting_size(request)
        if size <= LARGE:
            return json_body(request, expected)
        return await self._workers.run(size, lambda: json_body(request, expected))


def _replacement(new: Any, request: ApiRequest, target: Target) -> Update:
    """The replacement of an object, or of its status."""
    return tracked(Update(lambda _old, _request: new, _pipeline_step(target)), request, target)


def _pipeline_step(target: Target) -> Callable[[Any, Any, WriteRequest], Outcome]:
    """The step of the write pipeline that completes an update of the object or of its status."""
    pipeline = pipeline_for(target.resource)
    return pipeline.update_status if target.subresource else pipeline.update


def _plain(options: DeleteOptions) -> WriteOptions:
    return WriteOptions(bool(options.dry_run), "Ignore")
