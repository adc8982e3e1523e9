"""Records the terminal at the top of README.md: `python docs/images/record.py` writes recording.svg beside it.

Runs the commands of `SESSION` with the `allot` of this environment and with kubectl, in a temporary directory, and draws
what they print. The picture plays once; where animation is not supported or not wanted, all of it is shown. It is
readable on light and dark pages and needs no font but the reader's.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS, ROWS = 100, 50
SESSION: Final = {
    "allot up --detach": 4,
    "allot status --by class": 10,
    "kubectl apply -f training.yaml": 10,
    "allot explain pod/training": 14,
}
"""Commands, and how many lines of their output are shown."""
LAST: Final = "allot down"
"""Run after the session, and not shown."""
FILES: Final = {
    "training.yaml": """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: three-gpus-one-nic}
spec:
  devices:
    requests:
    - {name: gpus, exactly: {deviceClassName: gpu.example.com, count: 3}}
    - {name: nic, exactly: {deviceClassName: rdma.example.com}}
    constraints:
    - matchAttribute: resource.kubernetes.io/pcieRoot
---
apiVersion: v1
kind: Pod
metadata: {name: training}
spec:
  resourceClaims: [{name: devices, resourceClaimName: three-gpus-one-nic}]
  containers:
  - {name: main, image: example.com/training, resources: {claims: [{name: devices}]}}
