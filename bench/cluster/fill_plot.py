"""Draws what `filling` has measured: pods per second, latency and CPU time over the share of devices in use, as SVG.

Run it with `./scripts/bench cluster/fill_plot OUT.svg FILE...`, with the JSON of a run for each number of nodes. Scales multiply.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from plots import GAP, HEIGHT, LEFT, RIGHT, TOP, Scale, beginning, shown  # type: ignore[import-not-found]

WIDTH: Final = 560
LABELS: Final = 92
"""Space at the right for the names of lines."""
LINES: Final = """
polyline.allot, polyline.kubernetes { fill: none; stroke-width: 2 }
polyline.allot { stroke: #1f6fb4 } polyline.kubernetes { stroke: #d9730d }
@media (prefers-color-scheme: dark) { polyline.allot { stroke: #58a6ff } polyline.kubernetes { stroke: #f0883e } }
"""
DASHES: Final = ("none", "6 4", "2 3")
Batch = Mapping[str, Any]


class Panel(NamedTuple):
    title: str
    column: str


PANELS: Final = (
    Panel("Pods bound per second (more is better)", "pods_per_s"),
    Panel("Seconds from created to bound, p99 (less is better)", "p99_s"),
    Panel("CPU milliseconds per pod (less is better)", "cpu_ms"),
)


class Line(NamedTuple):
    """One cluster of one size: its batches by fill, several where runs were repeated."""

    cluster: str
    nodes: int
    batches: Mapping[float, Sequence[Batch]]

    def points(self, column: str) -> list[tuple[float, float]]:
        return [
            (fill, statistics.median(batch[column] for batch in batches))
            for fill, batches in sorted(self.batches.items())
        ]


def lines_of(batches: Sequence[Batch]) -> list[Line]:
    found: dict[tuple[str, int], dict[float, list[Batch]]] = defaultdict(lambda: defaultdict(list))
    for batch in batches:
        found[batch["cluster"], batch["nodes"]][batch["fill"]].append(batch)
    return [Line(*key, by_fill) for key, by_fill in sorted(found.items())]


def drawn(lines: Sequence[Line], title: str) -> str:
    sizes = sorted({line.nodes for line in lines})
    titles = [panel.title for panel in PANELS]
    parts = [*beginning(title, titles, "a line for each cluster and size", WIDTH)]
    parts.append(f"<style>{LINES}</style>")
    for number, panel in enumerate(PANELS):
        parts += panel_of(panel, lines, sizes, TOP + number * (HEIGHT + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel_of(panel: Panel, lines: Sequence[Line], sizes: list[int], top: int) -> Iterator[str]:
    values = [value for line in lines for _, value in line.points(panel.column)]
    bottom, right = top + 18 + HEIGHT, WIDTH - RIGHT - LABELS

    def x(fill: float) -> float:
        return float(LEFT + 10 + fill * (right - LEFT - 20))

    scale = Scale(values, bottom)
    yield f'<text x="{LEFT}" y="{top + 8}">{escape(panel.title)}</text>'
    yield from scale.grid(right)
    for fill in sorted({fill for line in lines for fill in line.batches}):
        yield f'<text x="{x(fill):.1f}" y="{bottom + 14}" text-anchor="middle">{fill:.0%}</text>'
    yield f'<text x="{x(0.5):.1f}" y="{bottom + 28}" text-anchor="middle">of the devices are taken</text>'
    labels: list[float] = []
    for line in lines:
        points = line.points(panel.column)
        dash = DASHES[sizes.index(line.nodes) % len(DASHES)]
        places = " ".join(f"{x(fill):.1f},{scale.y(value):.1f}" for fill, value in points)
        yield f'<polyline class="{line.cluster}" stroke-dasharray="{dash}" points="{places}"/>'
        at = free_place(scale.y(points[-1][1]) + 3, labels)
        text = f"{shown(points[-1][1])}, {line.nodes} nodes"
        yield f'<text class="value" x="{x(points[-1][0]) + 6:.1f}" y="{at:.1f}">{text}</text>'
    yield f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'


def free_place(wanted: float, taken: list[float], apart: float = 10.0) -> float:
    """The height of a label that does not cover others, which is taken from now on."""
    found = wanted
    while any(abs(found - other) < apart for other in taken):
        found += 1.0
    taken.append(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("measured", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    batches = [batch for file in options.measured for batch in json.loads(file.read_text())]
    title = "allot up and Kubernetes from empty to full"
    options.out.write_text(drawn(lines_of(batches), title))


if __name__ == "__main__":
    main()
