"""Pictures of the dashboard: `python docs/images/dashboard.py [DIRECTORY]` writes dashboard.png beside it, and all views.

Starts a cluster with `allot up`, runs workloads of several teams in it, and photographs the page with Chromium
(`apt install chromium`). With a directory, every view is written there, in both themes and in two widths.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any, Final

from example_cluster import RunningCluster, running_cluster, workload
from playwright.sync_api import Page, sync_playwright

HERE: Final = Path(__file__).resolve().parent
CHROMIUM: Final = "/usr/bin/chromium"
HARDWARE: Final = ("gpu-server=14", "mig-server=5", "shared-nic=6", "fabric=4")
FIRST: Final = "fetch('/api/objects?kind={kind}').then(answer => answer.json()).then(found => found.rows[0].{one})"
VIEWS: Final = {
    "floor": "#/floor",
    "pending": "#/pending",
    "objects": "#/objects",
    "claims": "#/objects?kind=claims",
    "what-if": '#/what-if?changes=[["add","gpu-server=2"],["drain","gpu-server-3"]]',
    "time": "#/time",
    "cel": '#/cel?expression=device.attributes["gpu.example.com"].model == "H100"',
    "device": "#/device/gpu.example.com/gpu-server-0/gpu-0",
}


def workloads() -> list[dict[str, Any]]:
    return [
        *workload("training", "llm", 5, "gpu.example.com", 8),
        *workload("research", "protein-folding", 9, "gpu.example.com", 2),
        *workload("inference", "chat", 17, "gpu.example.com"),
        *workload("batch", "rendering", 4, "gpu.example.com", 3),
        *workload("vision", "segmentation", 9, "mig.example.com"),
        *workload("notebooks", "jupyter", 3, "mig-whole.example.com"),
        *workload("edge", "stream", 22, "shared-nic.example.com", bandwidth="17G"),
        *workload("training", "fine-tuning", 2, "gpu.example.com", 9),
    ]


def address(cluster: RunningCluster) -> str:
    """The address of its dashboard."""
    return next(
        found[1] for line in cluster.said if (found := re.search(r"Dashboard: (\S+)", line))
    )


def wait_for(page: Page, condition: str, seconds: float = 60.0) -> None:
    """Wait until an expression is true. The page's policy forbids what Playwright would do itself."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(0.05)


def views_of(page: Page) -> dict[str, str]:
    """The views, with a claim and a pod of the cluster."""
    claim = page.evaluate(FIRST.format(kind="claims", one="claim"))
    pod = page.evaluate(FIRST.format(kind="pods", one="pod"))
    return VIEWS | {"claim": f"#/claim/{claim}", "pod": f"#/pod/{pod}"}


def photograph(page: Page, path: Path, view: str) -> None:
    page.evaluate("view => { location.hash = view; }", view)
    time.sleep(2.5)  # what was asked for has been drawn
    page.screenshot(path=path)


def main() -> None:
    views = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with running_cluster(HARDWARE, workloads()) as cluster, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address(cluster))
        wait_for(page, "window.allot?.isReady && allot.figures && allot.figures.held > 100")
        time.sleep(3.0)
        photograph(page, HERE / "dashboard.png", VIEWS["floor"])
        shown = views_of(page)
        for theme in ("light", "dark") if views is not None else ():
            assert views is not None
            page.evaluate("theme => allot.setTheme(theme)", theme)
            for width, height in ((1600, 1000), (375, 800)):
                page.set_viewport_size({"width": width, "height": height})
                for name, view in shown.items():
                    photograph(page, views / f"{name}-{theme}-{width}.png", view)
        browser.close()


if __name__ == "__main__":
    main()
