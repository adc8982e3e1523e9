"""The picture in docs/top.md: `python docs/images/top.py` writes top.svg beside it.

Starts a cluster, runs `allot top` in a window of tmux (`apt install tmux`), and draws its screen as record.py does.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from example_cluster import PROGRAM, running_cluster, workload
from record import framed, pieces
from rich.text import Text

COLUMNS, ROWS = 88, 18
HARDWARE: Final = ("gpu-server=4", "mig-server=2", "shared-nic=2", "fabric=1")
TITLE: Final = "A terminal: allot top shows the devices of a cluster by node"
EXPECTED: Final = ("3 waiting", "1 tainted", "2 shared", "2 Pending 7", "live")
"""What is on the screen when all pods were tried."""
KEYS: Final = ("Down",) * 4 + ("Right",) * 2
MAX_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.2


def workloads() -> list[dict[str, Any]]:
    return [
        *workload("training", "llm", 2, "gpu.example.com", 8),
        *workload("inference", "chat", 7, "gpu.example.com"),
        *workload("notebooks", "jupyter", 5, "mig.example.com"),
        *workload("edge", "stream", 5, "shared-nic.example.com", bandwidth="17G"),
        *workload("research", "simulation", 3, "fabric.example.com"),
        *workload("training", "fine-tuning", 4, "gpu.example.com", 9),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "broken-fan"},
            "spec": {
                "deviceSelector": {"pool": "gpu-server-3", "device": "gpu-7"},
                "taint": {"key": "example.com/broken-fan", "effect": "NoSchedule"},
            },
        },
    ]


class Window:
    """A window of tmux."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def run(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._directory / "tmux"), "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603

    def wait_for(self, texts: Sequence[str]) -> None:
        deadline = time.monotonic() + MAX_SECONDS
        while missing := [
            each for each in texts if each not in (screen := self.run("capture-pane", "-p"))
        ]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{missing} not on the screen:\n{screen}")
            time.sleep(POLL_SECONDS)


@contextmanager
def window(directory: Path, command: Sequence[str]) -> Iterator[Window]:
    """A window in which the command runs."""
    found = Window(directory)
    line = shlex.join(["env", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", *command])
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    found.run("new-session", "-d", *size, "-c", str(directory), line)
    try:
        yield found
    finally:
        found.run("kill-server")


def screen() -> str:
    """The screen of `allot top`, with escape sequences for colors."""
    with (
        running_cluster(HARDWARE, workloads()) as cluster,
        window(cluster.directory, [*PROGRAM, "top"]) as terminal,
    ):
        terminal.wait_for(EXPECTED)
        for key in KEYS:
            terminal.run("send-keys", key)
        time.sleep(2.0)  # drawn
        return terminal.run("capture-pane", "-p", "-e")


def draw(styled: str) -> str:
    """The SVG of a screen."""
    text = Text.from_ansi(styled.rstrip("\n"))
    lines = text.split("\n", allow_blank=True)
    parts = [piece for row, line in enumerate(lines) for piece in pieces(line, row)]
    return framed(parts, COLUMNS, len(lines), TITLE, text.plain)


def main() -> None:
    Path(__file__).with_name("top.svg").write_text(draw(screen()), encoding="utf-8")


if __name__ == "__main__":
    main()
