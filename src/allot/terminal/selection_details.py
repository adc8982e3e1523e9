"""The lines below a view: what is selected, in full."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from allot.questions.device_text import details_text, holders_text
from allot.questions.devices import DeviceRow
from allot.questions.pending import PendingCause
from allot.scheduler.explain.explanation_text import BLANK, Line
from allot.terminal.listings import ClaimRow, EventRow, PodRow, owners_text
from allot.terminal.state_symbols import STYLES


def details_of(selected: object) -> list[Line | Text]:
    """Two lines at most."""
    match selected:
        case DeviceRow():
            return _device(selected)
        case PodRow() | ClaimRow():
            devices = ", ".join(selected.devices)
            return [
                Text.assemble((str(selected.key), "bold"), f"  {selected.state}"),
                Text(devices),
            ]
        case EventRow():
            first = Text.assemble((selected.reason, "bold"), f"  {selected.about}")
            return [first, Text(selected.message)]
    return []


def _device(row: DeviceRow) -> list[Line | Text]:
    where = f" on {row.node}" if row.node else ""
    pool = f", pool {row.pool}" if row.pool != row.node else ""
    first = Text.assemble(
        (row.device, "bold"),
        f"{where}{pool}  ",
        f"{row.model}  " if row.model else "",
        (row.state, STYLES[row.state]),
    )
    return [first, Text("; ".join(filter(None, (holders_text(row), details_text(row)))))]


def cause_details(cause: object, notes: Iterable[str]) -> list[Line | Text]:
    """A cause, the pods that wait for it, and what would help them."""
    noted: list[Line | Text] = [Text(f"Note: {note}", "dim") for note in notes]
    if not isinstance(cause, PendingCause):
        return noted
    lines: list[Line | Text] = [
        Text(f"{cause.pods} pending: {owners_text(cause)}", "bold"),
        Text(cause.cause),
    ]
    if cause.helps:
        lines += [BLANK, Text("What would help", "bold")]
        lines += (Line(2, Text(each)) for each in cause.helps)
    return [*lines, *([BLANK, *noted] if noted else [])]
