"""`allot storage`, and what servers say about a data directory that is damaged."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from allot.testing.processes import PROGRAM, ApiServerProcess


def allot(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("filled") / "data"
    with ApiServerProcess(directory):
        pass
    return directory


@pytest.fixture
def data(_filled: Path, tmp_path: Path) -> Path:
    """A data directory with the objects of every cluster."""
    return shutil.copytree(_filled, tmp_path / "data")


def key_of(data: Path, text: str) -> str:
    connection = sqlite3.connect(data / "allot.db")
    (key,) = connection.execute("SELECT key FROM log WHERE key LIKE ?", (f"%{text}",)).fetchone()
    connection.close()
    return str(key)


def damage(data: Path, key: str) -> None:
    connection = sqlite3.connect(data / "allot.db", isolation_level=None)
    connection.execute("UPDATE log SET value = x'00' WHERE key = ?", (key,))
    connection.close()


def test_an_intact_directory(data: Path) -> None:
    done = allot("storage", "check", data)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == f"{data}/allot.db is intact"
    found = json.loads(allot("storage", "check", data / "allot.db", "-o", "json").stdout)
    assert found["problem"] is None
    assert found["objects"] == found["intactRecords"] > 0


def test_damage_is_named_and_the_rest_is_saved(data: Path, tmp_path: Path) -> None:
    key = key_of(data, "/kube-public")
    damage(data, key)
    checked = allot("storage", "check", data)
    assert checked.returncode == 1
    assert f"the record of '{key}' at revision" in checked.stdout
    assert any(line.split()[1:] == ["lost", key] for line in checked.stdout.splitlines())

    new = tmp_path / "new"
    rescued = allot("storage", "rescue", data, "--to", new, "-o", "json")
    assert rescued.returncode == 1
    found = json.loads(rescued.stdout)
    assert [record["key"] for record in found["damagedRecords"]] == [key]
    assert found["newFile"] == f"{new}/allot.db"
    assert (new / "pki" / "ca.key").read_bytes() == (data / "pki" / "ca.key").read_bytes()
    assert (new / "pki" / "ca.key").stat().st_mode & 0o077 == 0
    assert allot("storage", "check", new).returncode == 0
    with ApiServerProcess(new):
        pass
    again = allot("storage", "rescue", data, "--to", new)
    assert again.returncode == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize("command", [("apiserver",), ("up",), ("up", "--separate")])
def test_servers_refuse_a_damaged_directory(data: Path, command: tuple[str, ...]) -> None:
    damage(data, key_of(data, "/default"))
    done = allot(*command, "--port", "0", "--data-dir", data)
    assert done.returncode == 1
    line, *rest = done.stderr.strip().splitlines()
    assert rest == (["error: allot apiserver did not start"] if "--separate" in command else [])
    assert line.startswith(f"error: {data}/allot.db is damaged: the record of ")
    assert f"`allot storage rescue {data}/allot.db --to NEW`" in line


def test_a_newer_schema_is_refused(data: Path) -> None:
    connection = sqlite3.connect(data / "allot.db", isolation_level=None)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for command in (["apiserver", "--port", "0", "--data-dir"], ["storage", "check"]):
        done = allot(*command, data)
        assert done.returncode == 2
        assert "was written by a newer version of allot (schema 99" in done.stderr


def test_a_directory_in_use_is_left_alone(data: Path, tmp_path: Path) -> None:
    with ApiServerProcess(data):
        for command in (["check", str(data)], ["rescue", str(data), "--to", str(tmp_path / "new")]):
            done = allot("storage", *command)
            assert done.returncode == 2
            assert "in use by another process" in done.stderr


def test_a_directory_without_a_database(tmp_path: Path) -> None:
    done = allot("storage", "check", tmp_path)
    assert done.returncode == 2
    assert f"no allot.db in {tmp_path}" in done.stderr
