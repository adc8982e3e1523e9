"""Memory of components in huge pages."""

from __future__ import annotations

import ctypes
import errno
import mmap
from pathlib import Path

import pytest

from allot.cli import huge_pages
from allot.cli.huge_pages import (
    AREAS,
    HUGE,
    Area,
    HugePages,
    are_offered,
    read_areas,
    system_advice,
)

MIB = 1 << 20
SMAPS = """\
00400000-00b56000 r-xp 00000000 fe:00 1234                       /usr/bin/python3.11
Rss:                4096 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
01c00000-02c00000 rw-p 00000000 00:00 0                          [heap]
Rss:               16384 kB
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n\
Rss:                8192 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000800000 rw-p 00000000 fe:00 77                 /tmp/a file: deleted
Rss:                8192 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac
7ffc00000000-7ffc00800000 rw-p 00000000 00:00 0                  [stack]
Rss:                8192 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me gd ac
"""


def test_areas_of_objects() -> None:
    assert [*read_areas(SMAPS.splitlines(keepends=True))] == [
        Area(0x1C00000, 0x2C00000, 16 * MIB, 2 * MIB),
        Area(0x7F0000000000, 0x7F0000800000, 8 * MIB, 0),
    ]


@pytest.mark.parametrize(
    ("area", "is_worth_it"),
    [
        pytest.param(Area(0, 8 * MIB, 8 * MIB, 0), True, id="full"),
        pytest.param(Area(0, 8 * MIB, MIB, 0), False, id="mostly-empty"),
        pytest.param(Area(0, 8 * MIB, 8 * MIB, 8 * MIB), False, id="done"),
        pytest.param(Area(MIB, 4 * MIB, 3 * MIB, 2 * MIB), False, id="done-but-for-its-ends"),
        pytest.param(Area(MIB, 3 * MIB, 2 * MIB, 0), False, id="no-whole-page-in-it"),
    ],
)
def test_what_is_worth_it(area: Area, is_worth_it: bool) -> None:
    assert area.is_worth_it is is_worth_it


def test_pages_are_whole() -> None:
    assert [*Area(MIB, 7 * MIB, 0, 0).aligned()] == [2 * MIB, 4 * MIB]


def test_older_systems_are_told_to_do_it_later() -> None:
    asked: list[tuple[int, int]] = []

    def advise(address: int, size: int, advice: int) -> int:
        assert size == HUGE
        asked.append((address, advice))
        return errno.EINVAL if advice == 25 else 0

    HugePages(advise, 4096).put_together(Area(0, 4 * MIB, 4 * MIB, 0))

    assert asked == [(0, 25), (0, 14), (2 * MIB, 14)]


def test_areas_are_read_when_memory_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    totals, areas = tmp_path / "statm", tmp_path / "smaps"
    monkeypatch.setattr(huge_pages, "TOTALS", totals)
    monkeypatch.setattr(huge_pages, "AREAS", areas)
    areas.write_text(SMAPS)

    def advise(address: int, _size: int, _advice: int) -> int:
        asked.append(address)
        return 0

    pages = HugePages(advise, 4096)

    for resident, expected in ((10_000, 8 + 4), (18_000, 0), (20_000, 8 + 4)):
        totals.write_text(f"30000 {resident} 100 1 0 9000 0")
        asked.clear()
        pages.look()
        assert len(asked) == expected


@pytest.mark.skipif(not are_offered(), reason="this system offers no huge pages")
def test_the_system_makes_them() -> None:
    with mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.write(b"x" * len(memory))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        start = -(-address // HUGE) * HUGE
        HugePages(system_advice(), mmap.PAGESIZE).put_together(Area(start, start + HUGE, HUGE, 0))
        with AREAS.open() as lines:
            found = [area for area in read_areas(lines) if area.start <= start < area.end]
        if not found[0].huge:
            pytest.skip("this system has no memory left for huge pages, or makes them later")
        assert memory[: 8 * MIB] == b"x" * len(memory)
