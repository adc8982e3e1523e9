"""`@kubernetes/client-node`: round trips, and an informer that survives a restart of the server.

The package is installed once, beside the virtual environment. Where there is no Node.js, or the
package cannot be had, the tests are skipped and say so.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients.api_server import RunningServer

SCRIPTS = Path(__file__).parent / "node"
INSTALL_SECONDS = 120
RUN_SECONDS = 150


@pytest.fixture(scope="session")
def node_home() -> Path:
    """A directory with the scripts and the package they need."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    wanted = (SCRIPTS / "package.json").read_bytes()
    home = Path(sys.prefix) / "node-clients" / hashlib.sha256(wanted).hexdigest()[:12]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:  # other test processes may want it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "installed").exists():
            _install(home)
        for script in SCRIPTS.glob("*.mjs"):
            shutil.copy(script, home)
    return home


def _install(home: Path) -> None:
    shutil.copy(SCRIPTS / "package.json", home)
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            ["npm", "install", *options],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm takes too long to install @kubernetes/client-node")
    if done.returncode:
        pytest.skip("npm cannot install @kubernetes/client-node")
    (home / "installed").touch()


def start_script(home: Path, name: str, server: RunningServer, namespace: str) -> Any:
    return subprocess.Popen(
        ["node", name, str(server.kubeconfig), namespace],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_round_trip(server: RunningServer, namespace: str, node_home: Path) -> None:
    with start_script(node_home, "round_trip.mjs", server, namespace) as script:
        output, errors = script.communicate(timeout=RUN_SECONDS)

    assert script.returncode == 0, errors
    assert json.loads(output) == {
        "version": "1.38",
        "data": {"merged": "1", "strategic": "2"},
        "listed": ["a"],
        "conflict": [409, "AlreadyExists"],
        "events": ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"],
        "claim": ["ExactCount", ["example.com/hold"]],
        "converted": "gpu",
    }


def test_informer_survives_a_restart(own_server: RunningServer, node_home: Path) -> None:
    maps = "/api/v1/namespaces/default/configmaps"

    def create(name: str) -> None:
        assert own_server.request("POST", maps, {"metadata": {"name": name}}).code == 201

    create("first")
    with start_script(node_home, "informer.mjs", own_server, "default") as script:
        assert json.loads(script.stdout.readline()) == ["add", "first"]
        create("second")
        assert json.loads(script.stdout.readline()) == ["add", "second"]
        own_server.stop()
        own_server.start(port=own_server.port)
        assert own_server.request("DELETE", f"{maps}/first").code == 200
        create("last")
        output, errors = script.communicate(timeout=RUN_SECONDS)

    assert script.returncode == 0, errors
    events = [json.loads(line) for line in output.splitlines()]
    assert events[-2:] == [["add", "last"], ["cache", ["last", "second"]]]
    assert ["add", "second"] not in events  # it was not forgotten