"""
}
CUT: Final = "…"
USUAL_ADDRESS: Final = "127.0.0.1:6443"
SETTLE_SECONDS: Final = 3.0
"""Between commands, as for a person who types."""

# --- drawing ---

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE = 7.8, 18.0, 13
MARGIN, TITLE_HEIGHT = 16.0, 34.0
TYPING_SECONDS, READING_SECONDS, SECONDS_PER_LINE = 0.9, 1.2, 0.12
COLORS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
STYLE: Final = """
  svg { --card: #ffffff; --edge: #c9d1d9; --bar: #f3f5f8; --ink: #1f2328; --dim: #59636e; --red: #cf222e;
        --green: #1a7f37; --yellow: #7d4e00; --blue: #0969da; --magenta: #8250df; --cyan: #1b7c83; }
  @media (prefers-color-scheme: dark) {
    svg { --card: #161b22; --edge: #444c56; --bar: #21262d; --ink: #e6edf3; --dim: #9198a1; --red: #f85149;
          --green: #3fb950; --yellow: #d29922; --blue: #58a6ff; --magenta: #bc8cff; --cyan: #39c5cf; } }
  .card { fill: var(--card); stroke: var(--edge); } .bar { fill: var(--bar); } .dot { fill: var(--edge); }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--ink); white-space: pre; }
  .bold { font-weight: 700; } .dim { fill: var(--dim); } .black, .white, .back { fill: var(--ink); }
  .red { fill: var(--red); } .green { fill: var(--green); } .yellow { fill: var(--yellow); }
  .blue { fill: var(--blue); } .magenta { fill: var(--magenta); } .cyan { fill: var(--cyan); }
  .reverse { fill: var(--card); }
  @media (prefers-reduced-motion: no-preference) { .later { animation: show 0.01s both; } }
  @keyframes show { from { opacity: 0; } }
"""


class Recorded(NamedTuple):
    """A command and what it printed, with escape sequences for colors."""

    command: str
    output: str


def draw(recorded: Sequence[Recorded]) -> str:
    """The SVG of a session."""
    parts: list[str] = []
    row = 0
    now = 0.4
    for command, output in recorded:
        prompt = Text.assemble(("$ ", "green"), (command, "bold"))
        parts.append(_group([prompt], row, now))
        row += 1
        lines = screen_lines(output, SESSION.get(command, ROWS))
        if lines:
            now += TYPING_SECONDS
            parts.append(_group(lines, row, now))
            row += len(lines)
        row += 1
        now += READING_SECONDS + SECONDS_PER_LINE * len(lines)
    title = "A terminal: allot starts a cluster and explains why a pod is pending"
    description = "\n".join(f"$ {each.command}" for each in recorded)
    return framed(parts, COLUMNS, row - 1, title, description)


def framed(parts: Iterable[str], columns: int, rows: int, title: str, description: str) -> str:
    """The SVG of a window that has these parts."""
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = TITLE_HEIGHT + rows * LINE_HEIGHT + 2 * MARGIN
    dots = "".join(f'<circle class="dot" cx="{20 + 18 * n}" cy="17" r="5.5"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" role="img">\n<title>{title}</title><desc>{escape(description)}</desc>\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="10"/>\n'
        f'<path class="bar" d="M1 {TITLE_HEIGHT:g}V11A10 10 0 0 1 11 1H{width - 11:g}'
        f'A10 10 0 0 1 {width - 1:g} 11V{TITLE_HEIGHT:g}z"/>{dots}\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def screen_lines(output: str, limit: int) -> list[Text]:
    """The lines as a terminal of `COLUMNS` shows them; what is longer than the limit ends with `CUT`."""
    console = Console(width=COLUMNS, file=StringIO())
    text = Text("\n").join(
        Text.from_ansi(line) for line in output.replace("\r\n", "\n").strip("\n").split("\n")
    )
    lines = (
        [line for each in text.split("\n") for line in each.wrap(console, COLUMNS)] if text else []
    )
    for line in lines:
        line.rstrip()
    return lines if len(lines) <= limit else [*lines[: limit - 1], Text(CUT)]


def _group(lines: Sequence[Text], row: int, seconds: float) -> str:
    drawn = "\n".join(
        piece for number, line in enumerate(lines, row) for piece in pieces(line, number)
    )
    return f'<g class="later" style="animation-delay: {seconds:.1f}s">\n{drawn}\n</g>'


def pieces(line: Text, row: int) -> Iterator[str]:
    """The pieces of a line in one style each, as wide as their columns whatever the font."""
    y = TITLE_HEIGHT + MARGIN + FONT_SIZE + row * LINE_HEIGHT
    column = 0
    for segment in line.render(Console(width=COLUMNS), end=""):
        if segment.style is not None and segment.style.reverse:
            name = " ".join(("back", *_colors(segment.style)))
            yield (
                f'<rect x="{MARGIN + column * CELL_WIDTH:g}" y="{y - FONT_SIZE:g}" class="{name}"'
                f' width="{cell_len(segment.text) * CELL_WIDTH:g}" height="{LINE_HEIGHT:g}"/>'
            )
        for word in re.findall(r"\S+(?: \S+)*|\s+", segment.text):
            width = cell_len(word)
            if not word.isspace():
                x = MARGIN + column * CELL_WIDTH
                name = " ".join(_classes(segment.style))
                kind = f' class="{name}"' if name else ""
                yield (
                    f'<text x="{x:g}" y="{y:g}" textLength="{width * CELL_WIDTH:g}"{kind}>'
                    f"{escape(word, quote=False)}</text>"
                )
            column += width


def _classes(style: Style | None) -> Iterator[str]:
    if style is None:
        return
    if style.bold:
        yield "bold"
    if style.reverse:
        yield "reverse"
    else:
        yield from _colors(style)


def _colors(style: Style) -> Iterator[str]:
    number = style.color.number if style.color is not None else None
    if number is not None and number < 2 * len(COLORS):
        yield COLORS[number % len(COLORS)]
    elif style.dim:
        yield "dim"


# --- recording ---


def record(directory: Path) -> list[Recorded]:
    """Run the session in the directory."""
    for name, content in FILES.items():
        (directory / name).write_text(content)
    programs = directory / ".bin"
    programs.mkdir()
    allot = programs / "allot"
    real = Path(sys.executable).parent / "allot"
    allot.write_text(f'#!/bin/sh\n[ "$1" = up ] && set -- "$@" --port 0\nexec {real} "$@"\n')
    allot.chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(directory),
        "KUBECONFIG": str(directory / ".allot" / "kubeconfig"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    recorded = []
    try:
        for command in SESSION:
            printed = _printed(command, directory, environment)
            printed = re.sub(r"127\.0\.0\.1:\d+", USUAL_ADDRESS, printed)
            recorded.append(Recorded(command, printed.replace(f"{directory}/", "")))
            time.sleep(SETTLE_SECONDS)
    finally:
        _printed(LAST, directory, environment)
    return recorded


def _printed(command: str, directory: Path, environment: dict[str, str]) -> str:
    """What the command prints in a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S603 - the commands above
        ["bash", "-c", command],  # noqa: S607
        cwd=directory,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        chunks = []
        while chunk := _read(ours):
            chunks.append(chunk)
        os.close(ours)
    if process.returncode:
        raise SystemExit(f"{command}: exit code {process.returncode}\n{b''.join(chunks).decode()}")
    return b"".join(chunks).decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has the terminal open any more
        return b""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        svg = draw(record(Path(directory)))
    Path(__file__).with_name("recording.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
