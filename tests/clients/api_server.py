"""The API server as users run it: a process of its own, on a free port, with TLS."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import yaml

START_SECONDS = 150
PROGRAM = "from allot.cli.main import run; run()"


class Answer(NamedTuple):
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RunningServer:
    """`allot apiserver`, started and stopped. Its data stays in the directory."""

    def __init__(
        self,
        directory: Path,
        storage: str = "memory",
        *,
        options: Sequence[str] = (),
        max_files: int | None = None,
    ) -> None:
        self._directory = directory
        self._storage = storage
        self._options = options
        self._max_files = max_files
        self._log = directory / "server.log"
        self.kubeconfig = directory / "kubeconfig"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, port: int = 0) -> None:
        """Returns when it takes connections."""
        options = [f"--port={port}", f"--storage={self._storage}", f"--data-dir={self._directory}"]
        command = [sys.executable, "-c", PROGRAM, "apiserver", *options, *self._options]
        if self._max_files is not None:
            command = ["sh", "-c", f'ulimit -n {self._max_files}; exec "$@"', "sh", *command]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"https://127\.0\.0\.1:(\d+)", self.log())):
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, "the API server does not start"
            time.sleep(0.02)
        self.port = int(found[1])
        config = yaml.safe_load(self.kubeconfig.read_text())
        self.token = str(config["users"][0]["user"]["token"])
        authority = b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
        self.tls = ssl.create_default_context(cadata=authority.decode())

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=120) == 0, self.log()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own. A body that is not bytes goes as JSON."""
        connection = self._connection(10)
        try:
            connection.request(method, path, *self._content(body, content_type, headers))
            response = connection.getresponse()
            shown = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, shown, response.read())
        finally:
            connection.close()

    def watch(
        self, path: str, headers: Mapping[str, str] | None = None, timeout: float = 10
    ) -> Iterator[dict[str, Any]]:
        """The events of a watch as they come; ends when the server ends it."""
        connection = self._connection(timeout)
        try:
            connection.request("GET", path, *self._content(None, "", headers))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.tls, timeout=timeout
        )

    def _content(
        self, body: Any, content_type: str, headers: Mapping[str, str] | None
    ) -> tuple[bytes | None, dict[str, str]]:
        sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        if body is None:
            return None, sent
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return raw, {"Content-Type": content_type, **sent}
