"""Draws the pictures of the five features: `python docs/images/draw.py` writes the SVG files beside it.

Each is readable on light and dark pages, with a background of its own, and needs no font but the reader's.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

STYLE: Final = """
  svg { --card: #ffffff; --edge: #c9d1d9; --ink: #1f2328; --dim: #59636e; --box: #f3f5f8;
        --good: #1a7f37; --good-box: #dafbe1; --bad: #cf222e; --bad-box: #ffebe9;
        --one: #0969da; --one-box: #ddf4ff; --two: #8250df; --two-box: #fbefff; }
  @media (prefers-color-scheme: dark) {
    svg { --card: #161b22; --edge: #444c56; --ink: #e6edf3; --dim: #9198a1; --box: #21262d;
          --good: #3fb950; --good-box: #12331c; --bad: #f85149; --bad-box: #3c1618;
          --one: #58a6ff; --one-box: #10294a; --two: #bc8cff; --two-box: #2a1c48; } }
  text { font: 14px system-ui, sans-serif; fill: var(--ink); }
  .dim { fill: var(--dim); font-size: 13px; } .code { font: 13px ui-monospace, monospace; }
  .good { fill: var(--good); } .bad { fill: var(--bad); } .one { fill: var(--one); } .two { fill: var(--two); }
  .strong { font-weight: 600; }
  .card { fill: var(--card); stroke: var(--edge); } .box { fill: var(--box); stroke: var(--edge); }
  .box-good { fill: var(--good-box); stroke: var(--good); } .box-bad { fill: var(--bad-box); stroke: var(--bad); }
  .box-one { fill: var(--one-box); stroke: var(--one); } .box-two { fill: var(--two-box); stroke: var(--two); }
  .box-free { fill: var(--card); stroke: var(--dim); stroke-dasharray: 4 3; }
  .line { stroke: var(--dim); stroke-width: 1.5; fill: none; marker-end: url(#tip); }
  .plain { stroke: var(--edge); stroke-width: 1.5; } .tip { fill: var(--dim); }
"""
ARROW_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)
WIDTH: Final = 760


class Drawing:
    """A picture under construction; coordinates are pixels from the upper left corner."""

    def __init__(self, name: str, title: str, description: str, height: int) -> None:
        self._name = name
        self._height = height
        self._parts = [
            f"<title>{escape(title)}</title><desc>{escape(description)}</desc>",
            f"<style>{STYLE}</style>",
            ARROW_TIP,
        ]
        self.box(0.5, 0.5, WIDTH - 1, height - 1, "card", radius=10)

    def box(
        self, x: float, y: float, width: float, height: float, kind: str = "box", radius: int = 6
    ) -> None:
        self._parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'
        )

    def say(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        self._parts.append(
            f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def labelled(
        self, x: float, y: float, width: float, height: float, words: str, kind: str, text: str = ""
    ) -> None:
        self.box(x, y, width, height, kind)
        self.say(x + width / 2, y + height / 2 + 5, words, text, "middle")

    def arrow(self, *points: tuple[float, float], kind: str = "line") -> None:
        path = " ".join(f"{x} {y}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="M{path}"/>')

    def write(self, directory: Path) -> None:
        size = f'viewBox="0 0 {WIDTH} {self._height}" width="{WIDTH}" height="{self._height}"'
        body = "\n".join(self._parts)
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{body}\n</svg>\n'
        (directory / f"{self._name}.svg").write_text(svg, encoding="utf-8")


def prioritized_list() -> Drawing:
    drawing = Drawing(
        "prioritized-list",
        "Alternatives are tried in order",
        "A request with three alternatives. The first finds no device, the second is allocated,"
        " the third is not tried.",
        250,
    )
    drawing.say(24, 34, "request gpu, firstAvailable", "strong")
    rows = (
        ("1", "B200", "box-bad", "no such device", "bad"),
        ("2", "H100", "box-good", "allocated", "good"),
        ("3", "two A100", "box-free", "not tried", "dim"),
    )
    for number, (rank, wish, box, result, word) in enumerate(rows):
        y = 52 + number * 62
        drawing.box(24, y, 250, 46, box)
        drawing.say(42, y + 28, rank, "strong")
        drawing.say(68, y + 28, wish, "code")
        drawing.say(262, y + 28, result, word, "end")
        if number:
            drawing.arrow((149, y - 15), (149, y - 2))
    drawing.say(478, 34, "node gpu-server-0", "strong")
    drawing.box(478, 52, 258, 108)
    for device in range(4):
        kind = "box-good" if device == 0 else "box-free"
        drawing.labelled(494 + device * 60, 70, 50, 34, "H100", kind, "code")
        drawing.say(519 + device * 60, 124, f"gpu-{device}", "dim", "middle")
    drawing.arrow((274, 137), (430, 137), (430, 87), (490, 87))
    drawing.say(494, 148, "first device that fits", "dim")
    drawing.say(478, 200, "result: gpu/2, device gpu-0", "code")
    drawing.say(478, 222, "a better alternative scores higher", "dim")
    return drawing


def consumable_capacity() -> Drawing:
    drawing = Drawing(
        "consumable-capacity",
        "Shares of a device",
        "A network card of 200 Gbit/s and 32 virtual functions. Claims hold 40 and 100 Gbit/s and"
        " one function each; 60 Gbit/s and 30 functions are available. A third claim for 80 waits.",
        270,
    )
    drawing.say(24, 34, "device nic-0, allowMultipleAllocations: true", "strong")
    drawing.say(24, 72, "bandwidth", "code")
    scale = 560 / 200
    shares = (
        (40, "claim a: 40G", "box-one"),
        (100, "claim b: 100G", "box-two"),
        (60, "60G available", "box-free"),
    )
    x = 170.0
    for amount, words, kind in shares:
        drawing.labelled(x, 52, amount * scale, 34, words, kind)
        x += amount * scale
    drawing.say(170, 104, "0", "dim")
    drawing.say(730, 104, "200G", "dim", "end")
    drawing.say(24, 146, "virtualFunctions", "code")
    for number in range(32):
        kind = "box-one" if number == 0 else "box-two" if number == 1 else "box-free"
        drawing.box(170 + number * 17.5, 128, 13, 26, kind, radius=3)
    drawing.say(730, 172, "30 of 32 available", "dim", "end")
    drawing.labelled(24, 204, 220, 42, "claim c: bandwidth 80G", "box-bad")
    drawing.arrow((244, 225), (300, 225))
    drawing.say(312, 222, "not on nic-0: 60G of 80G available", "bad")
    drawing.say(312, 242, "the request policy rounds up or sets the default", "dim")
    return drawing


def binding_conditions() -> Drawing:
    drawing = Drawing(
        "binding-conditions",
        "The timeline of a binding condition",
        "The scheduler allocates and waits, a controller attaches the device and sets the condition,"
        " then the pod is bound. On failure or timeout the allocation is released.",
        330,
    )
    lanes = (("scheduler", 70), ("controller", 140), ("kubelet", 210))
    for name, y in lanes:
        drawing.say(24, y + 5, name, "strong")
        drawing.arrow((120, y), (736, y), kind="plain")
    drawing.labelled(130, 52, 130, 36, "allocate, write", "box-one")
    drawing.labelled(270, 52, 250, 36, "wait: pod not bound", "box-free")
    drawing.labelled(530, 52, 70, 36, "bind", "box-good")
    drawing.labelled(280, 122, 150, 36, "attach the device", "box-two")
    drawing.labelled(440, 122, 80, 36, "True", "box-good", "code")
    drawing.labelled(620, 192, 110, 36, "pod runs", "box-good")
    drawing.arrow((260, 88), (280, 120))
    drawing.arrow((500, 120), (528, 90))
    drawing.arrow((600, 88), (640, 190))
    drawing.say(130, 44, "status.allocation", "dim")
    drawing.say(440, 176, "condition is-attached", "dim")
    drawing.say(24, 268, "otherwise:", "strong")
    drawing.labelled(120, 250, 270, 34, "a failure condition is True, or timeout", "box-bad")
    drawing.arrow((390, 267), (414, 267))
    drawing.labelled(420, 250, 310, 34, "release devices, schedule the pod again", "box")
    drawing.say(120, 312, "the pod avoids devices that failed for it, each time longer", "dim")
    return drawing


def pool_status() -> Drawing:
    drawing = Drawing(
        "pool-status",
        "A pool and its counts",
        "A pool of eight devices, five allocated, two available, one unavailable because of a taint."
        " A ResourcePoolStatusRequest returns these counts.",
        240,
    )
    drawing.say(24, 34, "pool gpu-server-0, driver gpu.example.com", "strong")
    kinds = ["box-one"] * 5 + ["box-free"] * 2 + ["box-bad"]
    for number, kind in enumerate(kinds):
        drawing.labelled(24 + number * 48, 52, 40, 40, str(number), kind, "code")
    drawing.say(24, 116, "allocated", "one")
    drawing.say(264, 116, "available", "dim")
    drawing.say(360, 116, "tainted", "bad")
    drawing.arrow((412, 72), (468, 72))
    drawing.say(476, 34, "ResourcePoolStatusRequest", "strong")
    drawing.box(476, 46, 260, 166)
    drawing.say(492, 70, "status.pools[0]", "code")
    counts = (
        ("totalDevices", "8"),
        ("allocatedDevices", "5"),
        ("availableDevices", "2"),
        ("unavailableDevices", "1"),
    )
    for row, (name, count) in enumerate(counts):
        drawing.say(492, 98 + row * 26, name, "code")
        drawing.say(722, 98 + row * 26, count, "code strong", "end")
    drawing.say(492, 202, "counts, never claim names", "dim")
    drawing.say(24, 168, "Created by a user with the role for it, answered once", "dim")
    drawing.say(24, 190, "by the controller, deleted when it is old.", "dim")
    return drawing


def derived_attributes() -> Drawing:
    drawing = Drawing(
        "derived-attributes",
        "Attributes that are derived and matched",
        "The GPU publishes a NUMA node as a number, network cards as part of a string. Expressions"
        " derive the same attribute from both, and a constraint matches it.",
        280,
    )
    drawing.say(24, 34, "published", "strong")
    drawing.say(310, 34, "derived by CEL, per request", "strong")
    drawing.say(600, 34, "matchAttribute", "strong")
    rows = (
        ("gpu-0", "numaNode: 1", "device.attributes[…].numaNode", "numa = 1", "box-good"),
        ("nic-0", 'topology: "n0-s4"', "int(topology.substring(1, 2))", "numa = 0", "box-bad"),
        ("nic-1", 'topology: "n1-s7"', "int(topology.substring(1, 2))", "numa = 1", "box-good"),
    )
    for number, (device, published, expression, value, kind) in enumerate(rows):
        y = 52 + number * 66
        drawing.box(24, y, 220, 50)
        drawing.say(36, y + 21, device, "strong")
        drawing.say(36, y + 40, published, "code")
        drawing.arrow((244, y + 25), (296, y + 25))
        drawing.say(310, y + 21, expression, "code")
        drawing.say(310, y + 40, "computed while devices are picked", "dim")
        drawing.arrow((552, y + 25), (594, y + 25))
        drawing.labelled(600, y + 6, 136, 38, value, kind, "code")
    drawing.say(24, 264, "gpu-0 and nic-1 are allocated together: both have numa = 1.", "good")
    return drawing


def main() -> None:
    directory = Path(__file__).parent
    for draw in (
        prioritized_list,
        consumable_capacity,
        binding_conditions,
        pool_status,
        derived_attributes,
    ):
        draw().write(directory)


if __name__ == "__main__":
    main()
