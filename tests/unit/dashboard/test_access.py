"""Which requests are answered: the token, the Host, the Origin."""

from __future__ import annotations

import pytest

from allot.dashboard.access import Access

ACCESS = Access("127.0.0.1", 8440, "secret")
COOKIES = {"allot-dashboard-8440": "secret"}


@pytest.mark.parametrize(
    ("headers", "cookies", "status"),
    [
        pytest.param({"Host": "127.0.0.1:8440"}, COOKIES, None, id="with-the-cookie"),
        pytest.param({"Host": "localhost:8440"}, COOKIES, None, id="localhost"),
        pytest.param({"Host": "[::1]:8440"}, COOKIES, None, id="ipv6"),
        pytest.param({"Host": "127.0.0.1:8440"}, {}, 401, id="without-the-cookie"),
        pytest.param(
            {"Host": "127.0.0.1:8440"}, {"allot-dashboard-8440": "x"}, 401, id="wrong-token"
        ),
        pytest.param(
            {"Host": "127.0.0.1:8440"}, {"allot-dashboard-9": "secret"}, 401, id="of-another-port"
        ),
        pytest.param({"Host": "evil.example.com:8440"}, COOKIES, 421, id="dns-rebinding"),
        pytest.param({"Host": "[:8440"}, COOKIES, 421, id="not-a-host"),
        pytest.param({}, COOKIES, 421, id="no-host"),
        pytest.param(
            {"Host": "127.0.0.1:8440", "Origin": "http://127.0.0.1:8440"}, COOKIES, None, id="own"
        ),
        pytest.param(
            {"Host": "127.0.0.1:8440", "Origin": "http://evil.example.com"},
            COOKIES,
            403,
            id="another-origin",
        ),
        pytest.param(
            {"Host": "127.0.0.1:8440", "Origin": "null"}, COOKIES, 403, id="opaque-origin"
        ),
        pytest.param(
            {"Host": "127.0.0.1:8440", "Origin": "http://["}, COOKIES, 403, id="not-an-origin"
        ),
        pytest.param(
            {"Host": "127.0.0.1:8440", "Sec-Fetch-Site": "cross-site"},
            COOKIES,
            403,
            id="cross-site",
        ),
        pytest.param(
            {
                "Host": "127.0.0.1:8440",
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
            {},
            401,
            id="link-on-another-site",
        ),
        pytest.param(
            {
                "Host": "127.0.0.1:8440",
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "iframe",
            },
            COOKIES,
            403,
            id="frame-on-another-site",
        ),
    ],
)
def test_requests(headers: dict[str, str], cookies: dict[str, str], status: int | None) -> None:
    refusal = ACCESS.refusal(headers, cookies)

    assert (refusal.status if refusal is not None else None) == status


def test_a_name_that_the_server_was_told_to_listen_on() -> None:
    access = Access("dash.example.com", 80, "secret")

    assert access.misdirected({"Host": "dash.example.com"}) is None


def test_tokens_are_random() -> None:
    assert Access("127.0.0.1", 1).token != Access("127.0.0.1", 1).token
    assert len(Access("127.0.0.1", 1).token) >= 32
