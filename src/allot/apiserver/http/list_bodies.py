"""Lists as documents: a frame and many items, written piece by piece in the format the client wants.

Nothing here holds a whole list. Short ones become a plain answer; the rest of a long one is made while it is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from allot.apiserver.http.responses import Response
from allot.apiserver.pacing import LARGE, SLOW, Pacer, Workers
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.apiserver.yaml_writing import list_item, to_yaml

PIECE_BYTES: Final = 64 * 1024
AT_ONCE: Final = 16
"""Items that are rendered before the clock is looked at."""
WHOLE_BYTES: Final = 256 * 1024
"""Shorter lists are answered in one piece, with their length."""

Render = Callable[[StoredObject], bytes]
ItemOf = Callable[[bytes], bytes]


class ListFrame(NamedTuple):
    """Everything in a list but its items: its fields, and the name of the one that the items are in."""

    fields: dict[str, Any]
    items: str = "items"


class _Form(NamedTuple):
    """How a frame and items look in one format."""

    head: bytes
    tail: bytes
    empty: bytes
    """The whole list if it has no items."""
    separator: bytes
    item: ItemOf | None
    """Makes an item of its JSON; None leaves it as it is."""
    content_type: str
    cost: int = 1


async def list_response(
    objects: Sequence[StoredObject],
    frame: ListFrame,
    render: Render,
    format_: str,
    workers: Workers,
    *,
    pretty: bool = False,
) -> Response:
    """The answer that lists the objects, each as `render` writes it in JSON."""
    form = _yaml(frame) if format_ == "yaml" else _pretty(frame) if pretty else _json(frame)
    pieces = _pieces(objects, form, render, workers)
    first: list[bytes] = []
    size = 0
    async for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES:
            return Response(200, b"".join(first), form.content_type, more=pieces)
    return Response(200, b"".join(first), form.content_type)


async def _pieces(
    objects: Sequence[StoredObject], form: _Form, render: Render, workers: Workers
) -> AsyncIterator[bytes]:
    if not objects:
        yield form.empty
        return
    pacer = Pacer()
    parts = [form.head]
    size = 0
    separator = b""
    item_of, large = form.item, LARGE // form.cost
    step = AT_ONCE if item_of is None else 1
    for some in _groups(objects, step):
        most = max([len(stored.entry.value) for stored in some])
        work = partial(_items, item_of, render, some)
        items = work() if most <= large else await workers.run(most * form.cost, work)
        parts.append(separator)
        parts.append(form.separator.join(items))
        separator = form.separator
        size += len(parts[-1])
        if size >= PIECE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
        if pacer.is_due:
            await pacer.pause()
    parts.append(form.tail)
    yield b"".join(parts)


def _groups(objects: Sequence[StoredObject], step: int) -> Iterator[Sequence[StoredObject]]:
    """Objects that are rendered together; large ones one by one, because each client that reads slowly holds a group."""
    for start in range(0, len(objects), step):
        some = objects[start : start + step]
        if sum([len(stored.entry.value) for stored in some]) <= WHOLE_BYTES:
            yield some
        else:
            yield from ((each,) for each in some)


def _items(item_of: ItemOf | None, render: Render, objects: Sequence[StoredObject]) -> list[bytes]:
    items = [render(stored) for stored in objects]
    return items if item_of is None else [item_of(item) for item in items]


# --- formats ---


def _json(frame: ListFrame) -> _Form:
    empty = msgspec.json.encode({**frame.fields, frame.items: []})
    return _Form(empty[:-2], b"]}\n", empty + b"\n", b",", None, "application/json")


def _pretty(frame: ListFrame) -> _Form:
    whole = msgspec.json.encode({**frame.fields, frame.items: []})
    empty = msgspec.json.format(whole, indent=2) + b"\n"
    head = empty.removesuffix(b"]\n}\n") + b"\n    "

    def item(body: bytes) -> bytes:
        return msgspec.json.format(body, indent=2).replace(b"\n", b"\n    ")

    return _Form(head, b"\n  ]\n}\n", empty, b",\n    ", item, "application/json")


def _yaml(frame: ListFrame) -> _Form:
    before = {name: value for name, value in frame.fields.items() if name < frame.items}
    after = {name: value for name, value in frame.fields.items() if name > frame.items}
    head = (to_yaml(before) if before else b"") + frame.items.encode()
    tail = to_yaml(after) if after else b""

    def item(body: bytes) -> bytes:
        return list_item(msgspec.json.decode(body))

    empty = head + b": []\n" + tail
    return _Form(head + b":\n", tail, empty, b"", item, "application/yaml", SLOW)
