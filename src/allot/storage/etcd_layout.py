"""How a store is laid out in etcd, and how etcd's answers become entries and changes.

    PREFIX entries/KEY   the entries
    PREFIX revision      written with every write, deletes too: its mod revision is the store's revision
    PREFIX compaction    the process that rewrites it compacts to the revision in it
    PREFIX probe         written to find out whether etcd accepts writes again

The revision key is in every event of the one watch over PREFIX, so a reader that knows the store's revision
knows when the watch has delivered all of it. etcd's own revision also counts writes outside PREFIX, and its progress
notifications are not reliable in every version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from allot.proto import etcd_pb2 as pb
from allot.storage.interface import (
    Change,
    Check,
    CompactedError,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
)
from allot.storage.transactions import Batch

MAX_OPERATIONS: Final = 127
"""etcd accepts 128 in a transaction; one is for the revision key."""

_NO_REVISION: Final = 0


class Layout:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        root = prefix.encode()
        if not root:
            raise StorageError("the prefix in etcd is empty")
        self.whole = (root, end_of(root))
        self.entries = root + b"entries/"
        self.revision = root + b"revision"
        self.compaction = root + b"compaction"
        self.probe = root + b"probe"

    def key(self, key: str) -> bytes:
        return self.entries + key.encode(errors="surrogatepass")

    def entry(self, found: pb.KeyValue) -> Entry:
        key = found.key[len(self.entries) :].decode()
        return Entry(key, found.value, found.mod_revision, found.create_revision)

    def page_request(self, prefix: str, after: str, limit: int, revision: int) -> pb.RangeRequest:
        start = self.key(after) + b"\0" if after >= prefix else self.key(prefix)
        return pb.RangeRequest(
            key=start, range_end=end_of(self.key(prefix)), limit=limit, revision=revision
        )

    def transaction(self, operations: Iterable[Operation]) -> pb.TxnRequest:
        """All operations if every expectation holds. Otherwise the response has the found entries."""
        request = pb.TxnRequest()
        for operation in operations:
            key = self.key(operation.key)
            if operation.expected is not None:
                request.compare.add(target=pb.Compare.MOD, key=key, mod_revision=operation.expected)
                request.failure.add(request_range=pb.RangeRequest(key=key, keys_only=True))
            match operation:
                case Put(_, value):
                    request.success.add(request_put=pb.PutRequest(key=key, value=value))
                case Delete():
                    request.success.add(request_delete_range=pb.DeleteRangeRequest(key=key))
                case Check():
                    pass
        request.success.add(request_put=pb.PutRequest(key=self.revision))
        return request

    def batches(self, events: Iterable[pb.Event]) -> Iterator[tuple[int, Batch]]:
        """The store's revisions in these events, with their changes. Raises `CompactedError`."""
        for revision, group in groupby(events, lambda event: event.kv.mod_revision):
            together = list(group)
            if any(event.kv.key == self.revision for event in together):
                yield (
                    revision,
                    tuple(
                        self._change(event)
                        for event in together
                        if event.kv.key.startswith(self.entries)
                    ),
                )

    def _change(self, event: pb.Event) -> Change:
        revision = event.kv.mod_revision
        is_deletion = event.type == pb.Event.DELETE
        previous = self.entry(event.prev_kv) if event.HasField("prev_kv") else None
        if previous is None and (is_deletion or event.kv.create_revision != revision):
            raise CompactedError(revision - 1, revision)  # the previous value is compacted
        key = event.kv.key[len(self.entries) :].decode()
        return Change(revision, key, None if is_deletion else self.entry(event.kv), previous)


def first_conflict(
    operations: Iterable[Operation], answers: Iterable[pb.ResponseOp]
) -> RevisionConflictError:
    """The conflict of a failed transaction."""
    expecting = [each for each in operations if each.expected is not None]
    for operation, answer in zip(expecting, answers, strict=True):
        found = answer.response_range.kvs
        actual = found[0].mod_revision if found else _NO_REVISION
        if operation.expected is not None and operation.expected != actual:
            return RevisionConflictError(operation.key, operation.expected, actual)
    raise AssertionError("etcd reported a conflict, but all expectations hold")


def end_of(prefix: bytes) -> bytes:
    """The first key after all that start with `prefix`, a non-empty string."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
