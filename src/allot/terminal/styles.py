"""How widgets of `allot top` are arranged, in the colors of the terminal."""

from __future__ import annotations

from typing import Final

CSS: Final = """
Screen { background: ansi_default; color: ansi_default; layout: vertical; }
TextView, RowTable, FloorPlanView, ScrolledText {
    background: ansi_default; color: ansi_default; scrollbar-size: 0 1; overflow-x: hidden;
    scrollbar-gutter: stable;
    scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black;
}
#status, #tabs, #summary, #keys, #title { height: 1; scrollbar-size: 0 0; }
#views { height: 1fr; padding: 0 1; background: ansi_default; }
#views > * { height: 1fr; }
.ascii TextView, .ascii RowTable, .ascii FloorPlanView { scrollbar-size: 0 0; }
.ascii #cause { border-top: ascii ansi_bright_black; }
#pending RowTable { height: 2fr; }
#cause { height: 3fr; border-top: solid ansi_bright_black; }
#pending { layout: vertical; background: ansi_default; }
#details { height: 2; padding: 0 1; scrollbar-size: 0 0; }
#search { height: 1; border: none; padding: 0 1; background: ansi_default; color: ansi_default; display: none; }
#search:focus { border: none; }
#search.open { display: block; }
#text { height: 1fr; padding: 1 2; }
"""
