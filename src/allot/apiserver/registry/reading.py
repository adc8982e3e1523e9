"""get and list."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.apiserver import api_errors
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Pacer, Workers
from allot.apiserver.registry import continue_tokens
from allot.apiserver.registry.conversion import Converter, is_converted
from allot.apiserver.registry.selection import Selection
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import Caches, key_prefix
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.storage_errors import api_error_for, api_errors_for_storage
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import StorageError, Store
from allot.validation.fields import FieldPath
from allot.validation.fields import invalid as invalid_field

WAIT_FOR_REVISION_SECONDS: Final = 3.0
"""How long a read waits for a revision that is not here yet."""
SCAN_PAGE: Final = 1000
MATCHED_AT_ONCE: Final = 8
"""Objects that are matched before the clock is looked at."""


class ListOptions(NamedTuple):
    """Which state to read, and how much of it."""

    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_: str = ""

    @property
    def is_exact(self) -> bool:
        if self.match:
            return self.match == "Exact"
        # With a limit, an unspecified match has always meant exactly that version.
        return self.limit > 0 and self.resource_version not in ("", "0")


class ListMeta(NamedTuple):
    """The metadata of a list. What is not stored has no revision."""

    revision: int
    continue_: str = ""
    remaining: int = 0

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"resourceVersion": str(self.revision)} if self.revision else {}
        if self.continue_:
            shown["continue"] = self.continue_
        if self.remaining:
            shown["remainingItemCount"] = self.remaining
        return shown


class Listing(NamedTuple):
    objects: Sequence[StoredObject]
    meta: ListMeta


def revision_of(text: str) -> int:
    """A resourceVersion as a number; 400 if it is none."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        error = invalid_field(
            FieldPath("resourceVersion"),
            text,
            f'strconv.ParseUint: parsing "{text[:64]}": invalid syntax',
        )
        raise api_errors.bad_request(f"invalid resource version: {error}")
    return int(text)


