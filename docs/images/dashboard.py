"""Pictures of the dashboard: `python docs/images/dashboard.py [DIRECTORY]` writes dashboard.png beside it, and all views.

Starts a cluster with `allot up`, runs workloads of several teams in it, and photographs the page with Chromium
(`apt install chromium`). With a directory, every view is written there, in both themes and in two widths.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from playwright.sync_api import Page, sync_playwright

HERE: Final = Path(__file__).resolve().parent
PROGRAM: Final = (sys.executable, "-c", "from allot.cli.main import run; run()")
CHROMIUM: Final = "/usr/bin/chromium"
HARDWARE: Final = ("gpu-server=14", "mig-server=5", "shared-nic=6", "fabric=4")
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


def workload(
    namespace: str, name: str, replicas: int, class_: str, count: int = 1, **capacity: str
) -> Iterator[dict[str, Any]]:
    """A Deployment whose pods have a claim of their own."""
    exactly: dict[str, Any] = {"deviceClassName": class_, "count": count}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}},
    }
    container = {
        "name": "main", "image": "example.com/app", "resources": {"claims": [{"name": "devices"}]},
    }  # fmt: skip
    claims = [{"name": "devices", "resourceClaimTemplateName": name}]
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], "resourceClaims": claims},
            },
        },
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


@contextmanager
def cluster() -> Iterator[str]:
    """A cluster with these workloads; the address of its dashboard."""
    with tempfile.TemporaryDirectory() as directory:
        manifests = Path(directory) / "workloads.yaml"
        manifests.write_text(yaml.safe_dump_all(workloads()), encoding="utf-8")
        options = [part for each in HARDWARE for part in ("--hardware", each)]
        where = ["--data-dir", f"{directory}/cluster", "--port", "0", "--dashboard-port", "0"]
        command = [*PROGRAM, "up", *where, *options, "-f", str(manifests)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
            assert process.stdout is not None
            try:
                lines = iter(process.stdout.readline, "")
                yield next(
                    found[1] for line in lines if (found := re.search(r"Dashboard: (\S+)", line))
                )
            finally:
                process.terminate()


def wait_for(page: Page, condition: str, seconds: float = 60.0) -> None:
    """Wait until an expression is true. The page's policy forbids what Playwright would do itself."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(0.05)


def photograph(page: Page, path: Path, address: str) -> None:
    page.evaluate("address => { location.hash = address; }", address)
    time.sleep(2.5)  # what was asked for has been drawn
    page.screenshot(path=path)


def main() -> None:
    views = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with cluster() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        wait_for(page, "window.allot?.isReady && allot.figures && allot.figures.held > 100")
        time.sleep(3.0)
        photograph(page, HERE / "dashboard.png", VIEWS["floor"])
        for theme in ("light", "dark") if views is not None else ():
            assert views is not None
            page.evaluate("theme => allot.setTheme(theme)", theme)
            for width, height in ((1600, 1000), (375, 800)):
                page.set_viewport_size({"width": width, "height": height})
                for name, address in VIEWS.items():
                    photograph(page, views / f"{name}-{theme}-{width}.png", address)
        browser.close()


if __name__ == "__main__":
    main()
