"""Draws what was measured of allot and of Kubernetes side by side: pods per second, latency and CPU time, as SVG.

Run it with `./scripts/bench cluster/plots OUT.svg NODES=FILE...`, with the JSON of a comparison for each number of nodes: by variant the
runs of `allot` and of `kubernetes`, each with `pods`, `pods_per_s`, `p99_s` and `cpu_s` by process. Bars are medians, on
a scale that multiplies.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

LOAD: Final = "harness"
"""The process that creates the pods, which counts for neither."""
LEFT, RIGHT, TOP, HEIGHT, GAP = 52, 12, 56, 150, 62
BAR, SPACE = 18, 34
MIN_WIDTH: Final = 460
STYLE: Final = """
text { font: 12px sans-serif; fill: #24292f } .title { font-weight: bold; font-size: 14px }
.axis { stroke: #8c959f } .grid { stroke: #d0d7de } .background { fill: #ffffff }
.allot { fill: #1f6fb4 } .kubernetes { fill: #d9730d } .value { font-size: 9px }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { stroke: #7d8590 } .grid { stroke: #30363d } .background { fill: #0d1117 }
  .allot { fill: #58a6ff } .kubernetes { fill: #f0883e }
}
"""
Run = Mapping[str, Any]


class Panel(NamedTuple):
    title: str
    value: Callable[[Run], float]


def cpu_milliseconds(run: Run) -> float:
    seconds = sum(spent for name, spent in run["cpu_s"].items() if name != LOAD)
    return float(1e3 * seconds / run["pods"])


PANELS: Final = (
    Panel("Pods bound per second (more is better)", lambda run: float(run["pods_per_s"])),
    Panel("Seconds from created to bound, p99 (less is better)", lambda run: float(run["p99_s"])),
    Panel("CPU milliseconds per pod (less is better)", cpu_milliseconds),
)


class Group(NamedTuple):
    """Two bars."""

    nodes: str
    variant: str
    allot: Sequence[Run]
    kubernetes: Sequence[Run]


def groups_in(nodes: str, path: Path) -> Iterator[Group]:
    for variant, runs in json.loads(path.read_text()).items():
        yield Group(nodes, variant, runs["allot"], runs["kubernetes"])


def drawn(groups: Sequence[Group], title: str) -> str:
    width = max(LEFT + len(groups) * (2 * BAR + SPACE) + RIGHT, MIN_WIDTH)
    titles = [panel.title for panel in PANELS]
    parts = [*beginning(title, titles, "a pair of bars for each variant", width)]
    for number, panel in enumerate(PANELS):
        parts += panel_of(panel, groups, TOP + number * (HEIGHT + GAP), width)
    return "\n".join([*parts, "</svg>"]) + "\n"


def beginning(title: str, panels: Sequence[str], marks: str, width: int) -> Iterator[str]:
    """The start of a drawing with panels below each other: its style, title and legend."""
    height = TOP + len(panels) * (HEIGHT + GAP)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    yield f"<title>{escape(title)}</title>"
    yield f"<desc>{escape('; '.join(panels))}: {marks}</desc>"
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="background" width="{width}" height="{height}"/>'
    yield f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>'
    yield f'<rect class="allot" x="{LEFT}" y="29" width="12" height="9"/>'
    yield f'<text x="{LEFT + 18}" y="38">allot</text>'
    yield f'<rect class="kubernetes" x="{LEFT + 70}" y="29" width="12" height="9"/>'
    yield f'<text x="{LEFT + 88}" y="38">Kubernetes v1.38</text>'


class Scale:
    """Heights of values between two powers of ten, and the lines that show it."""

    def __init__(self, values: Sequence[float], bottom: int) -> None:
        # The lowest bar is to be seen, too.
        self._low = math.floor(math.log10(max(min(values) / 2, 1e-3)))
        self._high = math.ceil(math.log10(max(*values, 10 ** (self._low + 1))))
        self._bottom = bottom

    def y(self, value: float) -> float:
        share = (math.log10(max(value, 10**self._low)) - self._low) / (self._high - self._low)
        return self._bottom - share * HEIGHT

    def grid(self, right: int) -> Iterator[str]:
        for power in range(self._low, self._high + 1):
            at = self.y(10.0**power)
            yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'


def panel_of(panel: Panel, groups: Sequence[Group], top: int, width: int) -> Iterator[str]:
    values = [
        (
            statistics.median(map(panel.value, group.allot)),
            statistics.median(map(panel.value, group.kubernetes)),
        )
        for group in groups
    ]
    known = [value for pair in values for value in pair]
    bottom = top + 18 + HEIGHT
    scale = Scale(known, bottom)
    yield f'<text x="{LEFT}" y="{top + 8}">{escape(panel.title)}</text>'
    yield from scale.grid(width - RIGHT)
    for number, (group, pair) in enumerate(zip(groups, values, strict=True)):
        x = LEFT + SPACE // 2 + number * (2 * BAR + SPACE)
        for offset, (name, value) in enumerate(zip(("allot", "kubernetes"), pair, strict=True)):
            left, at = x + offset * BAR, scale.y(value)
            yield (
                f'<rect class="{name}" x="{left}" y="{at:.1f}" width="{BAR - 1}" '
                f'height="{bottom - at:.1f}"/>'
            )
            yield (
                f'<text class="value" x="{left + BAR / 2}" y="{at - 3:.1f}" '
                f'text-anchor="middle">{shown(value)}</text>'
            )
        yield f'<text x="{x + BAR}" y="{bottom + 14}" text-anchor="middle">{group.variant}</text>'
        yield f'<text x="{x + BAR}" y="{bottom + 28}" text-anchor="middle">{group.nodes} nodes</text>'
    yield f'<line class="axis" x1="{LEFT}" x2="{width - RIGHT}" y1="{bottom}" y2="{bottom}"/>'


def shown(value: float) -> str:
    digits = 0 if value >= 10 else 1 if value >= 0.1 else 2
    return f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("measured", nargs="+", metavar="NODES=FILE")
    options = parser.parse_args()
    groups: list[Group] = []
    for argument in options.measured:
        nodes, _, file = argument.partition("=")
        groups += groups_in(nodes, Path(file))
    title = "allot up and Kubernetes on the same two cores"
    options.out.write_text(drawn(groups, title))


if __name__ == "__main__":
    main()
