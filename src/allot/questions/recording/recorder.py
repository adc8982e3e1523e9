"""The recorder: follows a cluster, and writes every change of what scheduling reads to a recording.

One reflector per resource lists and watches. Changes wait for a moment, so that the names of a batch are known before
any of its objects is written, and are then reduced and appended together. A change of a field that scheduling does not
read, such as the heartbeat of a node, is none.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client import resources
from allot.client.client import Client
from allot.client.discovery import served
from allot.client.options import EVERYTHING
from allot.client.reflector import Reflector
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.questions.cluster_clone import OWNERS_FIRST, FieldReduction, configuration_of
from allot.questions.recording.aliases import PrivateFile
from allot.questions.recording.lines import (
    Header,
    RecordedKey,
    RecordingError,
    encode_object,
)
from allot.questions.recording.writer import Limits, RecordingWriter
from allot.task_cancellation import cancel_and_wait

FLUSH_SECONDS: Final = 1.0
MARK_SECONDS: Final = 10.0
"""After so long without a change, a line says that there was none."""
_WORD: Final = re.compile(r"[A-Za-z0-9.-]+")
_ORDER: Final = {resource: number for number, resource in enumerate(OWNERS_FIRST)}


class _Change(NamedTuple):
    """An object that was seen, or is gone."""

    at: datetime
    key: RecordedKey
    object: Any | None


class Observed(NamedTuple):
    """The state of the cluster before the first change."""

    header: Header
    readable: tuple[Resource[Any], ...]
    unread: Mapping[str, str]
    """The other resources by name, and why."""


def observed(snapshot: Snapshot, kinds: Iterable[Resource[Any]], *, anonymized: bool) -> Observed:
    """What a first look at the cluster says about it."""
    configuration = configuration_of(snapshot)
    header = Header(
        cluster=_identity_of(snapshot),
        server_version=configuration["serverVersion"],
        rules=configuration["rules"],
        feature_gates=configuration["featureGates"],
        anonymized=anonymized,
    )
    unread = {str(resource): why for resource, why in snapshot.unread.items()}
    if anonymized:
        unread = dict.fromkeys(unread, "could not be read")  # reasons have names
    return Observed(header, tuple(each for each in kinds if each not in snapshot.unread), unread)


def _identity_of(snapshot: Snapshot) -> str:
    """A hash of the uid of the namespace that every cluster has; empty if it cannot be read."""
    namespace = snapshot.get(resources.NAMESPACES, ObjectKey("", "kube-system"))
    if namespace is None:
        return ""
    return hashlib.sha256(namespace.metadata.uid.encode()).hexdigest()[:16]


class ChangeLog:
    """Turns the objects of a cluster into the lines of a recording. Without I/O but that of the files."""

    def __init__(
        self,
        path: Path,
        about: Observed,
        private: PrivateFile,
        limits: Limits,
        writer: RecordingWriter | None = None,
    ) -> None:
        self._path = path
        self._about = about
        self._private = private
        self._limits = limits
        self.writer = writer
        self._aliases = private.aliases if about.header.anonymized else None
        self._reduction = FieldReduction(self._aliases, private.salt)
        self._pending: list[_Change] = []
        self._keys: dict[Resource[Any], set[ObjectKey]] = {each: set() for each in about.readable}
        if writer is not None:
            for resource, key in self._real_keys(writer):
                self._keys.setdefault(resource, set()).add(key)

    @property
    def repaired_bytes(self) -> int:
        """The bytes of a line that was not completely written, and is removed."""
        return self.writer.repaired_bytes if self.writer is not None else 0

    @property
    def is_anonymized(self) -> bool:
        return self._aliases is not None

    def keys(self, resource: Resource[Any]) -> Iterable[ObjectKey]:
        """The objects of a resource that exist, as far as they were seen."""
        return self._keys[resource]

    def put(self, resource: Resource[Any], obj: Any, at: datetime) -> None:
        key = resource.codec.key(obj)
        self._keys[resource].add(key)
        self._pending.append(_Change(at, RecordedKey(resource, key), obj))

    def drop(self, resource: Resource[Any], key: ObjectKey, at: datetime) -> None:
        self._keys[resource].discard(key)
        self._pending.append(_Change(at, RecordedKey(resource, key), None))

    def begin(self, at: datetime) -> None:
        """All resources were listed: write the snapshot, or if a recording is continued, the gap since then."""
        if self.writer is not None:
            self.writer.note_gap(at, self._about.unread)
            return
        changes, self._pending = self._pending, []
        self._register(changes)
        bodies: dict[RecordedKey, bytes] = {}
        for change in changes:
            if change.object is None:
                bodies.pop(self._written_key(change.key), None)
            else:
                bodies[self._written_key(change.key)] = self._body(change)
        self._private.save_new()
        header, unread = self._about.header, self._about.unread
        self.writer = RecordingWriter.create(self._path, header, bodies, at, unread, self._limits)

    def flush(self, now: datetime) -> None:
        """Write pending changes; durable when this returns. Raises `OSError`."""
        writer = self.writer
        assert writer is not None, "begin comes first"
        changes, self._pending = self._pending, []
        self._register(changes)
        for change in changes:
            key = self._written_key(change.key)
            if change.object is None:
                writer.delete(key, change.at)
            else:
                writer.put(key, self._body(change), change.at)
        if now - writer.last >= timedelta(seconds=MARK_SECONDS):
            writer.mark(now)
        self._private.save_new()  # before the lines that have them
        writer.flush()
        if writer.is_full:
            writer.fold()
            if self.is_anonymized:
                self._private.keep_only(_words_of(self._path))

    def end(self, now: datetime) -> None:
        """Write what is pending, and that nothing else has changed."""
        if self.writer is not None:
            self.flush(now)
            self.writer.mark(now)
            self.writer.flush()

    def _register(self, changes: Iterable[_Change]) -> None:
        """Let all names of a batch be known before one of its objects is written."""
        aliases = self._aliases
        if aliases is None:
            return
        present = [change for change in changes if change.object is not None]
        for change in sorted(present, key=lambda change: _ORDER[change.key.resource]):
            aliases.register(change.key.resource, change.object)
        for change in present:
            for owner in change.object.metadata.owner_references:  # type: ignore[union-attr]
                aliases.alias(owner.name, "workload")

    def _body(self, change: _Change) -> bytes:
        return encode_object(self._reduction.of(change.key.resource, change.object))

    def _written_key(self, key: RecordedKey) -> RecordedKey:
        if self._aliases is None:
            return key
        namespace, name = key.key
        known = self._aliases.known
        return key._replace(key=ObjectKey(known(namespace), known(name)))

    def _real_keys(self, writer: RecordingWriter) -> Iterable[RecordedKey]:
        if self._aliases is None:
            yield from writer.bodies
            return
        real = {alias: name for name, alias in self._aliases.items()}
        for resource, (namespace, name) in writer.bodies:
            key = ObjectKey(real.get(namespace, namespace), real.get(name, name))
            yield RecordedKey(resource, key)


class _ResourceStore:
    """What the reflector of one resource keeps up to date."""

    def __init__(
        self, log: ChangeLog, resource: Resource[Any], clock: Callable[[], datetime]
    ) -> None:
        self._log, self._resource, self._clock = log, resource, clock

    def keys(self) -> Iterable[ObjectKey]:
        return tuple(self._log.keys(self._resource))

    def put(self, obj: Any) -> None:
        self._log.put(self._resource, obj, self._clock())

    def drop(self, key: ObjectKey, last: Any | None = None) -> None:
        self._log.drop(self._resource, key, self._clock())


class Recorder:
    """Follows a cluster until it is cancelled."""

    def __init__(
        self,
        client: Client,
        log: ChangeLog,
        readable: Iterable[Resource[Any]],
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._log = log
        self._readable = tuple(readable)
        self._clock = clock
        self.begun = asyncio.Event()
        """Set when the snapshot is written, or the gap."""

    async def run(self) -> None:
        """Record until cancelled; then what was seen is written. Raises `OSError` if it cannot be."""
        started = self._clock()
        tasks = []
        reflectors = []
        for resource in self._readable:
            found = await served(self._client, resource)
            store = _ResourceStore(self._log, resource, self._clock)
            reflector = Reflector(
                self._client,
                found or resource,
                EVERYTHING,
                store,
                streaming=True,
                backoff=Backoff(0.1, 10.0),
                chance=random.random,
            )
            reflectors.append(reflector)
            tasks.append(asyncio.create_task(reflector.run()))
        try:
            for reflector in reflectors:
                await reflector.synced.wait()
            self._log.begin(started if self._log.writer is not None else self._clock())
            while True:
                self._log.flush(self._clock())
                self.begun.set()
                await asyncio.sleep(FLUSH_SECONDS)
        finally:
            try:
                await cancel_and_wait(*tasks)
            finally:
                self._log.end(self._clock())


def open_log(path: Path, about: Observed, limits: Limits, new_salt: bytes) -> ChangeLog:
    """A new recording, or one that is continued. Raises `OSError`, `RecordingError`."""
    if not path.exists():
        return ChangeLog(path, about, PrivateFile.create(path, new_salt), limits)
    writer = RecordingWriter.resume(path, limits)
    header = writer.header
    if header.cluster and about.header.cluster and header.cluster != about.header.cluster:
        raise RecordingError(f"{path} is a recording of another cluster; choose another file")
    if header.anonymized != about.header.anonymized:
        problem = "is anonymized: add" if header.anonymized else "is not anonymized: leave out"
        raise RecordingError(f"{path} {problem} --anonymize, or choose another file")
    private = PrivateFile.load(path)
    return ChangeLog(path, about, private, limits, writer)


def _words_of(path: Path) -> set[str]:
    """All words of a recording, to find the aliases that it has."""
    words: set[str] = set()
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            words.update(_WORD.findall(line))
    return words
