"""`import allot`: cheap, lazy, typed, and complete."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import allot

OWN = {"allot", "allot._lazy", "allot._version"}
"""What `import allot` loads of allot."""


def _modules_after(code: str) -> set[str]:
    program = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"sys_path = {sys.path!r}; import sys; sys.path[:] = sys_path; {program}",
        ],
        capture_output=True,
        check=True,
    )
    return set(done.stdout.decode().split())


def test_import_loads_nothing_else() -> None:
    loaded = _modules_after("import allot")

    assert loaded >= OWN
    assert loaded - OWN <= {"__future__"}


def test_manifests_are_allocated_without_servers_and_clients() -> None:
    loaded = _modules_after("import allot; allot.load; allot.Allocation")

    assert (
        loaded & {"httptools", "cryptography", "uvicorn", "prometheus_client", "rich", "click"}
        == set()
    )


def test_every_name_is_typed() -> None:
    """The imports for type checkers and the table for the interpreter have the same names."""
    source = Path(allot.__file__).read_text(encoding="utf-8")
    typed = {
        alias.asname or alias.name
        for node in ast.parse(source).body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    assert typed | {"__version__"} == set(allot.__all__)
    assert dir(allot) == sorted(allot.__all__)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="module 'allot' has no attribute 'allocat'"):
        _ = getattr(allot, "allocat")  # noqa: B009 - mypy knows that it is not there
