"""The views of `allot top`: the floor plan, causes of pending pods, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.containers import Container
from textual.widget import Widget

from allot.questions.devices import DeviceRow
from allot.questions.pending import PendingCause
from allot.terminal.floor_plan_view import FloorPlanView
from allot.terminal.listings import (
    CAUSE_COLUMNS,
    CLAIM_COLUMNS,
    EVENT_COLUMNS,
    POD_COLUMNS,
    ClaimRow,
    EventRow,
    PodRow,
    device_columns,
)
from allot.terminal.row_table import RowTable
from allot.terminal.state_symbols import SymbolSet
from allot.terminal.text_view import TextView

VIEWS: Final = {
    "plan": "Floor plan",
    "pending": "Pending",
    "devices": "Devices",
    "pods": "Pods",
    "claims": "Claims",
    "events": "Events",
}
"""By id, in the order of their number keys."""


def views(symbols: SymbolSet) -> Iterator[Widget]:
    """The widgets of all views, of which one is visible."""
    mark = symbols.ellipsis
    yield FloorPlanView(symbols, id="plan")
    causes = RowTable[PendingCause](
        CAUSE_COLUMNS,
        lambda row: row.cause,
        empty="No pod is pending.",
        ellipsis=mark,
        id="causes",
    )
    yield Container(causes, TextView(wraps=True, id="cause"), id="pending")
    yield RowTable[DeviceRow](
        device_columns(symbols),
        lambda row: row.id,
        empty="No devices.",
        ellipsis=mark,
        id="devices",
    )
    yield RowTable[PodRow](
        POD_COLUMNS, lambda row: row.key, empty="No pods.", ellipsis=mark, id="pods"
    )
    yield RowTable[ClaimRow](
        CLAIM_COLUMNS, lambda row: row.key, empty="No claims.", ellipsis=mark, id="claims"
    )
    yield RowTable[EventRow](
        EVENT_COLUMNS, lambda row: row.key, empty="No events.", ellipsis=mark, id="events"
    )
