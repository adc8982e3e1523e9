"""Full screens above the views: an explanation, a device, the keys. Escape goes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.questions.devices import DeviceRow
from allot.scheduler.explain.explanation_text import BLANK, Line
from allot.terminal.cluster_source import ClusterSource
from allot.terminal.explanations import ExplainedObject, device_lines, explain
from allot.terminal.frame_lines import ShownKey, key_line
from allot.terminal.text_view import ScrolledText, TextView

REFRESH_SECONDS: Final = 1.0
REST_FACTOR: Final = 4
"""An explanation that took a second is computed again after so many at the earliest."""


class DetailScreen(Screen[None]):
    """A title, text that scrolls, and keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,backspace", "dismiss", show=False),
    ]
    KEYS: ClassVar[tuple[ShownKey, ...]] = (
        ShownKey("esc", "back"),
        ShownKey("arrows", "scroll"),
    )

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title_text = title

    def compose(self) -> ComposeResult:
        yield TextView(id="title")
        yield ScrolledText(wraps=True, id="text")
        yield TextView(id="keys")

    def on_mount(self) -> None:
        self.query_one("#text", ScrolledText).focus()
        self._draw_frame()

    def on_resize(self) -> None:
        self._draw_frame()

    def _draw_frame(self, state: str = "") -> None:
        title = Text.assemble(
            " ", (self._title_text, "bold"), (f"  {state}" if state else "", "yellow")
        )
        self.query_one("#title", TextView).show([title])
        self.query_one("#keys", TextView).show([key_line(self.KEYS, self.size.width)])

    def _show(self, lines: Iterable[Line | Text]) -> None:
        self.query_one("#text", ScrolledText).show(lines)


class HelpScreen(DetailScreen):
    """All keys and symbols."""

    def __init__(self, lines: Iterable[Line | Text]) -> None:
        super().__init__("Keys and symbols")
        self._text = tuple(lines)

    def on_mount(self) -> None:
        super().on_mount()
        self._show(self._text)


class DeviceScreen(DetailScreen):
    """A device: attributes, capacity, and which claims hold it. Kept up to date."""

    KEYS: ClassVar[tuple[ShownKey, ...]] = (
        *DetailScreen.KEYS,
        ShownKey("e", "explain its pod"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("e", "explain", show=False)]

    def __init__(self, row: DeviceRow, source: ClusterSource) -> None:
        super().__init__(f"Device {row.device} of pool {row.pool}")
        self._row = row
        self._source = source

    def on_mount(self) -> None:
        super().on_mount()
        self._draw()
        self.set_interval(REFRESH_SECONDS / 4, self._draw)

    def _draw(self) -> None:
        pool = (
            rows
            for id_, rows in self._source.devices.pools.items()
            if tuple(id_) == (self._row.driver, self._row.pool)
        )
        found = [row for rows in pool for row in rows if row.id == self._row.id]
        self._draw_frame("" if found else "no longer published")
        if found:
            self._row = found[0]
        published = self._source.devices.published(self._row.id)
        device = None if published is None else published[1]
        self._show(device_lines(self._row, device))

    def action_explain(self) -> None:
        target = holder_of(self._row)
        if target is not None:
            self.app.push_screen(ExplainScreen(target, self._source))


class ExplainScreen(DetailScreen):
    """Why a pod or claim is in its state, computed again when the cluster has changed."""

    KEYS: ClassVar[tuple[ShownKey, ...]] = (
        *DetailScreen.KEYS,
        ShownKey("a", "all details"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "everything", show=False)]

    def __init__(self, target: ExplainedObject, source: ClusterSource) -> None:
        super().__init__(f"Explain {target}")
        self._target = target
        self._source = source
        self._everything = False
        self._explained: tuple[int, bool] | None = None
        self._has_text = False

    def on_mount(self) -> None:
        super().on_mount()
        self._draw_frame("computing ...")
        self.run_worker(self._follow(), exclusive=True)

    def action_everything(self) -> None:
        self._everything = not self._everything

    async def _follow(self) -> None:
        pause = 0.0
        rested_until = 0.0
        while True:
            await asyncio.sleep(pause)
            pause = REFRESH_SECONDS / 4
            wanted = (self._source.revision, self._everything)
            changed_by_key = self._explained is not None and self._explained[1] != self._everything
            is_due = time.monotonic() >= rested_until or changed_by_key
            if wanted == self._explained or not is_due:
                continue
            started = time.monotonic()
            await self._explain()
            self._explained = wanted
            took = time.monotonic() - started
            rested_until = time.monotonic() + max(REFRESH_SECONDS, REST_FACTOR * took)

    async def _explain(self) -> None:
        cluster = self._source.observed()
        try:
            lines = await asyncio.to_thread(
                explain, cluster, self._target, everything=self._everything
            )
        except Exception as error:  # noqa: BLE001 - shown; the other views go on
            self._draw_frame(f"cannot be explained: {type(error).__name__}: {error}")
            return
        if lines is None:
            self._draw_frame("deleted; this is the last that was known" if self._has_text else "")
            if not self._has_text:
                self._show([Text(f"{self._target} does not exist.")])
            return
        self._has_text = True
        self._draw_frame()
        self._show([*lines, BLANK])


def holder_of(row: DeviceRow) -> ExplainedObject | None:
    """The pod for which a claim holds the device, or the claim; None if the device is not held."""
    for holder in row.held_by:
        namespace, _, claim = holder.claim.partition("/")
        for pod in holder.pods:
            return ExplainedObject(resources.PODS, ObjectKey(namespace, pod.rpartition("/")[2]))
        return ExplainedObject(resources.RESOURCE_CLAIMS, ObjectKey(namespace, claim))
    return None
