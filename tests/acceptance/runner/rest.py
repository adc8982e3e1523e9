"""A small Kubernetes REST client on the standard library: what a scenario says is what is sent."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlencode, urlsplit

import yaml

from tests.acceptance.runner.paths import Json

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
CONTENT_TYPE_BY_PATCH = {
    "merge": MERGE_PATCH,
    "json": "application/json-patch+json",
    "strategic": STRATEGIC_PATCH,
    "apply": "application/apply-patch+yaml",
}
REQUEST_TIMEOUT_SECONDS = 60
CONNECTION_ERRORS = (OSError, http.client.HTTPException)


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    """Names in lower case; several of one name are joined."""
    body: Json
    """What the JSON says, or the text if it is none."""

    @property
    def is_error(self) -> bool:
        return self.code >= 400


class WatchEvent(NamedTuple):
    type: str
    object: Json


class RestError(Exception):
    """The server refused what the runner itself needs."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.code}: {answer.body}")
        self.answer = answer


class RestClient:
    """Sends requests from any thread; connections are kept and shared."""

    def __init__(self, server: str, token: str, context: ssl.SSLContext | None) -> None:
        self.server = server
        self._address = urlsplit(server)
        self._token = token
        self._context = context
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    @classmethod
    def from_kubeconfig(cls, path: Path) -> RestClient:
        """With the credentials of the current context: a token, a client certificate or both."""
        config = yaml.safe_load(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        tls = None
        if cluster["server"].startswith("https"):
            tls = _tls_context(cluster, user, path.parent)
        return cls(cluster["server"], user.get("token", ""), tls)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Json] | None = None,
        body: Json = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Any answer, errors included."""
        all_headers = self._headers(headers)
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            all_headers.setdefault("Content-Type", content_type)
        return self._exchange(method, self._url(path, query), data, all_headers)

    def call(self, method: str, path: str, *, body: Json = None, content_type: str = JSON) -> Json:
        """The body of an answer that must not be an error."""
        answer = self.request(method, path, body=body, content_type=content_type)
        if answer.is_error:
            raise RestError(answer)
        return answer.body

    def watch(
        self,
        path: str,
        *,
        query: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> OpenWatch:
        """A watch that the server has agreed to."""
        connection = self._connect(timeout_seconds)
        try:
            url = self._url(path, {**(query or {}), "watch": "true"})
            connection.request("GET", url, headers=self._headers(headers))
            response = connection.getresponse()
            if response.status >= 400:
                raise RestError(_read_answer(response))
        except BaseException:
            connection.close()
            raise
        return OpenWatch(connection, response)

    def _connect(self, timeout_seconds: float) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_seconds)
        return http.client.HTTPSConnection(
            host, port, timeout=timeout_seconds, context=self._context
        )

    def _headers(self, more: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"Accept": JSON, "User-Agent": "allot-acceptance"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return {**headers, **(more or {})}

    def _url(self, path: str, query: Mapping[str, Json] | None) -> str:
        url = self._address.path.rstrip("/") + path
        if query:
            url += ("&" if "?" in path else "?") + urlencode(query, doseq=True)
        return url

    def _exchange(
        self, method: str, url: str, data: bytes | None, headers: dict[str, str]
    ) -> Answer:
        kept = self._take_idle()
        if kept is not None:
            # The server may have closed a connection while it was idle: that is no answer yet.
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                return self._exchange_on(kept, method, url, data, headers)
        return self._exchange_on(self._connect(REQUEST_TIMEOUT_SECONDS), method, url, data, headers)

    def _exchange_on(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        url: str,
        data: bytes | None,
        headers: dict[str, str],
    ) -> Answer:
        try:
            connection.request(method, url, body=data, headers=headers)
            answer = _read_answer(connection.getresponse())
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return answer

    def _take_idle(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None


class OpenWatch:
    """The events of a watch, until the server ends it or it is closed."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response
        # The response takes the socket over when the server wants to close it at the end.
        self._socket = connection.sock

    def __iter__(self) -> Iterator[WatchEvent]:
        while (line := self._next_line()).endswith(b"\n"):
            event = json.loads(line)
            yield WatchEvent(event["type"], event["object"])

    def _next_line(self) -> bytes:
        """Nothing, or part of a line, when the watch is over."""
        try:
            return self._response.readline()
        except (*CONNECTION_ERRORS, ValueError):  # interrupted, timed out, or closed
            return b""

    def interrupt(self) -> None:
        """End the iteration in another thread; that one closes."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def _read_answer(response: http.client.HTTPResponse) -> Answer:
    text = response.read().decode("utf-8", "replace")
    headers: dict[str, str] = {}
    for mixed_case, value in response.getheaders():
        name = mixed_case.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    body: Json = text
    if "json" in headers.get("content-type", ""):
        with contextlib.suppress(ValueError):
            body = json.loads(text)
    return Answer(response.status, headers, body)


def _named(entries: Json, name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def _tls_context(cluster: Json, user: Json, directory: Path) -> ssl.SSLContext:
    authority = _material(cluster, "certificate-authority", directory)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _material(user, "client-certificate", directory)
    if certificate:
        with tempfile.TemporaryDirectory() as files:
            # The standard library reads them from files only.
            certificate_file, key_file = Path(files, "certificate"), Path(files, "key")
            certificate_file.write_bytes(certificate)
            key_file.write_bytes(_material(user, "client-key", directory))
            context.load_cert_chain(certificate_file, key_file)
    return context


def _material(entry: Json, name: str, directory: Path) -> bytes:
    """What a kubeconfig holds itself or names a file for; empty if neither."""
    if entry.get(f"{name}-data"):
        return base64.b64decode(entry[f"{name}-data"])
    if entry.get(name):
        return Path(directory, entry[name]).read_bytes()
    return b""
