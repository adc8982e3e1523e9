"""The dashboard in a real browser, in front of `allot up`: what is seen changes with the cluster."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from allot.testing.manifests import a_claim_manifest, a_pod_manifest, a_request_manifest
from allot.testing.processes import ApiServerProcess
from tests.acceptance.server_process import PROGRAM
from tests.integration.browser import BrowserPage, chromium, needs_chromium, opened

KUBECTL = shutil.which("kubectl")
pytestmark = [
    needs_chromium,
    pytest.mark.skipif(
        KUBECTL is None, reason="kubectl is not on the PATH: pods are created with it"
    ),
    pytest.mark.timeout(600),
]

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
VIEWS = {
    "#/floor": "Devices by state",
    "#/pending": "Pending",
    "#/objects": "Claims and pods",
    "#/objects?kind=claims": "Claims and pods",
    "#/what-if": "What if",
    "#/time": "Over time",
    "#/cel": "CEL playground",
    "#/device/gpu.example.com/gpu-server-0/gpu-0": "gpu-0",
}
TAB_IS_VISIBLE = """(() => {
  const box = document.querySelector("#tabs [aria-current]").getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth + 1;
})()"""


class RunningCluster(NamedTuple):
    """An `allot up` and its dashboard."""

    kubeconfig: Path
    url: str

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """What kubectl prints; it must succeed."""
        assert KUBECTL is not None
        done = subprocess.run(
            [KUBECTL, "--kubeconfig", str(self.kubeconfig), *arguments],
            input=given, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create(self, *objects: dict[str, Any]) -> None:
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("create", "-f", "-", given=json.dumps(manifest))

    def delete(self, *names: str) -> None:
        """Delete objects, named as pod/NAME or resourceclaim/NAME, if they exist."""
        self.kubectl("delete", "--ignore-not-found", "--wait=false", *names)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    directory = tmp_path_factory.mktemp("dashboard") / "cluster"
    where = ["--data-dir", str(directory), "--port", "0", "--dashboard-port", "0"]
    command = [*PROGRAM, "up", *where, "--hardware", "gpu-server=2", "--storage", "memory"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith("Ctrl-C"):
                    break
            address = re.search(r"Dashboard: (\S+)", "".join(said))
            assert address is not None, said
            yield RunningCluster(directory / "kubeconfig", address[1])
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def shared_page(cluster: RunningCluster, browser: Any) -> Iterator[BrowserPage]:
    with opened(browser, cluster.url) as page:
        page.wait_ready()
        yield page


@pytest.fixture
def page(shared_page: BrowserPage) -> Iterator[BrowserPage]:
    """The page, at its start; nothing goes wrong on it during a test."""
    shared_page.problems.clear()
    shared_page.expected = ()
    shared_page.page.set_viewport_size({"width": 1600, "height": 1000})
    shared_page.open("#/floor")
    yield shared_page
    shared_page.check()


def gpu_claim(name: str, count: int = 1) -> dict[str, Any]:
    request = a_request_manifest("gpus", "gpu.example.com", count=count)
    return a_claim_manifest(request, name=name)


def gpu_pod(name: str, claim: str) -> dict[str, Any]:
    container = {"name": "c", "image": "example.com/i", "resources": {"claims": [{"name": "gpus"}]}}
    return a_pod_manifest(name, claims={"gpus": claim}, containers=[container])


@pytest.fixture
def trainer(cluster: RunningCluster) -> Iterator[None]:
    """A pod that holds two GPUs."""
    cluster.create(gpu_claim("two", 2), gpu_pod("trainer", "two"))
    yield
    cluster.delete("pod/trainer", "resourceclaim/two")


@contextmanager
def dashboard_of(kubeconfig: Path) -> Iterator[str]:
    """The address of an `allot dashboard`."""
    options = ["--kubeconfig", str(kubeconfig), "--no-open", "--port", "0"]
    command = [*PROGRAM, "dashboard", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()
            process.wait(60)


def held(page: BrowserPage, count: int) -> None:
    page.wait(
        f"[...allot.floor.devices.values()].filter(each => each.state === 'held').length === {count}"
    )


def test_the_floor_plan_changes_with_the_cluster(
    cluster: RunningCluster, page: BrowserPage
) -> None:
    held(page, 0)
    drawn = page.page.evaluate("allot.plan.canvas.toDataURL()")

    cluster.create(gpu_claim("four", 4), gpu_pod("worker", "four"))
    held(page, 4)
    page.wait("allot.plan.painter.drawn.count > 1")
    page.wait_for_text("held", "a claim holds it")
    assert page.page.evaluate("allot.plan.canvas.toDataURL()") != drawn
    cluster.delete("pod/worker", "resourceclaim/four")
    held(page, 0)


@pytest.mark.usefixtures("trainer")
def test_from_a_pod_to_its_claim_and_device_and_back(page: BrowserPage) -> None:
    held(page, 2)
    page.open("#/objects")
    page.page.click("text=default/trainer")
    page.wait_for_text("Pod, ", "request gpus", "bound")
    page.page.click(".entry a")
    page.wait_for_text("Claim, reserved", "claim created", "allocated", "bound")
    page.wait("allot.plan.lit && allot.plan.lit.size === 2")
    page.page.click(".devices a")
    page.wait_for_text("H100: held", "Attributes", "80 GiB", "default/two")
    page.page.click(".holders a")
    page.wait_for_text("Claim, reserved")


def test_pending_pods_light_up_the_devices_concerned(
    cluster: RunningCluster, page: BrowserPage
) -> None:
    cluster.create(gpu_claim("nine", 9), gpu_pod("greedy", "nine"))
    try:
        page.wait("document.querySelector('#tabs .badge')")
        page.open("#/pending")
        page.wait_for_text("1 pod without a node", "pod/default/greedy")
        page.page.click(".cause > button")
        page.wait_for_text("For example")
        page.wait_for_text("pod default/greedy")
    finally:
        cluster.delete("pod/greedy", "resourceclaim/nine")
    page.wait_for_text("No pod waits for a node")


@pytest.mark.usefixtures("trainer")
def test_what_if_changes_nothing(cluster: RunningCluster, page: BrowserPage) -> None:
    held(page, 2)
    page.open("#/what-if")
    page.page.wait_for_selector("[data-key=profile] option", state="attached")
    page.page.select_option("[data-key=profile]", "gpu-server")
    page.page.fill("[data-key=nodes]", "3")
    page.page.click("[data-key=submit]")
    page.wait_for_text("Add hardware: gpu-server=3", "devices different")
    page.wait("allot.plan.shown !== allot.floor")
    assert sum(name.startswith("gpu-server-new") for name in page.states()) == 36
    page.page.click("[data-key=Before]")
    page.wait("allot.plan.shown === allot.floor")
    nodes = cluster.kubectl("get", "nodes", "-o", "name")
    assert len(nodes.split()) == 2

    page.page.select_option("[data-key=kind]", "drain")
    page.page.fill("[data-key=drain]", "nowhere")
    page.expected = ("422",)
    page.page.click("[data-key=submit]")
    page.wait_for_text("no Node nowhere")


def test_history_from_before_the_dashboard_is_played(
    cluster: RunningCluster, page: BrowserPage, browser: Any
) -> None:
    """allot's API server keeps its history: a dashboard that starts later has it."""
    held(page, 0)
    cluster.create(gpu_claim("earlier"), gpu_pod("earlier", "earlier"))
    held(page, 1)
    during = page.page.evaluate("Date.now() / 1000") + 2
    time.sleep(4)
    cluster.delete("pod/earlier", "resourceclaim/earlier")
    held(page, 0)
    with dashboard_of(cluster.kubeconfig) as url, opened(browser, url) as other:
        other.wait_ready()
        other.wait(f"allot.status.begins < {during}")
        other.open(f"#/time?at={during}")
        other.wait(
            "[...allot.plan.shown.devices.values()].filter(each => each.state === 'held').length === 1"
        )
        other.check()


