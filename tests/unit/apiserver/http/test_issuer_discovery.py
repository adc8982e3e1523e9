"""Service account issuer discovery: tokens can be verified with what the server publishes."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt
import pytest

from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.testing.servers import LocalServer

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PLAIN_TOKEN, ACCOUNT_TOKEN = "plain", "account"
USERS = {
    PLAIN_TOKEN: User("someone", groups=(AUTHENTICATED,)),
    ACCOUNT_TOKEN: User(
        "system:serviceaccount:default:reader", groups=("system:serviceaccounts", AUTHENTICATED)
    ),
}


def test_a_token_is_verified_with_the_published_key() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(ACCOUNTS, {"metadata": {"name": "reader"}})
            asked = {"spec": {"audiences": ["vault"]}}
            issued = await server.post(f"{ACCOUNTS}/reader/token", asked)
            token = issued["status"]["token"]

            configuration = await server.get(CONFIGURATION)
            (key,) = (await server.get(KEYS))["keys"]

            assert configuration["jwks_uri"].endswith(KEYS)
            assert configuration["id_token_signing_alg_values_supported"] == [key["alg"]]
            assert jwt.get_unverified_header(token)["kid"] == key["kid"]
            public: Any = jwt.PyJWK(key).key
            claims = jwt.decode(
                token,
                public,
                algorithms=[key["alg"]],
                audience="vault",
                issuer=configuration["issuer"],
            )
            assert claims["sub"] == "system:serviceaccount:default:reader"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "content_type"),
    [(CONFIGURATION, "application/json"), (KEYS, "application/jwk-set+json")],
)
def test_the_documents_may_be_cached(path: str, content_type: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            answer = await server.ask("GET", path)

            assert answer.header("content-type") == [content_type]
            assert answer.header("cache-control") == ["public, max-age=3600"]
            for method in ("POST", "HEAD"):
                assert (await server.ask(method, path)).code == 405
            refused = await server.ask("GET", path, headers={"accept": "text/plain"})
            assert refused.code == 406
            assert refused.json["message"].endswith(f"representations: {content_type}")
            assert path in (await server.get("/"))["paths"]

    asyncio.run(run())


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
def test_service_accounts_may_read_them_and_others_may_not(path: str) -> None:
    async def run() -> None:
        async with LocalServer(users=USERS) as server:
            for token, code in ((ACCOUNT_TOKEN, 200), (PLAIN_TOKEN, 403)):
                headers = {"authorization": f"Bearer {token}"}
                assert (await server.ask("GET", path, headers=headers)).code == code

    asyncio.run(run())
