"""Bytes that are no HTTP, or not quite: every connection gets an answer or ends, and the server goes on."""

from __future__ import annotations

import contextlib
import re
import socket
from pathlib import Path
from typing import Final

import pytest

from tests.clients.api_server import RunningServer

MAPS: Final = b"/api/v1/namespaces/default/configmaps"
MEGABYTE: Final = 1024 * 1024


def exchange(server: RunningServer, raw: bytes, *, hang_up: bool = False) -> bytes:
    """What comes back for these bytes until the connection ends."""
    connection = socket.create_connection(("127.0.0.1", server.port), 10)
    with server.tls.wrap_socket(connection, server_hostname="127.0.0.1") as tls:
        with contextlib.suppress(OSError):  # it may have heard enough
            tls.sendall(raw)
        if hang_up:
            tls.shutdown(socket.SHUT_RDWR)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := tls.recv(65536):
                received += part
        return received


def head(server: RunningServer, line: bytes, *headers: bytes) -> bytes:
    """The beginning of a request whose connection ends after the answer."""
    fixed = [
        b"Host: x",
        b"Connection: close",
        b"Content-Type: application/json",
        b"Authorization: Bearer " + server.token.encode(),
    ]
    return b"\r\n".join([line, *fixed, *headers, b"", b""])


def named(name: bytes) -> bytes:
    return b'{"metadata":{"name":"%b"}}' % name


def exists(server: RunningServer, name: str) -> bool:
    return server.request("GET", f"{MAPS.decode()}/{name}").code == 200


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GARBAGE\r\n\r\n", id="garbage"),
        pytest.param(b"\x00\xff\x00\xff\r\n\r\n", id="binary"),
        pytest.param(b"GET / HTTP/3.7\r\n\r\n", id="no-such-version"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="http-2"),
        pytest.param(b"GET /a b HTTP/1.1\r\n\r\n", id="space-in-path"),
        pytest.param(b"GET /\x00 HTTP/1.1\r\n\r\n", id="nul-in-path"),
        pytest.param(b"GET / HTTP/1.1\r\nno colon\r\n\r\n", id="bad-header"),
        pytest.param(b"FOO / HTTP/1.1\r\n\r\n", id="unknown-method"),
        pytest.param(b"GET /%b HTTP/1.1\r\n\r\n" % (b"a" * MEGABYTE), id="endless-path"),
        pytest.param(b"GET / HTTP/1.1\r\nX: %b\r\n\r\n" % (b"y" * 5 * MEGABYTE), id="huge-header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X-Y: z\r\n" * 300_000, id="endless-headers"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="negative-length"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", id="text-length"),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two-lengths"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            id="length-and-chunks",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="bad-chunk"
        ),
    ],
)
def test_what_is_no_http_is_refused(server: RunningServer, raw: bytes) -> None:
    assert exchange(server, raw).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
    assert exchange(server, head(server, b"GET /healthz HTTP/1.1")).endswith(b"ok")


def test_not_tls(server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert b"HTTP" not in connection.recv(1000)


def test_cut_off_bodies_write_nothing(server: RunningServer) -> None:
    whole = named(b"cut")
    line = b"POST %b HTTP/1.1" % MAPS
    exchange(server, head(server, line, b"Content-Length: 500") + whole, hang_up=True)
    chunk = b"%x\r\n%b\r\n" % (len(whole), whole)
    exchange(server, head(server, line, b"Transfer-Encoding: chunked") + chunk, hang_up=True)

    assert not exists(server, "cut")


def test_chunks(server: RunningServer) -> None:
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in named(b"chunked")) + b"0\r\n\r\n"
    request = head(server, b"POST %b HTTP/1.1" % MAPS, b"Transfer-Encoding: chunked")

    assert exchange(server, request + body).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_large_bodies(server: RunningServer, announced: bool) -> None:
    """They are refused without being read, so that the connection has no use any more."""
    content = b"x" * 4 * MEGABYTE
    if announced:
        body, length = content, b"Content-Length: %d" % len(content)
    else:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
        length = b"Transfer-Encoding: chunked"
    first = head(server, b"POST %b HTTP/1.1" % MAPS, length)
    first = first.replace(b"Connection: close\r\n", b"")
    answer = exchange(server, first + body + head(server, b"GET /healthz HTTP/1.1"))

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert b'"reason":"RequestEntityTooLarge"' in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    body = named(b"pipelined")
    create = head(server, b"POST %b HTTP/1.1" % MAPS, b"Content-Length: %d" % len(body))
    create = create.replace(b"Connection: close\r\n", b"") + body
    read = head(server, b"GET %b/pipelined HTTP/1.1" % MAPS)

    answers = exchange(server, create * 2 + read).split(b"HTTP/1.1 ")

    assert [answer[:3] for answer in answers[1:]] == [b"201", b"409", b"200"]


