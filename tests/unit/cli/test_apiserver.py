"""`allot apiserver` as a process: starts, writes a kubeconfig, keeps what it was told, stops cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from allot.testing.http_client import Connection, EndOfStream
from allot.testing.processes import PROGRAM, ApiServerProcess

MAPS = "/api/v1/namespaces/default/configmaps"


class Running(ApiServerProcess):
    """A server process and its admin."""

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> dict[str, Any]:
        address = self.address
        request = urllib.request.Request(
            f"https://{address.host}:{address.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "authorization": f"Bearer {token or address.token}",
                "content-type": "application/json",
            },
        )
        with urllib.request.urlopen(request, context=address.context, timeout=60) as answer:  # noqa: S310
            found: dict[str, Any] = json.loads(answer.read())
        return found


def failed(*arguments: str) -> str:
    """What a server that cannot start says; it is one line."""
    done = subprocess.run(
        [str(PROGRAM), "apiserver", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    with Running(tmp_path) as first:
        assert first.first_line.startswith("allot API server: https://127.0.0.1:")
        created = first.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        first.send(signal.SIGINT)
        assert first.wait() == 0
    with Running(tmp_path) as second:
        assert second.address.token == first.address.token
        assert second.ask("GET", f"{MAPS}/a") == created
        next_ = second.ask("POST", MAPS, {"metadata": {"name": "b"}})
        assert int(next_["metadata"]["resourceVersion"]) > int(
            created["metadata"]["resourceVersion"]
        )
        assert second.stop() == 0


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    with Running(tmp_path, "--storage", "memory"):
        secrets = [tmp_path / "kubeconfig", *(tmp_path / "pki").iterdir()]
        assert len(secrets) >= 6
        assert {oct(file.stat().st_mode & 0o777) for file in secrets} == {"0o600"}


def test_shutdown_ends_watches_at_once(tmp_path: Path) -> None:
    async def run(server: Running) -> None:
        async with Connection(server.address) as connection:
            await connection.watch(f"{MAPS}?watch=true")
            server.send(signal.SIGTERM)
            with pytest.raises(EndOfStream):
                async with asyncio.timeout(60):
                    await connection.chunk()

    with Running(tmp_path, "--storage", "memory") as server:
        asyncio.run(run(server))
        assert server.wait() == 0


def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        said = failed("--port", port, "--data-dir", str(tmp_path))
    assert f"127.0.0.1:{port}: " in said
    assert "in use" in said


def test_a_data_directory_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    with Running(tmp_path):
        said = failed("--port", "0", "--data-dir", str(tmp_path))
    assert "allot.db" in said


def test_bad_settings(tmp_path: Path) -> None:
    data = ("--port", "0", "--data-dir", str(tmp_path))
    assert "is not one of: sqlite, sqlite:PATH, etcd:URL[,URL...] or memory" in failed(
        *data, "--storage", "postgres:x"
    )
    assert "unknown feature gate" in failed(*data, "--feature-gates", "Nonsense=true")
    (tmp_path / "allot.db").write_bytes(b"this is not a database, however long it may be" * 100)
    assert "allot.db" in failed(*data)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("only-a-token\n")
    assert "tokens.csv, line 1" in failed(
        *data, "--storage", "memory", "--token-auth-file", str(tokens)
    )
    (tmp_path / "pki" / "ca.crt").write_text("nonsense")
    assert "ca.crt is not a certificate" in failed(*data, "--storage", "memory")


def test_static_tokens_let_in_whom_they_name(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ops-secret,olivia,1,system:masters\n")
    with Running(tmp_path, "--storage", "memory", "--token-auth-file", str(tokens)) as server:
        assert server.ask("GET", MAPS, token="ops-secret")["kind"] == "ConfigMapList"  # noqa: S106


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_works_with_the_kubeconfig(tmp_path: Path) -> None:
    with Running(tmp_path, "--storage", "memory") as server:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(server.kubeconfig), "get", "namespaces", "-o", "name"],
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
            timeout=120,
            check=False,
        )
    assert done.stdout.split() == [
        "namespace/default",
        "namespace/kube-node-lease",
        "namespace/kube-public",
        "namespace/kube-system",
    ]
