"""The lines around the views: which cluster, tabs, devices by state, keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from allot.questions.devices import DeviceUse
from allot.terminal.cluster_source import ClusterSource
from allot.terminal.state_symbols import STYLES, NamespaceMarks, SymbolSet
from allot.terminal.text_fitting import fit_text

WIDE: Final = 100
"""From so many columns on, tabs are further apart."""


# --- the cluster ---


def status_line(source: ClusterSource, symbols: SymbolSet, width: int) -> Text:
    """Which cluster it is, and whether it is followed; at the right."""
    if source.failure:
        state = Text.assemble(("reconnecting", "bold yellow"), f": {source.failure} ")
    elif not source.is_live:
        state = Text("not live ", "dim")
    elif source.is_loading:
        state = Text("reading ... ", "yellow")
    else:
        state = Text.assemble((symbols.live, "bold cyan"), " live ")
    left = Text.assemble(" ", ("allot top", "bold"), "  ", source.title)
    fit_text(left, max(12, width - state.cell_len - 2), symbols.ellipsis)
    space = width - left.cell_len - state.cell_len
    return Text.assemble(left, " " * max(2, space), state)


def tab_line(
    views: Mapping[str, str], selected: str, counts: Mapping[str, int], width: int
) -> Text:
    """The views with their number keys, and how many objects are in those of `counts`."""
    line = Text(" ")
    for number, (name, title) in enumerate(views.items(), 1):
        count = f" {counts[name]:,}" if counts.get(name) else ""
        line.append(f" {number} {title}{count} ", "reverse bold" if name == selected else "")
        if width >= WIDE:
            line.append(" ")
    return line


class Summary(NamedTuple):
    """What the line below the tabs tells."""

    states: Mapping[DeviceUse, int]
    matches: str = ""
    """How many devices a search has found."""
    marks: NamespaceMarks | None = None
    """The letters of namespaces, if these are shown instead of states."""
    notes: int = 0
    is_loading: bool = False


def summary_line(summary: Summary, symbols: SymbolSet) -> Text:
    """The devices by state, or the letters of namespaces."""
    line = Text("  ")
    if summary.is_loading and not summary.states:
        return line
    if summary.matches:
        line.append(f"{summary.matches}   ", "bold")
    if summary.marks is not None:
        for namespace, letter in summary.marks:
            line.append(letter, summary.marks.mark(namespace)[1])
            line.append(f" {namespace}   ")
        return line
    if not summary.states:
        line.append("No devices.   ")
    for state in DeviceUse:
        if number := summary.states.get(state):
            line.append(symbols.by_state[state], STYLES[state])
            line.append(f" {number:,} {state}   ")
    if summary.notes:
        line.append(f"? {summary.notes} {'note' if summary.notes == 1 else 'notes'}", "yellow")
    return line


# --- keys ---


class ShownKey(NamedTuple):
    """A key and what it does, in a word or two."""

    key: str
    does: str


def key_line(keys: Sequence[ShownKey], width: int, always: Sequence[ShownKey] = ()) -> Text:
    """One line; keys in `always` are shown even where others are not."""
    room = width - sum(map(_width, always))
    shown: list[ShownKey] = []
    for each in keys:
        room -= _width(each)
        if room < 0:
            break
        shown.append(each)
    pieces = (
        Text.assemble((f" {key} ", "reverse"), f" {does} ") for key, does in (*shown, *always)
    )
    return Text("").join(pieces)


def _width(key: ShownKey) -> int:
    return cell_len(key.key) + cell_len(key.does) + 4


ALWAYS: Final = (ShownKey("?", "help"), ShownKey("q", "quit"))


def keys_of(view: str, *, is_overview: bool, is_searching: bool) -> list[ShownKey]:
    """The keys of a view, the most needed first."""
    keys = [ShownKey("/", "search")]
    match view:
        case "plan":
            keys += [
                ShownKey("enter", "device"),
                ShownKey("e", "explain"),
                ShownKey("z", "zoom in" if is_overview else "zoom out"),
                ShownKey("c", "colors"),
            ]
        case "devices":
            keys += [ShownKey("enter", "device"), ShownKey("e", "explain"), ShownKey("f", "find")]
        case "pods" | "claims":
            keys += [ShownKey("enter", "explain"), ShownKey("f", "find devices")]
        case "pending":
            keys += [ShownKey("enter", "explain")]
    if is_searching:
        keys.insert(1, ShownKey("esc", "all"))
    return keys
