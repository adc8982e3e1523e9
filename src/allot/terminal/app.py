"""The application: a status line, views, details of what is selected, and keys.

    allot top  .allot/kubeconfig                                       ● live
    1 Floor plan   2 Pending 3   3 Devices   4 Pods   5 Claims   6 Events
    █ 38 held  ▄ 9 shared  · 41 free  T 4 tainted
    ...

Views are drawn again when the cluster has changed, at most four times a second and with pauses that are longer than
the drawing. Only the visible view is.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.css.query import NoMatches
from textual.timer import Timer
from textual.widgets import Input

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.questions.devices import DeviceRow
from allot.questions.pending import PendingCause
from allot.terminal.cause_finder import CauseFinder
from allot.terminal.cluster_reading import OBJECT_VIEWS, ClusterReading, is_large, read_cluster
from allot.terminal.cluster_source import ClusterSource
from allot.terminal.detail_screens import DeviceScreen, ExplainScreen, HelpScreen, holder_of
from allot.terminal.device_index import DeviceIndex
from allot.terminal.explanations import ExplainedObject
from allot.terminal.floor_plan_view import FloorPlanView
from allot.terminal.frame_lines import (
    ALWAYS,
    Summary,
    key_line,
    keys_of,
    status_line,
    summary_line,
    tab_line,
)
from allot.terminal.help_text import help_lines
from allot.terminal.listings import ClaimRow, PodRow, matching_causes
from allot.terminal.row_table import RowTable
from allot.terminal.search_query import SearchQuery
from allot.terminal.selection_details import cause_details, details_of
from allot.terminal.state_symbols import ASCII, BLOCKS, SymbolSet
from allot.terminal.styles import CSS
from allot.terminal.text_view import TextView
from allot.terminal.views import VIEWS, views

DRAW_SECONDS: Final = 0.25
REST_FACTOR: Final = 4
"""After drawing for a second, the next drawing comes after so many at the earliest."""
POOLS_AT_ONCE: Final = 50
SEARCH_SECONDS: Final = 0.15
"""After the last key a search begins."""
EXIT_INTERRUPTED: Final = 130


class TopApp(App[int]):
    """`allot top`."""

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"view('{name}')", title, show=False)
            for number, (name, title) in enumerate(VIEWS.items(), 1)
        ),
        Binding("tab", "next_view(1)", show=False, priority=True),
        Binding("shift+tab", "next_view(-1)", show=False, priority=True),
        Binding("slash", "search", show=False),
        Binding("escape", "clear_search", show=False),
        Binding("e", "explain", show=False),
        Binding("f", "find_devices", show=False),
        Binding("c", "colors", show=False),
        Binding("z", "zoom", show=False),
        Binding("question_mark,f1", "keys", show=False),
        Binding("q", "leave", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, source: ClusterSource, symbols: SymbolSet = BLOCKS) -> None:
        super().__init__(ansi_color=True)  # the terminal's own colors; NO_COLOR leaves them out
        self.theme = "ansi-dark"
        self.source = source
        self.symbols = symbols
        self.view = "plan"
        self._index = DeviceIndex()
        self._query = SearchQuery()
        self._causes = CauseFinder(source)
        self._drawn: tuple[object, ...] = ()
        self.drawings = 0
        """How often a view was drawn."""
        self._reading = ClusterReading()
        self._is_wanted = asyncio.Event()
        """Set when a view must be drawn before the next turn."""
        self._search_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        mark = self.symbols.ellipsis
        yield TextView(ellipsis=mark, id="status")
        yield TextView(ellipsis=mark, id="tabs")
        yield TextView(ellipsis=mark, id="summary")
        yield Container(*views(self.symbols), id="views")
        yield TextView(ellipsis=mark, id="details")
        yield Input(placeholder="search: words, !word to exclude", id="search", compact=True)
        yield TextView(ellipsis=mark, id="keys")

    def on_mount(self) -> None:
        for each in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(each, self.exit, 128 + each)
        self.screen.set_class(self.symbols is ASCII, "ascii")
        self.action_view(self.view)
        self.run_worker(self.source.run(), group="source", exit_on_error=True)
        self.run_worker(self._follow(), group="drawing")
        self.run_worker(self._causes.run(lambda: self.view == "pending"), group="causes")

    # --- following the cluster ---

    async def _follow(self) -> None:
        while True:
            started = time.monotonic()
            self._is_wanted.clear()
            while self.source.devices.refresh(POOLS_AT_ONCE):
                await asyncio.sleep(0)
            try:
                self._draw_frame()
                if self._shown_state() != self._drawn:
                    await self._read_and_draw()
            except NoMatches:
                return  # the application ends, its widgets are gone
            pause = max(DRAW_SECONDS, REST_FACTOR * (time.monotonic() - started))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_wanted.wait()

    async def _read_and_draw(self) -> None:
        state, view, query = self._shown_state(), self.view, self._query
        cluster = self.source.observed()
        if is_large(cluster):
            reading = await asyncio.to_thread(read_cluster, cluster, view, query)
        else:
            reading = read_cluster(cluster, view, query)
        if reading.is_of(self.view, self._query):
            self._reading, self._drawn = reading, state
            self._show_view()

    # --- drawing ---

    def _shown_state(self) -> tuple[object, ...]:
        """What the visible view is drawn from."""
        source = self.source
        causes = self._causes.searches
        return source.revision, source.devices.version, causes, self._query, self.view

    def _draw_view(self) -> None:
        """Draw now; of a large cluster what is known, and the rest as soon as it is read."""
        cluster = self.source.observed()
        if not is_large(cluster):
            self._drawn = self._shown_state()
            self._reading = read_cluster(cluster, self.view, self._query)
        else:
            self._drawn = ()
            self._is_wanted.set()
            if not self._reading.is_of(self.view, self._query):
                self._reading = self._reading._replace(view=self.view, query=self._query, rows=None)
        self._show_view()

    def _show_view(self) -> None:
        self.drawings += 1
        self._index.update(self.source.devices.pools, self._query)
        reading = self._reading
        is_read = self.view not in OBJECT_VIEWS or reading.rows is not None
        loading = None if is_read and not self.source.is_loading else "Reading the cluster ..."
        nothing = loading or (f"Nothing matches {self._search_text!r}." if self._query else None)
        match self.view:
            case "plan":
                self.query_one(FloorPlanView).show(self._index.groups)
            case "devices":
                self._table("devices").show(self._index.rows, nothing or "No devices.")
            case "pods" | "claims" | "events":
                if self.view == "events" and reading.unread_events:
                    nothing = nothing or f"Events cannot be read: {reading.unread_events}"
                self._table(self.view).show(reading.rows or (), nothing or f"No {self.view}.")
            case "pending":
                causes = matching_causes(self._causes.found.causes, self._query)
                searching = None if self._causes.is_known else "Looking for causes ..."
                self._table("causes").show(causes, nothing or searching or "No pod is pending.")
        self._draw_frame()
        self._draw_details()

    def _draw_frame(self) -> None:
        width = self.size.width
        plan = self.query_one(FloorPlanView)
        summary = Summary(
            self._index.states,
            f"{len(self._index.rows):,} match {self._search_text!r}" if self._query else "",
            plan.marks if self.view == "plan" and plan.by_namespace else None,
            len(self._reading.notes),
            is_loading=self.source.is_loading,
        )
        keys = keys_of(self.view, is_overview=plan.is_overview, is_searching=bool(self._query))
        lines = {
            "#status": status_line(self.source, self.symbols, width),
            "#tabs": tab_line(VIEWS, self.view, {"pending": self._reading.pending_pods}, width),
            "#summary": summary_line(summary, self.symbols),
            "#keys": key_line(keys, width, ALWAYS),
        }
        for name, line in lines.items():
            self.query_one(name, TextView).show([line])

    def _draw_details(self) -> None:
        if self.view == "pending":
            lines = cause_details(self._table("causes").row, self._causes.found.notes)
            self.query_one("#cause", TextView).show(lines)
        else:
            device = self._selected_device()
            selected = device if self.view == "plan" else self._table(self.view).row
            self.query_one("#details", TextView).show(details_of(selected))

    # --- what is selected ---

    def _table(self, name: str) -> RowTable[Any]:
        return self.query_one(f"#{name}", RowTable)

    def _selected_device(self) -> DeviceRow | None:
        if self.view == "plan":
            return self.query_one(FloorPlanView).row
        row = self._table("devices").row if self.view == "devices" else None
        return row if isinstance(row, DeviceRow) else None

    def _selected_target(self) -> ExplainedObject | None:
        """The pod or claim that `e` explains."""
        device = self._selected_device()
        if device is not None:
            return holder_of(device)
        match self.view:
            case "pods" | "claims":
                row = self._table(self.view).row
                if isinstance(row, PodRow):
                    return ExplainedObject(resources.PODS, row.key)
                if isinstance(row, ClaimRow):
                    return ExplainedObject(resources.RESOURCE_CLAIMS, row.key)
            case "pending":
                cause = self._table("causes").row
                if isinstance(cause, PendingCause):
                    namespace, _, name = cause.example.partition("/")
                    return ExplainedObject(resources.PODS, ObjectKey(namespace, name))
        return None

    def on_row_table_selected(self, message: RowTable.Selected) -> None:
        self._draw_details()

    def on_floor_plan_view_selected(self, message: FloorPlanView.Selected) -> None:
        self._draw_details()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        self._open()

    def on_floor_plan_view_opened(self, message: FloorPlanView.Opened) -> None:
        self._open()

    def _open(self) -> None:
        device = self._selected_device()
        if device is not None:
            self.push_screen(DeviceScreen(device, self.source))
        else:
            self.action_explain()

    # --- keys ---

    def action_view(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.view = name
        for each in VIEWS:
            self.query_one(f"#{each}").display = each == name
        self.query_one("#details").display = name != "pending"
        focused = "#causes" if name == "pending" else f"#{name}"
        self.query_one(focused).focus()
        self._draw_view()
        self.call_after_refresh(self._draw_view)

    def action_next_view(self, step: int) -> None:
        names = list(VIEWS)
        self.action_view(names[(names.index(self.view) + step) % len(names)])

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.add_class("open")
        search.focus()

    def on_input_changed(self, message: Input.Changed) -> None:
        if self._search_timer is not None:
            self._search_timer.stop()
        self._search_timer = self.set_timer(SEARCH_SECONDS, self._search)

    def _search(self) -> None:
        if not self.query("#search"):
            return  # the timer expired while the application ends
        self._query = SearchQuery.parse(self._search_text)
        self._draw_view()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self._search()
        self._close_search()

    def action_clear_search(self) -> None:
        search = self.query_one("#search", Input)
        search.value = ""
        self._query = SearchQuery()
        self._close_search()

    def _close_search(self) -> None:
        self.query_one("#search", Input).remove_class("open")
        self.action_view(self.view)

    @property
    def _search_text(self) -> str:
        return self.query_one("#search", Input).value

    def action_explain(self) -> None:
        target = self._selected_target()
        if target is not None:
            self.push_screen(ExplainScreen(target, self.source))
        else:
            self.bell()

    def action_find_devices(self) -> None:
        """The selected device, or those of the selected pod or claim, in the floor plan."""
        device = self._selected_device()
        if device is not None:
            self.action_view("plan")
            self.call_after_refresh(self.query_one(FloorPlanView).select_device, device.id)
            return
        target = self._selected_target()
        if target is not None and self.view in ("pods", "claims"):
            self.query_one("#search", Input).value = str(target.key)
            self._search()
            self.action_view("plan")

    def action_colors(self) -> None:
        plan = self.query_one(FloorPlanView)
        plan.toggle_namespaces()
        self._draw_frame()

    def action_zoom(self) -> None:
        self.query_one(FloorPlanView).toggle_overview()
        self._draw_frame()

    def action_keys(self) -> None:
        marks = tuple(self.query_one(FloorPlanView).marks)
        self.push_screen(HelpScreen(help_lines(self.symbols, marks, self._reading.notes)))

    def action_leave(self) -> None:
        self.exit(0)

    def action_interrupt(self) -> None:
        self.exit(EXIT_INTERRUPTED)

    def on_resize(self) -> None:
        self._draw_frame()
