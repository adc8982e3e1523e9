"""Huge pages for the memory of long-running components, on Linux.

Objects of a server are spread over tens of thousands of pages of 4 KiB, and to find the addresses of those takes up to a
tenth of its CPU time, on virtual machines above all. In pages of 2 MiB there is hardly anything to find. The interpreter
takes memory in smaller pieces, so the operating system is asked afterwards to put together what lies side by side. Areas
that are not nearly full are left alone, so that memory does not grow: stacks of threads, for example.

It takes half a millisecond for each huge page, and several where a virtual machine gets the memory only then, in a thread
that does not hold the lock of the interpreter. So it is done once after the start, and when much has come since. Where
huge pages are switched off or unknown nothing happens.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

HUGE: Final = 2 << 20
LOOK_SECONDS: Final = 2.0
MIN_GROWTH: Final = 32 << 20
"""Areas are looked at again when the memory in use has grown by so much."""
MIN_RESIDENT: Final = 0.9
"""The part of an area that must be in use already."""

SETTING: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
AREAS: Final = Path("/proc/self/smaps")
TOTALS: Final = Path("/proc/self/statm")

_MADV_HUGEPAGE: Final = 14
_MADV_COLLAPSE: Final = 25
"""Since Linux 6.1; before that, a thread of the kernel makes huge pages of areas that are marked."""
_PRIVATE_MEMORY: Final = "rw-p"
_NAMES: Final = ("", "[heap]")

Advise = Callable[[int, int, int], int]
"""Advice about an address and a size: 0, or the number of the error."""


class Area(NamedTuple):
    """Addresses of one kind of memory, and how many bytes of them are in use, and in huge pages."""

    start: int
    end: int
    resident: int
    huge: int

    def aligned(self) -> range:
        """The addresses at which a huge page can begin."""
        return range(-(-self.start // HUGE) * HUGE, self.end - HUGE + 1, HUGE)

    @property
    def is_worth_it(self) -> bool:
        is_full = self.resident >= MIN_RESIDENT * (self.end - self.start)
        return is_full and self.huge < len(self.aligned()) * HUGE


def read_areas(lines: Iterable[str]) -> Iterator[Area]:
    """The areas in /proc/PID/smaps that hold objects: private and writable, of no file."""
    start = end = resident = huge = 0
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "Rss":
            resident = _bytes(rest)
        elif name == "AnonHugePages":
            huge = _bytes(rest)
        elif name == "VmFlags":  # the last line about an area
            if end:
                yield Area(start, end, resident, huge)
            start = end = resident = huge = 0
        elif "-" in name.partition(" ")[0]:
            fields = line.split()
            is_memory = fields[1] == _PRIVATE_MEMORY and "".join(fields[5:]) in _NAMES
            first, _, last = fields[0].partition("-")
            start, end = (int(first, 16), int(last, 16)) if is_memory else (0, 0)


def _bytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) << 10


class HugePages:
    """Puts the memory of this process into huge pages as it grows."""

    def __init__(self, advise: Advise, page_size: int) -> None:
        self._advise = advise
        self._page_size = page_size
        self._known = 0
        """The bytes that were in use when areas were looked at."""
        self._advice = _MADV_COLLAPSE

    def look(self) -> None:
        """Put together what has come since the last look, if that is much."""
        resident = int(TOTALS.read_text().split()[1]) * self._page_size
        if resident < self._known + MIN_GROWTH:
            return
        self._known = resident
        with AREAS.open() as lines:
            areas = [area for area in read_areas(lines) if area.is_worth_it]
        for area in areas:
            self.put_together(area)

    def put_together(self, area: Area) -> None:
        """One page after the other: what needs memory meanwhile waits for one of them."""
        for address in area.aligned():
            if self._advise(address, HUGE, self._advice) == errno.EINVAL:
                self._advice = _MADV_HUGEPAGE
                self._advise(address, HUGE, self._advice)

    def keep_looking(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            try:
                self.look()
            except OSError:  # no /proc here, or it may not be read
                return


def start_huge_pages() -> None:
    """Use huge pages in this process from now on, where the system offers them to those who ask."""
    if not are_offered():
        return
    Thread(target=_run, name="huge-pages", daemon=True).start()


def are_offered() -> bool:
    try:
        return sys.platform == "linux" and "[never]" not in SETTING.read_text()
    except OSError:
        return False


def _run() -> None:
    import resource  # not on all systems

    HugePages(system_advice(), resource.getpagesize()).keep_looking()


def system_advice() -> Advise:
    """The system's `madvise`, which runs without the lock of the interpreter."""
    import ctypes

    function = ctypes.CDLL(None, use_errno=True).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def advise(address: int, size: int, advice: int) -> int:
        return ctypes.get_errno() if function(address, size, advice) else 0

    return advise
