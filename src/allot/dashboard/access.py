"""Which requests the dashboard answers.

Every request needs the token: first in the address that was printed, then in a cookie. The Host must be an address or a
name that the server is known by, which keeps pages of other sites away whose names resolve to this machine (DNS
rebinding); an Origin must be that Host. Links on pages of other sites lead here: the browser does not send the cookie
with them, and the page that asks for the token loads itself again, if the browser has the cookie.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

TOKEN_PARAMETER: Final = "token"  # noqa: S105 - a name
COOKIE_SECONDS: Final = 30 * 24 * 3600

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    reason: str


class Access:
    """The token of one server, and the names that it is known by."""

    def __init__(self, address: str, port: int, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._host = address.lower()
        # Cookies do not depend on the port: several dashboards on one machine have different names.
        self.cookie = f"allot-dashboard-{port}"

    def refusal(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Refusal | None:
        """None if the request may be answered; names of headers are those of HTTP."""
        misdirected = self.misdirected(headers)
        if misdirected is not None:
            return misdirected
        if not self.is_token(cookies.get(self.cookie, "")):
            return Refusal(401, "open the address that allot printed: it has the token")
        return None

    def misdirected(self, headers: Mapping[str, str]) -> Refusal | None:
        """The refusal of a request for another host, or by a page of another site. Following a link is no such request."""
        host = headers.get("Host", "")
        if not self._is_own_host(host):
            return Refusal(421, f"this server is not {host[:100]}")
        origin = headers.get("Origin")
        if origin is not None and _host_of(origin) != host.lower():
            return Refusal(403, "requests from pages of other sites are refused")
        is_own = headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if not is_own and not _follows_link(headers):
            return Refusal(403, "requests from pages of other sites are refused")
        return None

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in ("localhost", self._host) or _is_address(name)


def _follows_link(headers: Mapping[str, str]) -> bool:
    """Whether the user goes to this page, from wherever."""
    mode, destination = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
    return mode == "navigate" and destination == "document"


def _host_of(origin: str) -> str | None:
    """Host and port of an Origin; None if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    """Whether it is an IP address: no DNS name can be made to resolve to it."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
