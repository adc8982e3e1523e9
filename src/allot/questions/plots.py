"""The course of simulations as SVG: utilisation, waiting pods and fragmentation over time, one line per simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from allot.questions.simulation_figures import Sample

WIDTH: Final = 760
_LEFT, _RIGHT, _TOP, _HEIGHT, _GAP = 64, 32, 44, 130, 46
_COLORS: Final = ("#1f6fb4", "#d9730d", "#2e8b57", "#8e44ad")
_TICKS: Final = 6
"""Labels at most on the axis of time, beside the first."""
_ROUND: Final = (1, 2, 3, 4, 5, 10)
_TOLERANCE: Final = 1e-9
_UNITS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


class _Panel(NamedTuple):
    title: str
    value: Callable[[Sample], float]
    is_share: bool


_PANELS: Final = (
    _Panel("utilisation of devices", lambda sample: sample.utilisation, True),
    _Panel("waiting pods", lambda sample: float(sample.waiting), False),
    _Panel("fragmentation", lambda sample: sample.fragmentation, True),
)


def timeline_svg(timelines: Mapping[str, Sequence[Sample]], title: str) -> str:
    """The drawing; all simulations share the axes."""
    height = _TOP + len(_PANELS) * (_HEIGHT + _GAP)
    end = max((line[-1].seconds for line in timelines.values() if line), default=0.0) or 1.0
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
        *_legend(list(timelines)),
    ]
    for number, panel in enumerate(_PANELS):
        top = _TOP + number * (_HEIGHT + _GAP)
        parts += _drawn(panel, top, timelines, end)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(names: Sequence[str]) -> Iterator[str]:
    if len(names) < 2:
        return
    for number, name in enumerate(names):
        x = WIDTH - _RIGHT - 150 * (len(names) - number)
        color = _COLORS[number % len(_COLORS)]
        yield f'<rect x="{x}" y="11" width="14" height="4" fill="{color}"/>'
        yield f'<text x="{x + 20}" y="18">{escape(name)}</text>'


def _drawn(
    panel: _Panel, top: int, timelines: Mapping[str, Sequence[Sample]], end: float
) -> Iterator[str]:
    width = WIDTH - _LEFT - _RIGHT
    bottom = top + 14 + _HEIGHT
    values = [panel.value(sample) for line in timelines.values() for sample in line]
    most = 1.0 if panel.is_share else max(max(values, default=0.0), 1.0)
    yield f'<text x="{_LEFT}" y="{top + 8}">{escape(panel.title)}</text>'
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _HEIGHT
        label = f"{100 * share:.0f} %" if panel.is_share else f"{share * most:g}"
        yield f'<line x1="{_LEFT}" y1="{y:g}" x2="{_LEFT + width}" y2="{y:g}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end" fill="#555">{label}</text>'
    for seconds, label in _times(end):
        x = _LEFT + seconds / end * width
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{label}</text>'
    for number, line in enumerate(timelines.values()):
        points = _steps(line, panel.value, most, end, width, bottom)
        color = _COLORS[number % len(_COLORS)]
        yield f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{" ".join(points)}"/>'


def _steps(
    line: Sequence[Sample],
    value: Callable[[Sample], float],
    most: float,
    end: float,
    width: int,
    bottom: int,
) -> Iterator[str]:
    """A value holds until the next moment."""
    before: float | None = None
    for sample in line:
        x = _LEFT + sample.seconds / end * width
        y = bottom - min(value(sample) / most, 1.0) * _HEIGHT
        if before is not None:
            yield f"{x:.1f},{before:.1f}"
        yield f"{x:.1f},{y:.1f}"
        before = y


def _times(end: float) -> Iterator[tuple[float, str]]:
    """Round times with labels in a readable unit."""
    size, unit = next((each for each in _UNITS if end >= 3 * each[0]), _UNITS[-1])
    step = _round_step(end / size / _TICKS) * size
    for number in range(int(end / step + _TOLERANCE) + 1):
        yield number * step, f"{number * step / size:g} {unit}"


def _round_step(least: float) -> float:
    """The smallest round number that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * each for each in _ROUND if power * each >= least * (1 - _TOLERANCE))
