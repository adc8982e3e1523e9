"""The parameters of a policy: objects that its bindings name or select."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from allot.api.identities import GroupVersionKind
from allot.api.selectors import selects_labels
from allot.apiserver.dynamic_admission.review_request import Document, ObjectSubject
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Pacer, Workers, json_work
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.watch_cache.caches import Caches, key_prefix
from allot.apiserver.watch_cache.stored_objects import StoredObject


class PolicyConfigurationError(Exception):
    """A policy cannot be evaluated: its kind of parameters is not served."""


class BindingConfigurationError(Exception):
    """A binding cannot be evaluated: its parameters are missing, or not where it says."""


class Params:
    """Finds parameters."""

    def __init__(self, caches: Caches, served: ServedResources, workers: Workers) -> None:
        self._caches = caches
        self._workers = workers
        self._served = served

    def resource(self, kind: Mapping[str, Any]) -> tuple[Resource, str]:
        """The resource of a kind of parameters, and its version."""
        version, name = kind.get("apiVersion", ""), kind.get("kind", "")
        gvk = GroupVersionKind.parse(f"{version}/{name}")
        resource = self._served.find_kind(gvk)
        if resource is None or not resource.is_stored:
            shown = f"{version}, Kind={name}" if "/" in version else f"/{version}, Kind={name}"
            raise PolicyConfigurationError(
                f"failed to find resource referenced by paramKind: '{shown}'"
            )
        return resource, gvk.version

    async def collect(
        self,
        found: tuple[Resource, str] | None,
        reference: Mapping[str, Any] | None,
        namespace: str,
    ) -> list[Document | None]:
        """The parameters of a binding. A policy is evaluated once for each of them."""
        if found is None or reference is None:
            return [None]
        resource, version = found
        place = reference.get("namespace") or ""
        if resource.namespaced:
            place = place or namespace
            if not place:
                raise BindingConfigurationError(
                    "cannot use namespaced paramRef in policy binding that matches "
                    "cluster-scoped resources"
                )
        elif place:
            raise BindingConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        objects = await self._objects(resource, place, reference)
        if not objects and reference.get("parameterNotFoundAction") == "Deny":
            raise BindingConfigurationError(
                "no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return [
            await self._workers.run(
                json_work(each.entry.value), partial(_document, resource, each, version)
            )
            async for each in Pacer().each(objects)
        ]

    async def _objects(
        self, resource: Resource, namespace: str, reference: Mapping[str, Any]
    ) -> list[StoredObject]:
        cache = self._caches.of(resource)
        await cache.refresh()
        name = reference.get("name")
        if name:
            stored = cache.get(self._caches.key(resource, namespace, name))
            return [] if stored is None else [stored]
        selector = reference.get("selector") or {}
        found = cache.select(key_prefix(resource, namespace))
        if not selector:
            return found
        return [
            stored
            async for stored in Pacer().each(found)
            if await self._workers.run(
                stored.decoding_work, partial(_is_selected, selector, stored)
            )
        ]


def _is_selected(selector: Mapping[str, Any], stored: StoredObject) -> bool:
    return selects_labels(selector, stored.object.metadata.labels)


def _document(resource: Resource, stored: StoredObject, version: str) -> Document:
    return ObjectSubject(resource, stored.object).document(version)