class Reader:
    """Reads of one API server."""

    def __init__(
        self, store: Store, caches: Caches, converter: Converter, workers: Workers
    ) -> None:
        self._workers = workers
        self._store = store
        self._caches = caches
        self._converter = converter

    async def get(self, resource: Resource, key: ObjectKey, resource_version: str) -> StoredObject:
        cache = self._caches.of(resource)
        await self.at_least(cache, resource_version)
        stored = cache.get(self._caches.key(resource, *key))
        if stored is None:
            raise api_errors.not_found(resource, key.name)
        if not is_converted(resource):
            return stored
        return await self._converter.shown(resource, stored)

    async def list(self, selection: Selection, options: ListOptions) -> Listing:
        if options.continue_:
            return await self._continued(selection, options)
        if options.is_exact:
            revision = revision_of(options.resource_version)
            return await self._past(selection, revision, "", options.limit)
        cache = self._caches.of(selection.resource)
        await self.at_least(cache, options.resource_version)
        return await self._present(cache, selection, "", options.limit)

    async def at_least(self, cache: ResourceCache, resource_version: str) -> None:
        """Let the cache show the newest state ("", the default), any ("0"), or one not older."""
        try:
            if not resource_version:
                await cache.refresh()
                return
            if resource_version == "0":
                await cache.start()
                if cache.is_outdated:
                    await cache.refresh()
                return
            wanted = revision_of(resource_version)
            await cache.refresh()
            if cache.revision < wanted:
                await self._wait_for(cache, wanted)
        except StorageError as error:
            raise api_error_for(error) from error

    async def _wait_for(self, cache: ResourceCache, wanted: int) -> None:
        deadline = asyncio.get_running_loop().time() + WAIT_FOR_REVISION_SECONDS
        while cache.revision < wanted:
            if asyncio.get_running_loop().time() > deadline:
                raise api_errors.too_large(wanted, cache.revision)
            await asyncio.sleep(0.05)
            await cache.refresh()

    async def _continued(self, selection: Selection, options: ListOptions) -> Listing:
        if options.resource_version not in ("", "0"):
            raise api_errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        prefix = key_prefix(selection.resource)
        try:
            token = continue_tokens.decode(options.continue_, prefix)
        except continue_tokens.ContinueTokenError as error:
            raise api_errors.bad_request(str(error)) from None
        cache = self._caches.of(selection.resource)
        with api_errors_for_storage():
            await cache.refresh()
        if token.revision > cache.revision:
            raise api_errors.bad_request(
                f"continue key is not valid: revision {token.revision} has not happened yet"
            )
        if cache.last_change <= token.revision:
            listing = await self._present(cache, selection, token.after_key, options.limit)
            return self._at(listing, selection, token.revision)
        try:
            return await self._past(selection, token.revision, token.after_key, options.limit)
        except api_errors.ApiError as error:
            if error.code != 410:
                raise
            raise api_errors.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            ) from None

    def _at(self, listing: Listing, selection: Selection, revision: int) -> Listing:
        """The same page at an earlier revision, at which it was the same."""
        meta = listing.meta
        if meta.continue_:
            last = listing.objects[-1].key
            token = continue_tokens.encode(revision, last, key_prefix(selection.resource))
            meta = meta._replace(continue_=token)
        return listing._replace(meta=meta._replace(revision=revision))

    async def _present(
        self, cache: ResourceCache, selection: Selection, after: str, limit: int
    ) -> Listing:
        # Nothing is awaited between taking the objects and noting the revision they show.
        candidates, revision = _candidates(cache, selection, after), cache.shown_revision
        if selection.is_everything:
            page = _page(candidates, selection, revision, limit)
            return page._replace(
                objects=await self._converter.all_shown(selection.resource, page.objects)
            )
        candidates = await self._converter.all_shown(selection.resource, candidates)
        found = await self._matching(candidates, selection)
        return _page(found, selection, revision, limit)

    async def _matching(
        self, candidates: Sequence[StoredObject], selection: Selection
    ) -> Sequence[StoredObject]:
        """The objects that a selection has, in order. Large ones are decoded in a thread, one by one."""
        found: list[StoredObject] = []
        pacer, matches = Pacer(), selection.matches
        for start in range(0, len(candidates), MATCHED_AT_ONCE):
            some = candidates[start : start + MATCHED_AT_ONCE]
            if max([len(stored.entry.value) for stored in some]) <= LARGE:
                found += [stored for stored in some if matches(stored)]
            else:
                for stored in some:
                    work = partial(matches, stored)
                    if await self._workers.run(stored.decoding_work, work):
                        found.append(stored)
            if pacer.is_due:
                await pacer.pause()
        return found

    async def _past(self, selection: Selection, revision: int, after: str, limit: int) -> Listing:
        codec = storage_codec(selection.resource)
        found: list[StoredObject] = []
        wanted = limit + 1 if limit else 0
        while True:
            size = wanted if selection.is_everything else SCAN_PAGE
            with api_errors_for_storage():
                await self._store.until_durable(revision)
                page = await self._store.list(
                    selection.prefix, revision=revision, after=after, limit=size
                )
            read = [StoredObject(entry, codec) async for entry in Pacer().each(page.entries)]
            shown = await self._converter.all_shown(selection.resource, read)
            found += await self._matching(shown, selection)
            if not page.remaining or (wanted and len(found) >= wanted):
                break
            after = page.entries[-1].key
        return _page(found, selection, revision, limit, beyond=page.remaining)


def _candidates(cache: ResourceCache, selection: Selection, after: str) -> Sequence[StoredObject]:
    key = selection.only_key
    if key is None:
        return cache.select(selection.prefix, after)
    stored = cache.get(key) if key > after else None
    return [] if stored is None else [stored]


def _page(
    found: Sequence[StoredObject],
    selection: Selection,
    revision: int,
    limit: int,
    beyond: int = 0,
) -> Listing:
    if not limit or len(found) <= limit:
        return Listing(found, ListMeta(revision))
    shown = found[:limit]
    token = continue_tokens.encode(revision, shown[-1].key, key_prefix(selection.resource))
    # With selectors the number of remaining items is unknown.
    remaining = len(found) - limit + beyond if selection.is_everything else 0
    return Listing(shown, ListMeta(revision, token, remaining))
