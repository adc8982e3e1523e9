"""Where the dashboard listens, and the address that opens it."""

from __future__ import annotations

import pytest

from allot.cli.dashboard_address import listening_socket, url_of
from allot.cli.errors import CommandError


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104 - not listened on
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("dash.example.com", "http://dash.example.com:80"),
    ],
)
def test_urls(address: str, url: str) -> None:
    assert url_of(address, 80) == url


def test_a_port_that_is_in_use() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(CommandError, match=f"cannot listen on 127.0.0.1:{port}"):
            listening_socket("127.0.0.1", port)


def test_without_a_port_there_is_always_one() -> None:
    with listening_socket("127.0.0.1", None) as first, listening_socket("127.0.0.1", None) as other:
        assert first.getsockname() != other.getsockname()