def test_old_http_and_a_body_that_waits(server: RunningServer) -> None:
    old = head(server, b"GET %b HTTP/1.0" % MAPS)
    body = named(b"expected")
    line = b"POST %b HTTP/1.1" % MAPS
    waiting = head(server, line, b"Expect: 100-continue", b"Content-Length: %d" % len(body))
    too_large = head(server, line, b"Expect: 100-continue", b"Content-Length: 9000000")

    assert b'"kind":"ConfigMapList"' in exchange(server, old)
    assert exchange(server, waiting + body).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201")
    assert exchange(server, too_large).startswith(b"HTTP/1.1 413 ")


def test_clients_that_say_nothing_do_not_hold_up_the_end(own_server: RunningServer) -> None:
    """The server stops without waiting, although idle connections, a watch and half a request are open."""
    silent = []
    for begin in (
        b"",
        b"GET / HTTP/1.1\r\nHost:",
        head(own_server, b"GET /healthz HTTP/1.1").replace(b"close", b"keep-alive"),
        head(own_server, b"GET %b?watch=1 HTTP/1.1" % MAPS),
    ):
        connection = socket.create_connection(("127.0.0.1", own_server.port), 10)
        tls = own_server.tls.wrap_socket(connection, server_hostname="127.0.0.1")
        tls.sendall(begin)
        silent.append(tls)
    assert own_server.request("GET", "/healthz").code == 200
    own_server.stop()
    said = own_server.log()
    own_server.start()
    for tls in silent:
        tls.close()

    assert "timeout graceful shutdown exceeded" not in said


def test_many_idle_connections_with_few_file_descriptors(tmp_path: Path) -> None:
    """As with `ulimit -n 200` and twice as many connections that say nothing."""
    few = RunningServer(tmp_path, "sqlite", max_files=200)
    with few, contextlib.ExitStack() as stack:
        for _ in range(400):
            silent = socket.create_connection(("127.0.0.1", few.port), 10)
            stack.callback(silent.close)
        assert few.request("GET", "/readyz").code == 200
        assert few.request("POST", MAPS.decode(), named(b"kept")).code == 201
    assert "closing idle connections to make room" in few.log()
    assert "Traceback" not in few.log()


def test_requests_that_never_end_do_not_hold_up_the_end(own_server: RunningServer) -> None:
    """Half a body, an answer that is not read, and a watch: the server is given up within seconds."""
    large = b'{"metadata":{"name":"m-%d"},"data":{"a":"' + b"x" * 900_000 + b'"}}'
    for number in range(12):
        assert own_server.request("POST", MAPS.decode(), large % number).code == 201
    hanging = []
    for begin in (
        head(own_server, b"POST %b HTTP/1.1" % MAPS, b"Content-Length: 500") + b"{",
        head(own_server, b"GET %b HTTP/1.1" % MAPS),
        head(own_server, b"GET %b?watch=1 HTTP/1.1" % MAPS),
    ):
        connection = socket.create_connection(("127.0.0.1", own_server.port), 10)
        tls = own_server.tls.wrap_socket(connection, server_hostname="127.0.0.1")
        tls.sendall(begin)
        hanging.append(tls)
    assert own_server.request("GET", "/healthz").code == 200
    own_server.stop()
    said = own_server.log()
    own_server.start()
    for tls in hanging:
        tls.close()

    assert re.search(r"requests have not ended within \S+ s and are given up", said)
    assert "Traceback" not in said


def test_keys_that_others_can_read_are_complained_about(tmp_path: Path) -> None:
    exposed = RunningServer(tmp_path, "memory")
    with exposed:
        assert "can be read or written by others" not in exposed.log()
    key = tmp_path / "pki" / "ca.key"
    key.chmod(0o644)
    with exposed:
        pass
    assert f"{key} can be read or written by others (mode 0644): chmod 600 {key}" in exposed.log()


def test_limits_are_options(tmp_path: Path) -> None:
    options = [
        "--max-requests-inflight=3",
        "--max-mutating-requests-inflight=2",
        "--max-connections=9",
    ]
    with RunningServer(tmp_path, "memory", options=options) as limited:
        assert limited.request("GET", "/livez").code == 200
        metrics = limited.request("GET", "/metrics").body
        assert b"apiserver_flowcontrol_current_inqueue_requests" in metrics
        assert b'allot_apiserver_connections{state="busy"} 1.0' in metrics
