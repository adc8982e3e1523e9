"""Reads rows from the pages of an SQLite file without SQLite, so that a damaged page loses only its own rows.

Supports what allot's files use: table leaf pages with overflow chains, the freelist, and the write-ahead log
(https://www.sqlite.org/fileformat2.html). The caller determines the table of a row, and whether it is intact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from struct import Struct, iter_unpack, unpack_from
from struct import error as StructError  # noqa: N812
from typing import Final, NamedTuple, TypeAlias

SMALL_PAGE: Final = 4 << 10
"""Of files that earlier versions of allot made."""
LARGE_PAGE: Final = 16 << 10
HEADER_SIZE: Final = 100
LEAF: Final = 13
_WAL_HEADER: Final = 32
_FRAME: Final = Struct(">6I")
_WAL_MAGIC: Final = (0x377F0682, 0x377F0683)
_INTEGER_SIZES: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value: TypeAlias = int | float | str | bytes | None


class Row(NamedTuple):
    """A row of a page."""

    page: int
    rowid: int
    values: tuple[Value, ...]


class BadCell(NamedTuple):
    """A cell that cannot be parsed as a row."""

    page: int


class Image:
    """All pages of a file, the newest version of each."""

    def __init__(self, path: Path, *, with_wal: bool) -> None:
        self._main = path.read_bytes()
        wal = path.with_name(path.name + "-wal")
        self._wal = wal.read_bytes() if with_wal and wal.exists() else b""
        self.page_size = self._page_size()
        self._usable = self.page_size - (self._main[20] if len(self._main) > HEADER_SIZE else 0)
        if self._usable < 480:  # SQLite's limit
            self._usable = self.page_size
        self._frames: dict[int, list[int]] = {}
        """Offsets of the versions of each page in the write-ahead log, the newest last."""
        for number, start in self._committed_frames():
            self._frames.setdefault(number, []).append(start)
        last = max(self._frames, default=0)
        self.page_count = max(last, -(-len(self._main) // self.page_size))

    def versions(self, number: int) -> Iterator[bytes]:
        """All versions of a page, the newest first."""
        for start in reversed(self._frames.get(number, ())):
            yield self._wal[start : start + self.page_size]
        start = (number - 1) * self.page_size
        page = self._main[start : start + self.page_size]
        if page:
            yield page

    def free_pages(self) -> tuple[set[int], bool]:
        """The free pages, and whether the freelist is intact."""
        first = next(self.versions(1), b"")
        free: set[int] = set()
        try:
            (trunk,) = unpack_from(">I", first, 32)
            (count,) = unpack_from(">I", first, 36)
            while trunk:
                page = next(self.versions(trunk), b"")
                following, leaves = unpack_from(">2I", page)
                if trunk in free or leaves > self._usable // 4:
                    return free, False
                free.add(trunk)
                free.update(unpack_from(f">{leaves}I", page, 8))
                trunk = following
        except StructError:
            return free, False
        return free, len(free) == count and is_header(first)

    def rows(self, page: bytes, number: int) -> Iterator[Row | BadCell]:
        """The rows of one version of a table leaf page; empty for other kinds of pages."""
        start = HEADER_SIZE if number == 1 else 0
        if len(page) < self.page_size or page[start] != LEAF:
            return
        (count,) = unpack_from(">H", page, start + 3)
        pointers = page[start + 8 : start + 8 + 2 * count]
        if len(pointers) < 2 * count:
            yield BadCell(number)
            return
        for (pointer,) in iter_unpack(">H", pointers):
            try:
                yield self._row(page, number, pointer)
            except (IndexError, StructError, UnicodeDecodeError, ValueError):
                yield BadCell(number)

    def _page_size(self) -> int:
        sizes = []
        if is_header(self._main):
            (size,) = unpack_from(">H", self._main, 16)
            sizes.append(1 << 16 if size == 1 else size)
        if len(self._wal) > _WAL_HEADER:
            sizes += unpack_from(">I", self._wal, 8)
        for size in sizes:
            if 512 <= size <= 1 << 16 and size & (size - 1) == 0:
                return size
        return self._likely_page_size()

    def _likely_page_size(self) -> int:
        """Without a header: whether small pages begin at places that are inside of large ones, where a leaf is chance."""
        starts = self._main[SMALL_PAGE::SMALL_PAGE]
        inside = [
            start for number, start in enumerate(starts, 1) if number * SMALL_PAGE % LARGE_PAGE
        ]
        return SMALL_PAGE if inside.count(LEAF) * 10 >= len(inside) else LARGE_PAGE

    def _committed_frames(self) -> Iterator[tuple[int, int]]:
        """Page numbers and offsets. Frames of an earlier write-ahead log have other salts."""
        if len(self._wal) < _WAL_HEADER + _FRAME.size:
            return
        magic, *_, salt1, salt2 = unpack_from(">6I", self._wal)
        if magic not in _WAL_MAGIC:
            salt1, salt2 = _FRAME.unpack_from(self._wal, _WAL_HEADER)[2:4]
        size = _FRAME.size + self.page_size
        frames = []
        committed = 0
        for start in range(_WAL_HEADER, len(self._wal) - size + 1, size):
            number, commit, *salts, _, _ = _FRAME.unpack_from(self._wal, start)
            if salts == [salt1, salt2] and number:
                frames.append((number, start + _FRAME.size))
                if commit:
                    committed = len(frames)
        yield from islice(frames, committed)

    def _row(self, page: bytes, number: int, pointer: int) -> Row:
        size, start = _varint(page, pointer)
        rowid, start = _varint(page, start)
        if rowid >= 1 << 63:
            rowid -= 1 << 64
        local = self._local_size(size)
        payload = page[start : start + local]
        if len(payload) < local:
            raise ValueError("a row that reaches beyond its page")
        if local < size:
            (overflow,) = unpack_from(">I", page, start + local)
            payload += self._overflow(overflow, size - local)
        return Row(number, rowid, tuple(_values(payload)))

    def _local_size(self, size: int) -> int:
        """The number of bytes of a row in the leaf page."""
        usable = self._usable
        if size <= usable - 35:
            return size
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        return local if local <= usable - 35 else least

    def _overflow(self, number: int, size: int) -> bytes:
        parts = []
        seen = set()
        while size > 0:
            if number in seen or not 0 < number <= self.page_count:
                raise ValueError("a chain of pages that leads nowhere")
            seen.add(number)
            page = next(self.versions(number), b"")
            part = page[4 : min(self._usable, 4 + size)]
            parts.append(part)
            size -= len(part) or self.page_size
            (number,) = unpack_from(">I", page)
        return b"".join(parts)


def is_header(page: bytes) -> bool:
    return page.startswith(b"SQLite format 3\0") and len(page) >= HEADER_SIZE


def _values(payload: bytes) -> Iterator[Value]:
    end, start = _varint(payload, 0)
    place = end
    while start < end:
        kind, start = _varint(payload, start)
        size = _INTEGER_SIZES.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        content = payload[place : place + size]
        if len(content) < size:
            raise ValueError("a row that is cut off")
        place += size
        if kind == 0:
            yield None
        elif kind in _INTEGER_SIZES:
            yield int.from_bytes(content, "big", signed=True)
        elif kind == 7:
            (number,) = unpack_from(">d", content)
            yield number
        elif kind in (8, 9):
            yield kind - 8
        elif kind >= 12:
            yield content.decode() if kind % 2 else content
        else:
            raise ValueError("a type that is not in use")


def _varint(content: bytes, start: int) -> tuple[int, int]:
    """A varint, and its end."""
    value = 0
    for index in range(8):
        byte = content[start + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, start + index + 1
    return value << 8 | content[start + 8], start + 9
