"""Writes the status of ValidatingAdmissionPolicies: warnings about expressions that do not fit their kinds."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.apiserver.api_errors import ApiError
from allot.apiserver.dynamic_admission.type_checking import checked_status, expression_warnings
from allot.apiserver.kinds.request import Caller, RequestInfo, WriteRequest
from allot.apiserver.pacing import HUGE, Workers
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.registry.write_pipeline import Update, pipeline_for
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

USER = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller"


class PolicyStatus:
    """Checks every policy once per generation."""

    def __init__(self, caches: Caches, objects: ObjectStore, served: ServedResources) -> None:
        self._policies = resource_named(
            "admissionregistration.k8s.io", "validatingadmissionpolicies"
        )
        self._cache = caches.of(self._policies)
        self._objects = objects
        self._served = served
        self._changed = asyncio.Event()
        self._workers = Workers()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._cache.start()
        self._cache.listen(self._changed.set)
        self._changed.set()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)
        self._workers.close()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for stored in self._cache.select(self._cache.prefix):
                policy: RawObject = stored.object
                if policy.get("status", "observedGeneration") != policy.metadata.generation:
                    try:
                        await self._check(policy)
                    except ApiError as error:  # deleted meanwhile, or denied
                        log.info("status of policy %s: %s", policy.metadata.name, error)
                    except Exception:
                        log.exception("type checking of policy %s failed", policy.metadata.name)

    async def _check(self, policy: RawObject) -> None:
        warnings = await self._workers.run(
            HUGE, partial(expression_warnings, policy.data, self._served)
        )
        generation = policy.metadata.generation

        def checked(old: RawObject, _: WriteRequest) -> RawObject:
            if old.metadata.generation != generation:
                return old  # changed meanwhile: it is checked again
            return old.with_value(checked_status(old.data, generation, warnings), "status")

        info = RequestInfo(Caller(USER, {}, lambda _: True), "v1", "update", subresource="status")
        update = Update(checked, pipeline_for(self._policies).update_status)
        key = ObjectKey("", policy.metadata.name)
        await self._objects.update(self._policies, key, (update, info))
