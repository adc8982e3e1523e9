"""Authentication: tokens, client certificates, impersonation, token files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from allot.apiserver.auth.authentication import (
    CertificateAuthenticator,
    Credentials,
    PeerCertificate,
    TokenFileError,
    User,
    read_token_file,
)
from allot.apiserver.http.protocol import peer_certificate
from allot.testing.servers import LocalServer, ServerResponse

MAPS = "/api/v1/namespaces/default/configmaps"
ALICE = User("alice", groups=("system:authenticated",))


@pytest.mark.parametrize(
    ("headers", "code", "message"),
    [
        pytest.param({"authorization": "Bearer wrong"}, 401, "Unauthorized", id="wrong-token"),
        pytest.param(
            {"authorization": ""},
            403,
            'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" '
            'in API group "" in the namespace "default"',
            id="anonymous",
        ),
        pytest.param(
            {"authorization": "Bearer alice-token"},
            403,
            'configmaps is forbidden: User "alice" cannot list resource "configmaps" '
            'in API group "" in the namespace "default"',
            id="no-administrator",
        ),
        pytest.param(
            {"impersonate-user": "bob", "impersonate-group": "dev"},
            403,
            'configmaps is forbidden: User "bob" cannot list resource "configmaps" '
            'in API group "" in the namespace "default"',
            id="impersonated",
        ),
        pytest.param(
            {"authorization": "Bearer alice-token", "impersonate-user": "admin"},
            403,
            'users "admin" is forbidden: User "alice" cannot impersonate resource "users" '
            'in API group "" at the cluster scope',
            id="may-not-impersonate",
        ),
        pytest.param({"impersonate-group": "system:masters"}, 400, "", id="group-without-user"),
        pytest.param(
            {"impersonate-user": "bob", "impersonate-group": "system:masters"},
            200,
            "",
            id="as-admin",
        ),
    ],
)
def test_authentication_and_impersonation(headers: dict[str, str], code: int, message: str) -> None:
    async def run() -> ServerResponse:
        async with LocalServer(users={"alice-token": ALICE}) as server:
            return await server.ask("GET", MAPS, headers=headers)

    refused = asyncio.run(run())
    assert refused.code == code
    if message:
        assert refused.json["message"] == message


def test_certificates_name_user_and_groups() -> None:
    parsed = {
        "subject": (
            (("organizationName", "system:masters"),),
            (("organizationName", "dev"),),
            (("commonName", "carol"),),
        )
    }
    certificate = peer_certificate(parsed)
    assert certificate == PeerCertificate("carol", ("system:masters", "dev"))
    user = asyncio.run(CertificateAuthenticator().authenticate(Credentials(None, certificate)))
    assert user == User("carol", groups=("system:masters", "dev", "system:authenticated"))
    assert peer_certificate(None) is None


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('t1,alice,u1\n\nt2,bob,u2,"dev,system:masters"\n')
    users = read_token_file(file)
    assert users["t1"] == User("alice", "u1", ("system:authenticated",))
    assert users["t2"].groups == ("dev", "system:masters", "system:authenticated")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t1,alice\n", "line 1: a token needs at least 3 columns"),
        ("t1,a,b\nt1,c,d\n", "line 2: duplicate token"),
        (",alice,u1\n", "line 1: the token or the user is empty"),
    ],
)
def test_bad_token_files(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(text)
    with pytest.raises(TokenFileError, match=problem):
        read_token_file(file)