def test_history_is_played(cluster: RunningCluster, page: BrowserPage) -> None:
    held(page, 0)
    before = page.page.evaluate("Date.now() / 1000")
    cluster.create(gpu_claim("past"), gpu_pod("past", "past"))
    held(page, 1)
    during = page.page.evaluate("Date.now() / 1000")
    cluster.delete("pod/past", "resourceclaim/past")
    held(page, 0)

    page.open(f"#/time?at={during}")
    page.wait("[...allot.plan.shown.devices.values()].some(each => each.state === 'held')")
    page.wait_for_text("The floor plan at", where="#plan")
    page.open(f"#/time?at={before}")
    page.wait("[...allot.plan.shown.devices.values()].every(each => each.state === 'free')")
    page.wait_for_text("Utilisation and fragmentation", "Pods pending, by cause")
    page.page.click("text=Now")
    page.wait("allot.plan.shown === allot.floor")


def test_expressions_as_one_types(page: BrowserPage) -> None:
    page.open("#/cel")
    editor = page.page.locator("[data-key=editor]")
    editor.fill('device.driver == "nic.example.com"')
    page.wait_for_text("Type bool", "8 devices", "16 devices")
    page.wait("allot.plan.lit && allot.plan.lit.size === 8")
    editor.fill("device.drivr")
    page.wait_for_text("undefined field 'drivr'", "^", "did you mean driver?")
    page.wait("allot.plan.lit === null")


