"""What tests do with a cluster, in real time or virtual: apply, get, wait, explain."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from allot.api.identities import DeviceId, ObjectKey
from allot.api.raw import RawObject
from allot.client.apply import DEFAULT_NAMESPACE, RefusedError, UnknownKindError, apply, resource_of
from allot.client.client import Client
from allot.client.discovery import discover
from allot.client.errors import ClientError
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.wall_clock import utc_now
from allot.public.errors import AllotError, NotFoundError, TargetError
from allot.testing.errors import UnservedKindError, WaitTimeoutError
from allot.testing.reading import claims_of_pod, devices_of_claim, documents_of
from allot.testing.settings import ClusterSettings

if TYPE_CHECKING:
    from allot.public.explanations import Explanation

T = TypeVar("T")

WAIT_SECONDS: Final = 30.0
FIRST_POLL_SECONDS, SLOWEST_POLL_SECONDS = 0.01, 1.0
_EXPLAINED: Final = {
    "Pod": "pod",
    "pods": "pod",
    "ResourceClaim": "claim",
    "resourceclaims": "claim",
}
_EXPECTED: Final = (
    AllotError, ClientError, RefusedError, TargetError, UnknownKindError, UnservedKindError,
    WaitTimeoutError,
)  # fmt: skip
"""Errors that say what is wrong in the test: its own line is shown, not those in allot that found it."""


class AllotCluster(ABC):
    """A cluster for tests. Use it in a `with` block."""

    client: Client
    """A client for coroutines that are passed to `run`."""

    def __init__(self, settings: ClusterSettings = ClusterSettings()) -> None:  # noqa: B008 - a value
        self.settings = settings
        self._resources: dict[str, Resource[RawObject]] = {}

    @abstractmethod
    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster's event loop, such as calls of `client`."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def restart(self, settings: ClusterSettings | None = None) -> None:
        """Restart all components on the stored objects, with other settings if given."""
        self.run(self._stop())
        self.settings = settings or self.settings
        self._resources.clear()
        self.run(self._start())

    @abstractmethod
    async def _start(self) -> None: ...

    @abstractmethod
    async def _stop(self) -> None: ...

    # --- common operations ---

    def apply(self, *manifests: str | Path | Mapping[str, Any]) -> list[dict[str, Any]]:
        """Create or update objects: YAML strings, files or dictionaries. Unknown and duplicate fields are errors."""
        __tracebackhide__ = True
        return self._call(self._apply(manifests))

    def get(
        self, kind: str, name: str, namespace: str = DEFAULT_NAMESPACE
    ) -> dict[str, Any] | None:
        """An object, or None if it does not exist. The kind is written as in manifests (`Pod`) or kubectl (`pods.v1`)."""
        __tracebackhide__ = True
        return self._call(self._get(kind, name, namespace))

    def list(self, kind: str, namespace: str = "", selector: str = "") -> list_[dict[str, Any]]:
        """All objects of a kind, in one namespace or in all."""
        __tracebackhide__ = True
        return self._call(self._list(kind, namespace, selector))

    def delete(self, kind: str, name: str, namespace: str = DEFAULT_NAMESPACE) -> None:
        __tracebackhide__ = True
        self._call(self._delete(kind, name, namespace))

    def wait_for(
        self,
        kind: str,
        name: str,
        is_so: Callable[[dict[str, Any] | None], object],
        namespace: str = DEFAULT_NAMESPACE,
        seconds: float = WAIT_SECONDS,
    ) -> dict[str, Any] | None:
        """The object once `is_so` holds for it (None if it does not exist). `AssertionError` after `seconds`."""
        __tracebackhide__ = True
        return self._call(self._wait_for(kind, name, is_so, namespace, seconds))

    def wait_for_phase(
        self,
        pod: str,
        phase: str,
        namespace: str = DEFAULT_NAMESPACE,
        seconds: float = WAIT_SECONDS,
    ) -> dict[str, Any]:
        """The pod, once it is in this phase."""
        __tracebackhide__ = True
        found = self.wait_for(
            "Pod",
            pod,
            lambda obj: obj is not None and obj["status"].get("phase") == phase,
            namespace,
            seconds,
        )
        assert found is not None
        return found

    def explain(self, what: str) -> Explanation:
        """Why `pod/NAME` or `claim/NAME` (also `pod/NAMESPACE/NAME`) is pending, and what would help."""
        __tracebackhide__ = True
        return self._call(self._explain(what))

    def devices_of(self, what: str) -> list_[DeviceId]:
        """The devices allocated to `pod/NAME` or `claim/NAME` (also `pod/NAMESPACE/NAME`), in the order of requests."""
        __tracebackhide__ = True
        return self._call(self._devices_of(what))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Like `run`. Of errors that are about the test, only the test's own frames are shown."""
        __tracebackhide__ = True
        try:
            return self.run(work)
        except _EXPECTED as error:
            raise error.with_traceback(None) from None

    def _now(self) -> datetime:
        """The time in the cluster."""
        return utc_now()

    async def _apply(
        self, manifests: tuple[str | Path | Mapping[str, Any], ...]
    ) -> list_[dict[str, Any]]:
        documents = [
            document
            for each in manifests
            for document in documents_of(each, self.settings.directory)
        ]
        return [dict(obj.data) for obj in await apply(self.client, documents, strict=True)]

    async def _explain(self, what: str) -> Explanation:
        from allot.public.snapshot import snapshot_async

        return (await snapshot_async(self.client)).explain(what, now=self._now())

    async def _devices_of(self, what: str) -> list_[DeviceId]:
        from allot.public.arguments import read_target

        kind, key = read_target(what)
        names = [key.name]
        if kind == "pod":
            pod = await self._get("Pod", key.name, key.namespace)
            if pod is None:
                raise NotFoundError(f"pod {key} does not exist")
            names = claims_of_pod(pod)
        found = [await self._get("ResourceClaim", name, key.namespace) for name in names]
        if kind == "claim" and found == [None]:
            raise NotFoundError(f"claim {key} does not exist")
        return [
            device for claim in found if claim is not None for device in devices_of_claim(claim)
        ]

    async def _resource(self, kind: str) -> Resource[RawObject]:
        if not self._resources:
            for served in (await discover(self.client)).kinds:
                for name in (served.kind, served.plural):
                    self._resources.setdefault(name, resource_of(served))
                self._resources[f"{served.plural}.{served.version}.{served.group}".rstrip(".")] = (
                    resource_of(served)
                )
        if kind not in self._resources:
            raise UnservedKindError(kind, self._resources)
        return self._resources[kind]

    async def _get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        resource = await self._resource(kind)
        found = await self.client.find(resource, _key(resource, namespace, name))
        return dict(found.data) if found is not None else None

    async def _list(self, kind: str, namespace: str, selector: str) -> list_[dict[str, Any]]:
        scope = Scope(namespace=namespace, label_selector=selector)
        page = await self.client.list(await self._resource(kind), scope)
        return [dict(obj.data) for obj in page.items]

    async def _delete(self, kind: str, name: str, namespace: str) -> None:
        resource = await self._resource(kind)
        await self.client.delete(resource, _key(resource, namespace, name))

    async def _wait_for(
        self,
        kind: str,
        name: str,
        is_so: Callable[[dict[str, Any] | None], object],
        namespace: str,
        seconds: float,
    ) -> dict[str, Any] | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = FIRST_POLL_SECONDS
        while True:
            found = await self._get(kind, name, namespace)
            if is_so(found):
                return found
            if loop.time() > deadline:
                reason = await self._reason(kind, name, namespace) if found is not None else ""
                raise WaitTimeoutError(seconds, f"{kind} {name}", found, reason)
            await asyncio.sleep(min(pause, max(deadline - loop.time(), FIRST_POLL_SECONDS)))
            pause = min(pause * 1.2, SLOWEST_POLL_SECONDS)

    async def _reason(self, kind: str, name: str, namespace: str) -> str:
        """The verdict of `explain` for pods and claims."""
        word = _EXPLAINED.get(kind)
        return (await self._explain(f"{word}/{namespace}/{name}")).verdict if word else ""


list_ = list


def _key(resource: Resource[RawObject], namespace: str, name: str) -> ObjectKey:
    return ObjectKey(namespace if resource.namespaced else "", name)
