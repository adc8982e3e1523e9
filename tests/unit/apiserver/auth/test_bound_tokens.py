"""Tokens of service accounts: what they may be bound to, and when they are not accepted any more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest

from allot.testing.manifests import a_pod_manifest
from allot.testing.servers import LocalServer, ServerResponse

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
NODES = "/api/v1/nodes"
YEAR = 365 * 24 * 3600


async def request(server: LocalServer, account: str = "sa", **spec: Any) -> ServerResponse:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return await server.ask("POST", f"{ACCOUNTS}/{account}/token", body)


async def token(server: LocalServer, **spec: Any) -> str:
    issued = await request(server, **spec)
    assert issued.code == 201, issued
    return str(issued.json["status"]["token"])


async def accepted(server: LocalServer, given: str) -> bool:
    """Whether the token says who asks: its account may ask for the version, an unknown one is refused."""
    answer = await server.ask("GET", "/version", headers={"authorization": f"Bearer {given}"})
    assert answer.code in (200, 401)
    return answer.code == 200


async def populate(server: LocalServer) -> None:
    await server.post(ACCOUNTS, {"metadata": {"name": "sa"}})
    await server.post(ACCOUNTS, {"metadata": {"name": "other"}})
    await server.post(NODES, {"metadata": {"name": "n1"}})
    await server.post(PODS, a_pod_manifest("p", serviceAccountName="sa", nodeName="n1"))
    await server.post(SECRETS, {"metadata": {"name": "s"}})


def bound(kind: str, name: str, **more: str) -> dict[str, Any]:
    return {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, **more}}


@pytest.mark.parametrize(
    ("spec", "path", "again"),
    [
        pytest.param({}, f"{ACCOUNTS}/sa", {"metadata": {"name": "sa"}}, id="account"),
        pytest.param(
            bound("Pod", "p"), f"{PODS}/p?gracePeriodSeconds=0", a_pod_manifest("p"), id="pod"
        ),
        pytest.param(
            bound("Secret", "s"), f"{SECRETS}/s", {"metadata": {"name": "s"}}, id="secret"
        ),
        pytest.param(bound("Node", "n1"), f"{NODES}/n1", {"metadata": {"name": "n1"}}, id="node"),
        pytest.param(
            bound("Pod", "p"), f"{ACCOUNTS}/sa", {"metadata": {"name": "sa"}}, id="account-of-pod"
        ),
    ],
)
def test_tokens_end_with_what_they_are_bound_to(
    spec: dict[str, Any], path: str, again: dict[str, Any]
) -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await populate(server)
            given = await token(server, **spec)
            unbound = await token(server)
            assert await accepted(server, given)
            assert (await server.ask("DELETE", path)).code == 200
            assert not await accepted(server, given)
            assert await accepted(server, unbound) == ("serviceaccounts" not in path)
            # Another one with the same name is not the same.
            collection = path.partition("?")[0].rpartition("/")[0]
            await server.post(collection, again)
            assert not await accepted(server, given)

    asyncio.run(story())


def test_a_token_of_a_pod_outlives_its_node() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await populate(server)
            given = await token(server, **bound("Pod", "p"))
            await server.ask("DELETE", f"{NODES}/n1")
            assert await accepted(server, given)

    asyncio.run(story())


def test_claims_of_a_bound_token() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await populate(server)
            pod, node = await server.get(f"{PODS}/p"), await server.get(f"{NODES}/n1")
            claims = _claims(await token(server, **bound("Pod", "p")))["kubernetes.io"]
            assert claims["pod"] == {"name": "p", "uid": pod["metadata"]["uid"]}
            assert claims["node"] == {"name": "n1", "uid": node["metadata"]["uid"]}
            account = await server.get(f"{ACCOUNTS}/sa")
            assert claims["serviceaccount"]["uid"] == account["metadata"]["uid"]
            claims = _claims(await token(server, **bound("Node", "n1")))["kubernetes.io"]
            assert claims.keys() == {"namespace", "serviceaccount", "node"}
            claims = _claims(await token(server))["kubernetes.io"]
            assert claims.keys() == {"namespace", "serviceaccount"}

    asyncio.run(story())


def _claims(given: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(given, options={"verify_signature": False})
    return claims


@pytest.mark.parametrize(
    ("account", "spec", "code", "message"),
    [
        pytest.param("sa", bound("Pod", "none"), 404, 'pods "none" not found', id="no-pod"),
        pytest.param(
            "sa", bound("Secret", "none"), 404, 'secrets "none" not found', id="no-secret"
        ),
        pytest.param("sa", bound("Node", "none"), 404, 'nodes "none" not found', id="no-node"),
        pytest.param("none", {}, 404, 'serviceaccounts "none" not found', id="no-account"),
        pytest.param(
            "other",
            bound("Pod", "p"),
            400,
            'cannot bind token for serviceaccount "other" to pod running with different '
            "serviceaccount name.",
            id="pod-of-another",
        ),
        pytest.param(
            "sa",
            bound("Pod", "p", uid="xyz"),
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (xyz) '
            "does not match the UID in record. The object might have been deleted and then recreated",
            id="another-uid",
        ),
        pytest.param(
            "sa",
            bound("Deployment", "d", apiVersion="apps/v1"),
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
            id="kind",
        ),
        pytest.param(
            "sa",
            {"boundObjectRef": {}},
            400,
            "cannot bind token to object of type /, Kind=",
            id="empty",
        ),
        pytest.param("sa", bound("Pod", ""), 400, "Name parameter required.", id="no-name"),
        pytest.param("sa", {"boundObjectRef": 7}, 400, None, id="number"),
        pytest.param("sa", {"boundObjectRef": {"kind": 7}}, 400, None, id="number-as-kind"),
        pytest.param("sa", {"expirationSeconds": 599}, 422, None, id="too-short"),
        pytest.param("sa", {"expirationSeconds": 2**32 + 1}, 422, None, id="too-long"),
    ],
)
def test_requests_that_are_refused(
    account: str, spec: dict[str, Any], code: int, message: str | None
) -> None:
    async def story() -> ServerResponse:
        async with LocalServer() as server:
            await populate(server)
            return await request(server, account, **spec)

    refused = asyncio.run(story())
    assert refused.code == code, refused
    assert message is None or refused.json["message"] == message


def test_a_request_for_another_account_of_the_same_name() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await populate(server)
            body = {"metadata": {"uid": "u"}, "spec": {}}
            refused = await server.ask("POST", f"{ACCOUNTS}/sa/token", body)
            assert refused.code == 409
            assert "the UID in the token request (u) does not match" in refused.json["message"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("asked", "given"), [(600, 600), (None, 3600), (YEAR, YEAR), (YEAR + 1, YEAR), (2**32, YEAR)]
)
def test_lifetimes_are_limited(asked: int | None, given: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    async def story() -> ServerResponse:
        async with LocalServer(clock=lambda: now) as server:
            await populate(server)
            return await request(server, expirationSeconds=asked)

    issued = asyncio.run(story())
    assert issued.json["spec"]["expirationSeconds"] == given
    claims = _claims(issued.json["status"]["token"])
    assert claims["exp"] - claims["iat"] == given
    warned = [text for text in issued.header("warning") if "shortened to" in text]
    assert bool(warned) == (asked is not None and asked > given)


def test_an_account_that_is_long_being_deleted() -> None:
    """A minute after its deletion was asked for, an account that finalizers keep is as good as gone."""
    now = [datetime.now(UTC).replace(microsecond=0)]

    async def story() -> None:
        async with LocalServer(clock=lambda: now[0]) as server:
            kept = {"metadata": {"name": "sa", "finalizers": ["example.com/keep"]}}
            await server.post(ACCOUNTS, kept)
            given = await token(server)
            assert (await server.ask("DELETE", f"{ACCOUNTS}/sa")).code == 200
            assert await accepted(server, given)
            now[0] = datetime.fromtimestamp(now[0].timestamp() + 61, UTC)
            assert not await accepted(server, given)

    asyncio.run(story())
