"""`allot conformance driver` with the project that `allot driver init` creates, as processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

ALLOT = [sys.executable, "-c", "from allot.cli.main import run; run()"]
OPTIONS = [
    "--kubeconfig={kubeconfig}", "--node-name={node}", "--kubelet-dir={kubelet}", "--cdi-dir={cdi}",
    "--instance={instance}", "--repair-seconds=1",
]  # fmt: skip


def run(*arguments: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ALLOT, *arguments], capture_output=True, text=True, timeout=seconds, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    assert run("driver", "init", "gpu.example.com", "--directory", str(root)).returncode == 0
    return root


def test_a_new_driver_registers_and_prepares(project: Path, tmp_path: Path) -> None:
    chosen = ["--only=registration", "--only=prepare/devices", "--only=restart/prepared"]
    results = tmp_path / "results.xml"
    driver = [sys.executable, str(project / "gpu.py"), *OPTIONS]

    done = run("conformance", "driver", *chosen, f"--junit={results}", "--", *driver)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "gpu.example.com: conformant (13 passed)"
    suite = ElementTree.fromstring(results.read_text())  # noqa: S314 - our own
    assert suite.get("tests") == "13"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_test_of_a_new_driver_passes(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project)],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )

    assert done.returncode == 0, done.stdout


def test_a_program_that_ends_is_not_conformant() -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such device')"]

    done = run("conformance", "driver", "--only=registration/socket", "--", *failing)

    assert done.returncode == 1
    assert "the driver ended with exit code 1: no such device" in done.stdout


STARTS_ANOTHER = """
import os, pathlib, subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
partial = pathlib.Path(sys.argv[1] + ".partial")
partial.write_text(f"{os.getpid()} {other.pid}")
partial.rename(sys.argv[1])
time.sleep(300)
"""


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
def test_the_driver_and_what_it_started_end_with_the_command(
    tmp_path: Path, ended_by: signal.Signals
) -> None:
    started = tmp_path / "started"
    driver = [sys.executable, "-c", STARTS_ANOTHER, str(started)]
    command = [*ALLOT, "conformance", "driver", "--only=registration/socket", "--", *driver]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(started.exists)
        processes = [int(each) for each in started.read_text().split()]
        assert all(map(is_running, processes))
        running.send_signal(ended_by)
        running.wait(60)
        wait_until(lambda: not any(map(is_running, processes)))
    finally:
        running.kill()
        running.wait(60)


def is_running(process: int) -> bool:
    """Whether it exists and is not only waiting to be reaped."""
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:1] not in ("", "Z")


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the command line of the driver after --, or --socket"),
        (["--socket=x"], "--socket needs --kubeconfig and --cdi-dir"),
        (["--only=nothing", "--", "x"], "no check matches nothing"),
        (["--only=registration/type", "--", "/nowhere/driver"], "/nowhere/driver: No such file"),
    ],
    ids=["nothing", "socket alone", "unknown check", "no such program"],
)
def test_what_cannot_be_run(arguments: list[str], message: str) -> None:
    done = run("conformance", "driver", *arguments)

    assert done.returncode == 2
    assert message in done.stderr


def test_the_checks_are_listed() -> None:
    done = run("conformance", "driver", "--list", "--only=upgrade")

    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["upgrade/sockets", "must"],
        ["upgrade/hand-over", "must"],
    ]
