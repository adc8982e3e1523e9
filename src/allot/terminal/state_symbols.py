"""The symbol and the color of each device state. Symbols alone tell all states apart: colors only help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rich.style import Style

from allot.questions.device_text import used_share
from allot.questions.devices import DeviceRow, DeviceUse


class SymbolSet(NamedTuple):
    """The characters that the terminal can show."""

    by_state: Mapping[DeviceUse, str]
    levels: str
    """How much of a shared device is used, or of a node; from little to all but everything."""
    ellipsis: str
    rule: str
    live: str


BLOCKS: Final = SymbolSet(
    {
        DeviceUse.FREE: "·",
        DeviceUse.HELD: "█",
        DeviceUse.SHARED: "▄",
        DeviceUse.WAITING: "w",
        DeviceUse.TAINTED: "T",
        DeviceUse.BLOCKED: "x",
        DeviceUse.UNUSABLE: "!",
        DeviceUse.UNPUBLISHED: "?",
    },
    "▁▂▃▄▅▆▇",
    "…",
    "─",
    "●",
)
ASCII: Final = SymbolSet(
    {
        **BLOCKS.by_state,
        DeviceUse.FREE: ".",
        DeviceUse.HELD: "#",
        DeviceUse.SHARED: "5",
    },
    "123456789",
    "~",
    "-",
    "*",
)

# The terminal's own colors, none told apart by red and green alone.
STYLES: Final = {
    DeviceUse.FREE: Style(),
    DeviceUse.HELD: Style(color="blue"),
    DeviceUse.SHARED: Style(color="cyan"),
    DeviceUse.WAITING: Style(color="yellow", bold=True),
    DeviceUse.TAINTED: Style(color="magenta", bold=True),
    DeviceUse.BLOCKED: Style(dim=True),
    DeviceUse.UNUSABLE: Style(color="red", bold=True),
    DeviceUse.UNPUBLISHED: Style(color="red", bold=True),
}
_NAMESPACE_COLORS: Final = ("blue", "yellow", "magenta", "cyan", "bright_blue", "bright_red")


def symbol_of(row: DeviceRow, symbols: SymbolSet) -> str:
    """One character."""
    if row.state is DeviceUse.SHARED:
        return level_symbol(used_share(row), symbols)
    return symbols.by_state[row.state]


def level_symbol(used: float, symbols: SymbolSet) -> str:
    """A symbol for how much is used, from 0 to 1: free and held at the ends, something between them else."""
    if used <= 0:
        return symbols.by_state[DeviceUse.FREE]
    if used >= 1:
        return symbols.by_state[DeviceUse.HELD]
    return symbols.levels[min(int(used * len(symbols.levels)), len(symbols.levels) - 1)]


class NamespaceMarks:
    """A letter and a color for each namespace that holds devices. They last while the program runs."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def of(self, row: DeviceRow) -> tuple[str, Style] | None:
        """Those of the namespace that holds the device; None if no claim holds it."""
        if not row.held_by:
            return None
        return self.mark(row.held_by[0].claim.partition("/")[0])

    def mark(self, namespace: str) -> tuple[str, Style]:
        letter = self._letters.get(namespace)
        if letter is None:
            number = len(self._letters)
            letter = self._letters[namespace] = chr(ord("A") + number) if number < 26 else "+"
        number = ord(letter) - ord("A")
        color = _NAMESPACE_COLORS[number % len(_NAMESPACE_COLORS)] if letter != "+" else "white"
        return letter, Style(color=color, reverse=True)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The letter of each namespace."""
        return iter(self._letters.items())
