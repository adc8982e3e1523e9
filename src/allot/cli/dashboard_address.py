"""Where the dashboard listens, and the address that opens it."""

from __future__ import annotations

import socket
from typing import Final

from allot.cli.errors import CommandError

DEFAULT_PORT: Final = 8440
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - not listened on here


def listening_socket(address: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port on the default one, or on a free one. `CommandError`."""
    wanted = (DEFAULT_PORT, 0) if port is None else (port,)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for number in wanted:
        try:
            return socket.create_server((address, number), family=family)
        except OSError as error:
            if number == wanted[-1]:
                raise CommandError(
                    f"cannot listen on {address}:{number}: {error.strerror}"
                ) from None
    raise AssertionError("no port was tried")


def url_of(address: str, port: int) -> str:
    """The URL for a browser on this machine."""
    host = _ANY.get(address, address)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
