"""Every state can be told without colors."""

from __future__ import annotations

import pytest

from allot.questions.device_holders import Holder
from allot.questions.devices import DeviceRow, DeviceUse
from allot.terminal.state_symbols import (
    ASCII,
    BLOCKS,
    NamespaceMarks,
    SymbolSet,
    level_symbol,
    symbol_of,
)


@pytest.mark.parametrize("symbols", [BLOCKS, ASCII], ids=["blocks", "ascii"])
def test_symbols_differ(symbols: SymbolSet) -> None:
    plain = [symbols.by_state[state] for state in DeviceUse if state is not DeviceUse.SHARED]
    everything = [*plain, *symbols.levels]

    assert len(everything) == len(set(everything))
    assert all(len(each) == 1 for each in everything)


def test_ascii_is_ascii() -> None:
    texts = (*ASCII.by_state.values(), ASCII.levels, ASCII.ellipsis, ASCII.live)
    assert "".join(texts).isascii()


def test_a_share_is_drawn_as_high_as_it_is_used() -> None:
    holder = Holder("ns/claim", consumed={"bandwidth": "75G", "queues": "1"})
    row = DeviceRow(
        state=DeviceUse.SHARED,
        held_by=(holder,),
        remaining={"bandwidth": "25G", "queues": "9"},
    )

    assert symbol_of(row, BLOCKS) == "▆"
    assert [level_symbol(each, BLOCKS) for each in (0, 0.01, 0.5, 0.99, 1)] == list("·▁▄▇█")


def test_letters_of_namespaces_last() -> None:
    marks = NamespaceMarks()
    first = marks.mark("one")

    assert [marks.mark(f"ns-{n}")[0] for n in range(30)][-1] == "+"
    assert marks.mark("one") == first
    assert marks.of(DeviceRow()) is None
