"""How long extension points take, and, in some cycles, each plugin.

Extension points are timed in every cycle. Timing every call of every plugin would cost more than many of the calls:
one cycle in `SAMPLE_EVERY` is sampled, and of its calls of `filter` those on the first few nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from allot.scheduler.framework.status import Code

SAMPLE_EVERY: Final = 10
TIDY_EVERY: Final = 100
"""Cycles between calls of `tidy`."""
MAX_FILTER_SAMPLES: Final = 200
"""Calls of `filter` that are timed in one cycle."""

PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
RESERVE: Final = "Reserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"

Observe = Callable[[float], None]
"""Told how many seconds something took."""
ObserverOfPoint = Callable[[str, Code], Observe]
"""What observes an extension point that ends in this way."""
ObserverOfPlugin = Callable[[str, str, Code], Observe]
"""What observes a plugin at an extension point that ends in this way."""


class _Observers(dict[tuple[Any, ...], Observe]):
    """What observes something, by what it is called and how it ends. Made when it is first needed."""

    def __init__(self, observer_of: Callable[..., Observe]) -> None:
        self._observer_of = observer_of

    def __missing__(self, key: tuple[Any, ...]) -> Observe:
        observe = self[key] = self._observer_of(*key)
        return observe


class PluginSamples:
    """Times the plugins of one sampled cycle."""

    __slots__ = ("_observers", "filters_left", "now")

    def __init__(self, observers: _Observers, now: Callable[[], float]) -> None:
        self._observers = observers
        self.now = now
        self.filters_left = MAX_FILTER_SAMPLES

    def add(self, plugin: str, point: str, code: Code, started: float) -> None:
        """A call that began at `started` has ended."""
        self._observers[plugin, point, code](self.now() - started)


class Durations:
    """What one profile's cycles tell about their duration."""

    def __init__(
        self,
        observer_of_point: ObserverOfPoint = lambda *_: lambda _: None,
        observer_of_plugin: ObserverOfPlugin | None = None,
        now: Callable[[], float] = time.perf_counter,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `observer_of_plugin` no cycle is sampled. `tidy` is called from time to time, when a sampled one begins."""
        self.now = now
        self._points = _Observers(observer_of_point)
        self._plugins = _Observers(observer_of_plugin) if observer_of_plugin is not None else None
        self._tidy = tidy
        self._cycles = 0

    def sample(self) -> PluginSamples | None:
        """What times the plugins of the cycle that begins; None in most of them. The first is sampled."""
        if self._plugins is None:
            return None
        self._cycles += 1
        if self._cycles % SAMPLE_EVERY != 1:
            return None
        if self._cycles % TIDY_EVERY == 1:
            self._tidy()
        return PluginSamples(self._plugins, self.now)

    def point(self, point: str, code: Code, started: float) -> float:
        """An extension point that began at `started` has ended; now comes back."""
        now = self.now()
        self._points[point, code](now - started)
        return now
