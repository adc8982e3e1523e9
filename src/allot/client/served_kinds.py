"""Metadata informers for every kind that the server serves, updated by periodic discovery.

    discovery every 30 s, and after a CustomResourceDefinition changed ──► informers of new kinds start, those of removed kinds stop
                                     │
                                     ▼
                             listeners are called for every added, updated or deleted object

Get it with `informers.companion(ServedKinds)`, which is shared by all controllers of a manager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersion
from allot.client.discovery import Discovery, ServedKind, discover
from allot.client.errors import ClientError
from allot.client.informer import IgnoredUpdate, Informer, InformerFactory
from allot.client.metadata import MetadataObject, is_same_ownership
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

DISCOVERY_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 1.0
"""Retry delay of a failed discovery, before the first success."""
SYNC_TIMEOUT_SECONDS: Final = 30.0
"""How long `wait_synced` waits for kinds that cannot be listed, such as for lack of permission."""
DEBOUNCE_SECONDS: Final = 0.5
"""A new definition changes a few times until it is established."""
DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
NOT_FOLLOWED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Numerous, short-lived, and never owners."""

Listener = Callable[[ServedKind, MetadataObject | None, MetadataObject | None], None]
"""Called with the kind, the old object (None: added) and the new object (None: deleted)."""


class _Listening(NamedTuple):
    """A listener, and which changes it is called for."""

    listener: Listener
    only_deletions: bool
    needs: Informer[Any] | None
    every_update_of: Collection[tuple[str, str]] | None

    def needs_every_update(self, name: tuple[str, str]) -> bool:
        if self.only_deletions:
            return False
        return self.every_update_of is None or name in self.every_update_of


