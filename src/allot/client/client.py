"""The typed client: the verbs of the API, with the types of each resource. `read_client` has those that read.

`retries` decides on retries. Requests that are retried when their outcome is unknown:

    get, list                       always
    update with a resourceVersion   yes: a repeated update conflicts, and callers handle conflicts
    create with a name              yes: a repeated create is AlreadyExists, which callers must expect
    create with a generated name    never: it would create two objects
    merge and strategic patches     yes: they are idempotent
    server-side apply               yes: likewise
    JSON patches                    never: they may append
    delete with a uid or version    yes; "not found" after a retry means that the first request succeeded
    delete by name alone            never: it could delete a successor
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.api.meta import KubernetesObject
from allot.client.errors import ApiStatusError, ClientError
from allot.client.options import PLAIN_DELETE, DeleteOptions, PatchType, Scope
from allot.client.protobuf import PROTOBUF
from allot.client.rate_limits import RequestLimit
from allot.client.read_client import ReadClient, decoded
from allot.client.resources import PODS, Resource
from allot.client.retries import NEVER
from allot.client.transport import (
    JSON,
    STORED_VERSION,
    UNLESS_CHANGED,
    WITH_STATUS,
    WITHOUT_OBJECT,
    ClusterTransport,
    Response,
)

CONFLICT_ATTEMPTS: Final = 10

_DRY_RUN: Final = {"dryRun": "All"}
_STRICT: Final = {"fieldValidation": "Strict"}
_CREATE_QUERIES: Final[Mapping[tuple[bool, bool], Mapping[str, str] | None]] = {
    (False, False): None,
    (False, True): _STRICT,
    (True, False): _DRY_RUN,
    (True, True): {**_DRY_RUN, **_STRICT},
}
"""By whether it is a dry run, and whether it is strict."""
_UNREAD: Final = {WITHOUT_OBJECT: "true"}
_WITH_STATUS: Final = {WITH_STATUS: "true", WITHOUT_OBJECT: UNLESS_CHANGED}

T = TypeVar("T")
TypedT = TypeVar("TypedT", bound=KubernetesObject)


class Client(ReadClient):
    """A client of one API server. Safe to share between tasks."""

    async def create(
        self, resource: Resource[T], obj: T, *, dry_run: bool = False, strict: bool = False
    ) -> T:
        """The stored object. Created in the namespace of its metadata. If `strict`, unknown fields are refused."""
        headers = self._accept(resource)
        return decoded(resource, await self._create(resource, obj, dry_run, strict, headers))

    def submit_create(
        self, resource: Resource[T], obj: T, *, dry_run: bool = False, strict: bool = False
    ) -> Awaitable[Response]:
        """`create` for callers that do not need the stored object."""
        return self._create(resource, obj, dry_run, strict, self._without_object(resource))

    def _create(
        self,
        resource: Resource[T],
        obj: T,
        dry_run: bool,
        strict: bool,
        headers: Mapping[str, str] | None,
    ) -> Awaitable[Response]:
        key = resource.codec.key(obj)
        body, content_type = self._encoded(resource, obj)
        return self.request(
            "POST",
            resource.collection_path(key.namespace),
            _CREATE_QUERIES[dry_run, strict],
            body,
            content_type,
            may_repeat=bool(key.name),
            headers=headers,
        )

    @property
    def updates_with_status(self) -> bool:
        """Whether the server can update an object and its status at once."""
        return isinstance(self.transport, ClusterTransport)

    def submit_update_with_status(self, resource: Resource[T], obj: T) -> Awaitable[Response]:
        """Replace an object and its status in one transaction, if the server can (`updates_with_status`).

        `updated` reads the response.
        """
        accept = self._accept(resource)
        headers = {**accept, **_WITH_STATUS} if accept else _WITH_STATUS
        return self.submit_update(resource, obj, headers=headers)

    async def update(
        self, resource: Resource[T], obj: T, *, subresource: str = "", dry_run: bool = False
    ) -> T:
        """Replace an object. With a resourceVersion, only if it is unchanged."""
        response = await self.submit_update(resource, obj, subresource=subresource, dry_run=dry_run)
        return decoded(resource, response)

    def submit_update(
        self,
        resource: Resource[T],
        obj: T,
        *,
        subresource: str = "",
        dry_run: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Awaitable[Response]:
        """`update` for callers that decode the response themselves. A client of `in_order` sends it at once."""
        codec = resource.codec
        body, content_type = self._encoded(resource, obj)
        return self.request(
            "PUT",
            resource.path(codec.key(obj), subresource),
            _DRY_RUN if dry_run else None,
            body,
            content_type,
            may_repeat=bool(codec.resource_version(obj)),
            headers=headers or self._accept(resource),
        )

    async def update_status(self, resource: Resource[T], obj: T) -> T:
        return await self.update(resource, obj, subresource="status")

    async def update_with_retry(
        self,
        resource: Resource[T],
        key: ObjectKey,
        change: Callable[[T], T],
        *,
        subresource: str = "",
        start: T | None = None,
    ) -> T:
        """Read, change and write, retried on conflicts. Nothing is written if `change` returns its argument.

        `start` replaces the first read; it may be outdated.
        """
        current = await self.get(resource, key) if start is None else start
        for attempt in range(1, CONFLICT_ATTEMPTS + 1):
            wanted = change(current)
            if wanted is current:
                return current
            try:
                return await self.update(resource, wanted, subresource=subresource)
            except ApiStatusError as error:
                if not error.is_conflict or attempt == CONFLICT_ATTEMPTS:
                    raise
            if attempt > 1:
                await self.clock.sleep(self._retry.backoff.seconds(attempt, self._retry.chance()))
            current = await self.get(resource, key)
        raise AssertionError("the last attempt returns or raises")

    async def patch(
        self,
        resource: Resource[T],
        key: ObjectKey,
        patch: Any,
        type_: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        strict: bool = False,
    ) -> T:
        """`patch` is a JSON value, or encoded JSON. If `strict`, unknown fields are refused."""
        headers = self._accept(resource)
        response = await self._patch(resource, key, patch, type_, subresource, strict, headers)
        return decoded(resource, response)

    def submit_patch(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        patch: Any,
        type_: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        strict: bool = False,
    ) -> Awaitable[Response]:
        """`patch` for callers that do not need the stored object."""
        headers = self._without_object(resource)
        return self._patch(resource, key, patch, type_, subresource, strict, headers)

    def _patch(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        patch: Any,
        type_: PatchType,
        subresource: str,
        strict: bool,
        headers: Mapping[str, str] | None,
    ) -> Awaitable[Response]:
        return self.request(
            "PATCH",
            resource.path(key, subresource),
            _STRICT if strict else None,
            body=patch if isinstance(patch, bytes) else msgspec.json.encode(patch),
            content_type=type_.value,
            may_repeat=type_ is not PatchType.JSON,
            headers=headers,
        )

    async def apply(
        self,
        resource: Resource[T],
        key: ObjectKey,
        fields: Mapping[str, Any],
        field_manager: str,
        *,
        subresource: str = "",
        force: bool = True,
    ) -> T:
        """Server-side apply of `fields`. Fields that the manager applied before and leaves out are removed."""
        headers = self._accept(resource)
        response = await self._apply(
            resource, key, fields, field_manager, subresource, force, headers
        )
        return decoded(resource, response)

    def submit_apply(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        fields: Mapping[str, Any],
        field_manager: str,
        *,
        subresource: str = "",
        force: bool = True,
    ) -> Awaitable[Response]:
        """`apply` for callers that do not need the stored object."""
        headers = self._without_object(resource)
        return self._apply(resource, key, fields, field_manager, subresource, force, headers)

    def _apply(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        fields: Mapping[str, Any],
        field_manager: str,
        subresource: str,
        force: bool,
        headers: Mapping[str, str] | None,
    ) -> Awaitable[Response]:
        metadata = {**fields.get("metadata", {}), "name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        identity = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        return self.request(
            "PATCH",
            resource.path(key, subresource),
            {"fieldManager": field_manager, "force": "true" if force else "false"},
            msgspec.json.encode({**fields, **identity}),
            PatchType.APPLY.value,
            may_repeat=True,
            headers=headers,
        )

    async def delete(
        self, resource: Resource[Any], key: ObjectKey, options: DeleteOptions = PLAIN_DELETE
    ) -> None:
        """Delete an object. Finalizers and grace periods may delay it."""
        was_lost = False

        def note(error: ClientError) -> None:
            nonlocal was_lost
            was_lost |= not isinstance(error, ApiStatusError) or error.is_server_error

        try:
            await self.request(
                "DELETE",
                resource.path(key),
                body=msgspec.json.encode(options.as_json()),
                may_repeat=options.names_one_object,
                before_repeat=note,
            )
        except ApiStatusError as error:
            if not (was_lost and error.is_not_found):
                raise

    async def delete_collection(
        self,
        resource: Resource[Any],
        scope: Scope,
        options: DeleteOptions = PLAIN_DELETE,
    ) -> None:
        """Delete all objects in the scope."""
        await self.request(
            "DELETE",
            resource.collection_path(scope.namespace),
            scope.query(),
            msgspec.json.encode(options.as_json()),
        )

    async def create_subresource(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        subresource: str,
        body: Mapping[str, Any],
        *,
        may_repeat: bool = False,
    ) -> dict[str, Any]:
        response = await self.submit_subresource(
            resource, key, subresource, body, may_repeat=may_repeat
        )
        answer: dict[str, Any] = msgspec.json.decode(response.body)
        return answer

    def submit_subresource(
        self,
        resource: Resource[Any],
        key: ObjectKey,
        subresource: str,
        body: Mapping[str, Any],
        *,
        may_repeat: bool = False,
    ) -> Awaitable[Response]:
        """`create_subresource` for callers that do not need the answer: it is not decoded."""
        return self.request(
            "POST",
            resource.path(key, subresource),
            body=msgspec.json.encode(body),
            may_repeat=may_repeat,
        )

    def bind(self, pod: ObjectKey, uid: str, node: str) -> Awaitable[object]:
        """Bind a pod to a node. A conflict may mean that an earlier attempt succeeded: read the pod."""
        body = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
            "target": {"kind": "Node", "name": node},
        }
        return self.submit_subresource(PODS, pod, "binding", body, may_repeat=bool(uid))

    async def evict(self, pod: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """Evict a pod. The error `is_disrupting` if a disruption budget does not allow it."""
        body = {
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": options.as_json(),
        }
        await self.create_subresource(
            PODS, pod, "eviction", body, may_repeat=options.names_one_object
        )

    def _without_object(self, resource: Resource[Any]) -> Mapping[str, str] | None:
        """The headers of a write whose answer is not read, except for errors."""
        accept = self._accept(resource)
        if not isinstance(self.transport, ClusterTransport):
            return accept
        return {**accept, **_UNREAD} if accept else _UNREAD

    def _encoded(self, resource: Resource[T], obj: T) -> tuple[bytes, str]:
        """The body to send, and its content type."""
        if self._prefers_protobuf and resource.protobuf is not None:
            return resource.protobuf.encode(obj), PROTOBUF
        return resource.codec.encode(obj), JSON

    @staticmethod
    def updated(resource: Resource[TypedT], sent: TypedT, response: Response) -> TypedT:
        """The stored object after an update to `sent`, which the response may not repeat."""
        version = response.header(STORED_VERSION)
        if version is None:
            return decoded(resource, response)
        return replace(sent, metadata=replace(sent.metadata, resource_version=version.decode()))


def without_retries(client: Client) -> Client:
    """A client of the same server without retries, for callers with their own deadline."""
    return Client(
        client.transport,
        retry=NEVER,
        clock=client.clock,
        prefers_protobuf=client._prefers_protobuf,
    )


def with_limit(client: Client, limit: RequestLimit) -> Client:
    """A client of the same server with its own rate limit."""
    return Client(
        client.transport,
        retry=client._retry,
        limit=limit,
        clock=client.clock,
        prefers_protobuf=client._prefers_protobuf,
    )