def test_keyboard_search_and_list(page: BrowserPage) -> None:
    page.page.keyboard.press("/")
    page.page.keyboard.type("gpu-server-1 h100")
    page.wait_for_text("8 devices", where="#plan")
    page.page.keyboard.press("Escape")
    page.page.focus(".scroller")
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("ArrowRight")
    page.wait_for_text("gpu-1, H100 on gpu-server-0: free", where="#live")
    page.page.keyboard.press("Enter")
    page.wait_for_text("gpu-1", "Attributes")
    page.page.click("text=List")
    page.wait_for_text("24 in all", where="#plan")
    page.page.click("text=List")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1600])
def test_every_view_fits_and_is_accessible(page: BrowserPage, theme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.page.set_viewport_size({"width": width, "height": 900})
    page.page.evaluate("theme => allot.setTheme(theme)", theme)
    for address, title in VIEWS.items():
        page.open(address)
        page.wait_for_text(title)
        page.wait("!document.querySelector('#panel').innerText.includes('Loading …')")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width, address
        assert page.page.evaluate(TAB_IS_VISIBLE), address
        found = axe.run(page.page)
        broken = [
            (each["id"], [node["html"] for node in each["nodes"]][:3])
            for each in found.response["violations"]
        ]
        assert broken == [], address


def test_markup_and_long_names_are_text(cluster: RunningCluster, page: BrowserPage) -> None:
    """API objects cannot have such names; the server's messages can have any string."""
    change = {
        "pools": [{
            "number": 999, "driver": MARKUP, "pool": "p" * 10_000, "node": MARKUP,
            "places": [[999_999, MARKUP + "n" * 10_000, MARKUP, "", "", 100]],
            "cells": [[1, 100, 0, [[f"{MARKUP}/{MARKUP}", MARKUP]]]],
        }]
    }  # fmt: skip
    page.page.evaluate("change => allot.change(change)", change)
    page.page.evaluate("markup => { allot.status = {...allot.status, notes: [markup]}; }", MARKUP)
    page.page.evaluate("allot.view.on('status')")
    page.wait_for_text(MARKUP)
    page.page.click("text=List")
    page.wait_for_text(MARKUP, where="#plan")
    page.page.click("text=List")
    assert page.page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1600
    page.page.evaluate("allot.change({gone: [999]})")


def test_the_token_is_needed(cluster: RunningCluster, browser: Any) -> None:
    with opened(browser, cluster.url.partition("?")[0] + "?token=wrong") as page:
        assert "needs its token" in page.page.evaluate("document.body.innerText")
        assert page.page.evaluate("document.cookie") == ""


@pytest.mark.usefixtures("trainer")
def test_a_link_on_a_page_of_another_site(
    cluster: RunningCluster, shared_page: BrowserPage, tmp_path: Path
) -> None:
    """The browser does not send the cookie with the first request; the address is opened nevertheless."""
    target = f"{cluster.url.partition('?')[0]}#/pod/default/trainer"
    other = tmp_path / "console.html"
    other.write_text(f'<a href="{target}">why does it wait?</a>', encoding="utf-8")
    page = shared_page.page.context.new_page()
    try:
        page.goto(other.as_uri())
        page.click("a")
        page.wait_for_selector("text=Pod, ", timeout=60_000)
    finally:
        page.close()


@pytest.mark.usefixtures("trainer")
def test_an_object_that_is_deleted_while_it_is_shown(
    cluster: RunningCluster, page: BrowserPage
) -> None:
    page.expected = ("404",)
    page.open("#/claim/default/two")
    page.wait_for_text("Claim, reserved")
    cluster.delete("pod/trainer", "resourceclaim/two")
    page.wait_for_text("Claim, deleted", "released", "deleted")
    page.open("#/pod/default/trainer")
    page.wait_for_text("This pod does not exist")


def test_the_cluster_is_gone_and_comes_back(tmp_path: Path, browser: Any) -> None:
    with (
        ApiServerProcess(tmp_path / "server") as server,
        dashboard_of(server.kubeconfig) as url,
        opened(browser, url) as page,
    ):
        page.wait_ready()
        server.kill()
        page.wait_for_text("may be outdated", where="#banner")
        server.start()
        page.wait("document.querySelector('#banner').hidden")
        page.wait_for_text("live", where="#connection")
        page.check()


def a_limited_viewer(cluster: RunningCluster, kubeconfig: Path) -> None:
    """Write a kubeconfig of a user who may list devices, and claims and pods of the namespace `open` only."""
    kubectl = cluster.kubectl
    kubectl("create", "namespace", "open")
    kubectl("create", "serviceaccount", "viewer", "-n", "open")
    user = "--serviceaccount=open:viewer"
    devices = "nodes,resourceslices.resource.k8s.io,deviceclasses.resource.k8s.io"
    verbs = "--verb=get,list,watch"
    kubectl("create", "clusterrole", "devices-viewer", verbs, f"--resource={devices}")
    kubectl("create", "clusterrolebinding", "viewer", "--clusterrole=devices-viewer", user)
    claims = "pods,resourceclaims.resource.k8s.io"
    kubectl("create", "role", "viewer", "-n", "open", verbs, f"--resource={claims}")
    kubectl("create", "rolebinding", "viewer", "-n", "open", "--role=viewer", user)
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {
        "token": kubectl("create", "token", "viewer", "-n", "open").strip()
    }
    config["contexts"][0]["context"]["namespace"] = "open"
    kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_no_names_of_what_the_viewer_may_not_list(
    cluster: RunningCluster, page: BrowserPage, browser: Any, tmp_path: Path
) -> None:
    a_limited_viewer(cluster, tmp_path / "kubeconfig")
    cluster.create(gpu_claim("hidden-claim"), gpu_pod("hidden-pod", "hidden-claim"))
    held(page, 1)
    device = page.page.evaluate(
        "[...allot.floor.devices.values()].find(each => each.state === 'held')"
    )
    query = f"driver={device['driver']}&pool={device['pool']}&device={device['name']}"
    paths = [
        "/api/objects?kind=pods", "/api/objects?kind=claims", "/api/pending", "/api/choices",
        f"/api/device?{query}", "/api/history", "/api/history/floor?at=1",
        "/api/pod?namespace=default&name=hidden-pod",
        "/api/explain?kind=pod&namespace=default&name=hidden-pod",
    ]  # fmt: skip
    try:
        with dashboard_of(tmp_path / "kubeconfig") as url, opened(browser, url) as other:
            other.wait_ready()
            said = other.page.evaluate(
                "paths => Promise.all(paths.map(path => fetch(path).then(answer => answer.text())))",
                paths,
            )
            shown = other.page.evaluate("JSON.stringify([...allot.floor.devices.values()])")
            other.wait_for_text("could not be read", "only those in namespace open")
            assert len(other.states()) == 24
            for text in (shown, *said[:-2]):
                assert "hidden" not in text
            # The answers about the pod itself repeat its name at most.
            assert all("hidden-claim" not in text for text in said[-2:])
    finally:
        cluster.delete("pod/hidden-pod", "resourceclaim/hidden-claim")
