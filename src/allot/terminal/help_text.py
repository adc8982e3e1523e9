"""The page of `?`: keys, symbols, and notes about what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.text import Text

from allot.questions.devices import DeviceUse
from allot.scheduler.explain.explanation_text import BLANK, Line
from allot.terminal.state_symbols import STYLES, SymbolSet

_KEYS: Final = (
    ("1-6", "floor plan, pending pods by cause, devices, pods, claims, events"),
    ("tab", "the next view; shift+tab: the previous one"),
    ("arrows", "select; also h j k l, page up and down, home and end"),
    ("enter", "open: a device, or the explanation of a pod or claim"),
    ("e", "explain the pod or claim; of a device: the one that holds it"),
    ("/", "search in all views: words that must occur, !word that must not; esc ends it"),
    ("f", "find the devices of a pod or claim in the floor plan"),
    ("z", "one cell for each node, and back"),
    ("c", "show held devices by namespace, and back"),
    ("esc", "back"),
    ("q", "quit; also ctrl+c"),
)
_STATES: Final = {
    DeviceUse.FREE: "free",
    DeviceUse.HELD: "held: a claim holds it",
    DeviceUse.SHARED: "shared: the height is how much of it is used",
    DeviceUse.WAITING: "waiting: held, and its binding conditions are not True yet",
    DeviceUse.TAINTED: "tainted: only claims that tolerate the taint get it",
    DeviceUse.BLOCKED: "blocked: other partitions have used up counters that it needs",
    DeviceUse.UNUSABLE: "unusable: its pool is incomplete or invalid",
    DeviceUse.UNPUBLISHED: "unpublished: held, and no slice publishes it any more",
}


def help_lines(
    symbols: SymbolSet, marks: Sequence[tuple[str, str]], notes: Iterable[str]
) -> Iterator[Line | Text]:
    """`marks` are the letters of namespaces."""
    for name, does in _KEYS:
        yield Line(0, Text.assemble((f"{name:<8}", "bold"), does))
    yield BLANK
    for state, text in _STATES.items():
        symbol = symbols.by_state[state]
        if state is DeviceUse.SHARED:
            symbol = symbols.levels[:: max(1, len(symbols.levels) // 3)]
        yield Line(0, Text.assemble((f"{symbol:<8}", STYLES[state]), text))
    if marks:
        yield BLANK
        yield Line(0, Text("Namespaces", "bold"))
        yield from (Line(0, Text(f"{letter:<8}{namespace}")) for namespace, letter in marks)
    shown = list(notes)
    if shown:
        yield BLANK
        yield Line(0, Text("Notes", "bold"))
        yield from (Line(0, Text(note)) for note in shown)
