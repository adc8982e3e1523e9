"""What `allot up` does before it is ready, counted: seconds depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMPONENTS = {"scheduler", "controllers", "kubelet", "allocation"}
"""They run in a second process."""
VIEWS = {"dashboard", "terminal", "questions", "lint", "public"}
"""Imported when they are asked for."""


def modules_after(program: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(printed.stdout.split())


def packages(modules: set[str]) -> set[str]:
    """Packages of allot without their prefix, and those of others."""
    return {
        name.split(".")[1] if name.startswith("allot.") else name.partition(".")[0]
        for name in modules
    }


def test_reading_the_command_line_imports_little() -> None:
    """The second process is spawned after that."""
    modules = modules_after("import allot.cli.program, allot.cli.up")
    unwanted = {"apiserver", "client", "validation", "cel"} | COMPONENTS | VIEWS
    others = {"cryptography", "msgspec", "rich", "textual", "uvicorn", "yaml"}
    assert packages(modules) & (unwanted | others) == set()
    assert len(modules) < 250


def test_the_api_server_imports_no_other_component() -> None:
    modules = modules_after("import allot.apiserver.running, allot.client.in_process")
    unwanted = COMPONENTS | VIEWS | {"rich", "textual"}
    assert packages(modules) & unwanted == set()
    assert len(modules) < 1000


def test_components_import_no_server_and_no_view() -> None:
    modules = modules_after("import allot.components")
    unwanted = {"apiserver", "storage", "cryptography", "rich", "textual", "uvicorn"}
    assert packages(modules) & (unwanted | VIEWS - {"questions"}) == set()
    assert len(modules) < 900


@pytest.mark.parametrize("hardware", [[], ["--hardware", "gpu-server"]])
def test_both_processes_load_their_modules_at_the_same_time(
    hardware: list[str], tmp_path: Path
) -> None:
    """When the second process is spawned, neither server nor scheduler are loaded in the first."""
    program = """
import asyncio, sys
from allot.cli.errors import CommandError

async def refuse(*_, **__):
    loaded = {"allot.apiserver.running", "allot.scheduler.configuration"} & set(sys.modules)
    raise CommandError(f"spawned with {sorted(loaded)}")

asyncio.create_subprocess_exec = refuse
from allot.cli.main import run
run()
"""
    command = [sys.executable, "-c", program, "up", "--port", "0", *hardware]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.stderr.splitlines()[-1] == "error: spawned with []"