class ServedKinds:
    """All served kinds. Register listeners before `start`."""

    def __init__(self, informers: InformerFactory) -> None:
        self._informers = informers
        self._client = informers.client
        self._discovery = Discovery(())
        self._by_api_version: dict[tuple[str, str], ServedKind] = {}
        self._followed: dict[tuple[str, str], tuple[ServedKind, Informer[MetadataObject]]] = {}
        self._listening: list[_Listening] = []
        self._discovered = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self._refreshes_wanted = self._refreshes_done = 0
        self._task: asyncio.Task[None] | None = None
        self._definitions_changed = asyncio.Event()
        self.failure = ""
        """The error of the last discovery, or of some groups; empty after a success."""

    # --- kinds ---

    @property
    def kinds(self) -> Iterable[ServedKind]:
        """Each kind once, in the version that the server prefers."""
        return [kind for kind in self._discovery.kinds if kind.is_preferred]

    @property
    def unavailable(self) -> frozenset[str]:
        """Group versions that are unavailable."""
        return self._discovery.unavailable

    def find(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind in this version, or in the preferred one if this is no longer served."""
        found = self._by_api_version.get((api_version, kind))
        if found is not None:
            return found
        group = GroupVersion.parse(api_version).group
        return next((each for each in self.kinds if (each.group, each.kind) == (group, kind)), None)

    def listen(
        self,
        listener: Listener,
        *,
        only_deletions: bool = False,
        needs: Informer[Any] | None = None,
        every_update_of: Collection[tuple[str, str]] | None = None,
    ) -> None:
        """Register a listener. It is called immediately for existing objects.

        One that needs an informer is called only while that has objects. `every_update_of` has the group and plural of
        kinds; for others, updates may be missing that leave owners as they are, of objects that are not being deleted.
        """
        listening = _Listening(listener, only_deletions, needs, every_update_of)
        self._listening.append(listening)
        for kind, informer in self._followed.values():
            _add_handlers(informer, kind, listening)

    # --- lifecycle ---

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="served kinds")

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_and_wait(task)
        await asyncio.gather(*(informer.stop() for _, informer in self._followed.values()))

    async def wait_discovered(self) -> None:
        """Wait for the first successful discovery."""
        await self._discovered.wait()

    async def wait_synced(self) -> None:
        """Wait until all informers have synced, or for `SYNC_TIMEOUT_SECONDS`."""
        await self._discovered.wait()
        clock = self._client.clock
        deadline = clock.now() + SYNC_TIMEOUT_SECONDS
        for kind, informer in tuple(self._followed.values()):
            if informer.has_synced:
                continue
            try:
                async with asyncio.timeout(max(deadline - clock.now(), 0)):
                    await informer.wait_synced()
            except TimeoutError:
                log.warning("%s: not synced after the timeout; continuing without it", kind)

    async def _run(self) -> None:
        while True:
            await self.refresh()
            if not self._discovered.is_set():
                await self._client.clock.sleep(RETRY_SECONDS)
                continue
            sleeping = asyncio.create_task(self._client.clock.sleep(DISCOVERY_SECONDS))
            changing = asyncio.create_task(self._definitions_changed.wait())
            try:
                await asyncio.wait((sleeping, changing), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeping.cancel()
                changing.cancel()
            if self._definitions_changed.is_set():
                await self._client.clock.sleep(DEBOUNCE_SECONDS)
                self._definitions_changed.clear()

    async def refresh(self) -> None:
        """Run discovery. On an error the known kinds stay.

        Callers that wait at the same time share a discovery that begins after they called.
        """
        self._refreshes_wanted += 1
        number = self._refreshes_wanted
        async with self._refreshing:
            if self._refreshes_done < number:
                covered = self._refreshes_wanted
                await self._refresh()
                self._refreshes_done = covered

    async def _refresh(self) -> None:
        try:
            found = await discover(self._client)
        except ClientError as error:
            self.failure = str(error)
            log.warning("discovery failed: %s", error)
            return
        unavailable = found.unavailable
        self.failure = (
            f"unable to retrieve: {', '.join(sorted(unavailable))}" if unavailable else ""
        )
        kept = [kind for kind in self._discovery.kinds if kind.api_version in unavailable]
        self._discovery = Discovery((*found.kinds, *kept), unavailable)
        self._by_api_version = {
            (kind.api_version, kind.kind): kind for kind in reversed(self._discovery.kinds)
        }
        await self._follow_all()
        self._discovered.set()

    async def _follow_all(self) -> None:
        wanted = {
            (kind.group, kind.plural): kind
            for kind in self.kinds
            if kind.can("list", "watch", "delete") and (kind.group, kind.plural) not in NOT_FOLLOWED
        }
        for name in [name for name in self._followed if name not in wanted]:
            await self._forget(name)
        for name, kind in wanted.items():
            known = self._followed.get(name)
            if known is not None and known[0].resource is kind.resource:
                continue
            if known is not None:
                await self._forget(name)  # in another version: start a new informer
            self._follow(name, kind)

    def _follow(self, name: tuple[str, str], kind: ServedKind) -> None:
        log.debug("watching %s", kind)
        informer = self._informers.new_informer(kind.resource, ignored=self._ignored(name))
        if name == DEFINITIONS:
            changed = self._definition_changed
            informer.add_handlers(changed, changed, changed)
        for listening in self._listening:
            _add_handlers(informer, kind, listening)
        self._followed[name] = (kind, informer)
        informer.start()

    def _ignored(self, name: tuple[str, str]) -> IgnoredUpdate | None:
        """The updates of a kind that no listener needs."""
        if name == DEFINITIONS or any(each.needs_every_update(name) for each in self._listening):
            return None
        return is_same_ownership

    async def _forget(self, name: tuple[str, str]) -> None:
        kind, informer = self._followed.pop(name)
        log.info("%s is no longer served", kind)
        await informer.stop()
        for obj in informer.list():
            if name == DEFINITIONS:
                self._definition_changed()
            for listening in self._listening:
                listening.listener(kind, obj, None)

    def _definition_changed(self, *_: MetadataObject) -> None:
        self._definitions_changed.set()


def _add_handlers(
    informer: Informer[MetadataObject], kind: ServedKind, listening: _Listening
) -> None:
    listener = listening.listener
    informer.add_handlers(
        None if listening.only_deletions else partial(listener, kind, None),
        None if listening.only_deletions else partial(listener, kind),
        lambda old: listener(kind, old, None),
        needs=listening.needs,
    )
