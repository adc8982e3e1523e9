"""Kubernetes' own DRA test driver, in Go, passes the conformance suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.kubernetes.programs import NEEDS_KUBERNETES, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), NEEDS_KUBERNETES]
SHARES_AND_UPDATES = {"prepare/shares", "upgrade/sockets", "upgrade/hand-over"}
"""It has no devices that can be shared, and no option for a second instance."""


def test_the_test_driver_is_conformant(tmp_path: Path) -> None:
    driver = [
        str(program("dra-test-driver")), "--kubeconfig={kubeconfig}", "kubelet-plugin", "--node-name={node}",
        "--datadir={plugins}", "--plugin-registration-path={registry}", "--cdi-dir={cdi}",
    ]  # fmt: skip
    results = tmp_path / "results.xml"
    options = ["--driver-name=test-driver.cdi.k8s.io", f"--junit={results}"]
    allot = [sys.executable, "-c", "from allot.cli.main import run; run()"]
    done = subprocess.run(
        [*allot, "conformance", "driver", *options, "--", *driver],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    suite = ElementTree.fromstring(results.read_text())  # noqa: S314 - our own
    skipped = {case.get("name") for case in suite if case.find("skipped") is not None}
    assert skipped == SHARES_AND_UPDATES
