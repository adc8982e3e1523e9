"""The server over HTTP: signing in, refusals, headers, answers and the stream."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest

from allot.api.claims import ResourceClaim
from allot.client import resources
from allot.dashboard.access import Access
from allot.dashboard.cluster_source import FixedCluster
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.server import DashboardServer
from allot.testing.builders import (
    a_claim,
    a_consumer,
    a_device,
    a_node,
    a_pod,
    a_slice,
    an_allocation,
)
from allot.testing.observed_clusters import observed

MARKUP = "<img src=x onerror=alert(1)>"
LONG = "n" * 10_000


def a_source() -> FixedCluster:
    claim = a_claim(
        name=MARKUP, allocation=an_allocation("a"), reserved_for=[a_consumer("trainer")]
    )
    pod = a_pod("trainer").with_value(
        [{"name": "gpu", "resourceClaimName": MARKUP}], "spec", "resourceClaims"
    )
    slice_ = a_slice(a_device("a", {"model": MARKUP}), a_device(LONG))
    return FixedCluster("test", observed(a_node(), slice_, claim, pod))


class Page(NamedTuple):
    """A running server and a browser's session."""

    url: str
    access: Access
    dashboard: Dashboard
    session: aiohttp.ClientSession

    async def sign_in(self) -> None:
        async with self.session.get(f"{self.url}/?token={self.access.token}") as answer:
            assert answer.status == 200

    async def json(self, path: str, **query: str) -> Any:
        async with self.session.get(self.url + path, params=query) as answer:
            return json.loads(await answer.read())

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        async with self.session.post(self.url + path, json=body) as answer:
            return answer.status, json.loads(await answer.read())


@asynccontextmanager
async def running() -> AsyncIterator[Page]:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    access = Access("127.0.0.1", port)
    dashboard = Dashboard(a_source())
    server = DashboardServer(dashboard, access)
    await server.start(listening)
    jar = aiohttp.CookieJar(unsafe=True)  # for the cookies of an IP address
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        try:
            yield Page(f"http://127.0.0.1:{port}", access, dashboard, session)
        finally:
            await session.close()
            await server.stop()


def with_page(story: Callable[[Page], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running() as page:
            await story(page)

    asyncio.run(run())


def test_signing_in_exchanges_the_token_for_a_cookie() -> None:
    async def story(page: Page) -> None:
        url = f"{page.url}/?token={page.access.token}"
        async with page.session.get(url, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert (answer.status, answer.headers["Location"]) == (303, "/")
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        async with page.session.get(f"{page.url}/") as answer:
            assert answer.status == 200
            assert "<script" in await answer.text()

    with_page(story)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/", {}, 401, id="page"),
        pytest.param("/?token=wrong", {}, 401, id="wrong-token"),
        pytest.param("/static/app.js", {}, 401, id="file"),
        pytest.param("/static/follow_link.js", {}, 401, id="file-of-the-page-without-a-token"),
        pytest.param("/api/stream", {}, 401, id="stream"),
        pytest.param("/api/objects", {}, 401, id="objects"),
        pytest.param("/", {"Host": "evil.example.com"}, 421, id="other-host"),
        pytest.param("/nothing", {}, 401, id="unknown-path"),
    ],
)
def test_without_the_token_nothing_is_said(path: str, headers: dict[str, str], status: int) -> None:
    async def story(page: Page) -> None:
        async with page.session.get(page.url + path, headers=headers) as answer:
            assert answer.status == status
            assert "trainer" not in await answer.text()
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]

    with_page(story)


def test_headers_of_every_answer() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        for path in ("/", "/static/style.css", "/api/objects", "/api/device", "/nothing"):
            async with page.session.get(page.url + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "unsafe" not in policy
                assert "script-src 'self'" in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"

    with_page(story)


@pytest.mark.parametrize(
    "path",
    ["../server.py", "%2e%2e/server.py", "/etc/passwd", "..%2f..%2fserver.py", "__init__.py"],
)
def test_only_files_of_the_page_are_served(path: str) -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        async with page.session.get(f"{page.url}/static/{path}") as answer:
            assert answer.status == 404

    with_page(story)


def test_bodies_are_checked() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        url = f"{page.url}/api/what-if"
        async with page.session.post(url, data="x=1") as answer:
            assert answer.status == 415
        headers = {"Content-Type": "application/json"}
        async with page.session.post(url, data=b"{", headers=headers) as answer:
            assert answer.status == 400
        async with page.session.post(
            url, data=io.BytesIO(b" " * 1_100_000), headers=headers
        ) as answer:
            assert answer.status == 413
        async with page.session.get(f"{page.url}/api/history/floor?at=x") as answer:
            assert answer.status == 400

    with_page(story)


async def events(page: Page, count: int) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    async with page.session.get(f"{page.url}/api/stream") as answer:
        name = ""
        async for line in answer.content:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                found.append((name, json.loads(text.removeprefix("data: "))))
                if len(found) == count:
                    break
    return found


def test_the_stream_begins_with_everything() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        found = await events(page, 5)

        assert [name for name, _ in found] == ["status", "begin", "change", "ready", "figures"]
        (pool,) = found[2][1]["pools"]
        assert [place[1] for place in pool["places"]] == ["a", LONG]

    with_page(story)


def test_changes_are_streamed() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        await page.json("/api/history")  # the dashboard has started
        reading = asyncio.create_task(events(page, 7))
        while not page.dashboard.viewers:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        old: ResourceClaim = page.dashboard.source.objects.of(resources.RESOURCE_CLAIMS)[0]
        page.dashboard.source.objects.remove(resources.RESOURCE_CLAIMS, old.key)
        page.dashboard.source._changed(resources.RESOURCE_CLAIMS, old, None)
        found = await asyncio.wait_for(reading, 60)

        ((number, cell),) = next(
            data["cells"] for name, data in found if name == "change" and data.get("cells")
        )
        assert (number, cell[0]) == (0, 0)
        before = await page.json("/api/history/floor", at="1")
        assert [(each[0], each[1][0]) for each in before["cells"]] == [(0, 1)]

    with_page(story)


def test_details_lead_from_pod_to_claim_to_device() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        pod = await page.json("/api/pod", namespace="default", name="trainer")
        assert pod["entries"][0]["claim"] == f"default/{MARKUP}"
        claim = await page.json("/api/claim", namespace="default", name=MARKUP)
        assert claim["requests"][0]["devices"][0]["device"][2] == "a"
        assert claim["pods"][0]["pod"] == "default/trainer"
        driver, pool, device = claim["requests"][0]["devices"][0]["device"]
        detail = await page.json("/api/device", driver=driver, pool=pool, device=device)
        assert detail["row"]["heldBy"][0]["pods"] == ["default/trainer"]
        listed = await page.json("/api/objects", kind="claims", search="IMG")
        assert listed["total"] == 1
        assert (await page.json("/api/pod", namespace="default", name="x"))["error"]

    with_page(story)


def test_questions_are_answered_in_children() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        status, found = await page.post("/api/expression", {"expression": "device.name == 'a'"})
        assert (status, found["values"]) == (200, ["true", "false"])
        status, found = await page.post(
            "/api/what-if", {"changes": [{"kind": "drain", "value": "x"}]}
        )
        assert (status, "no Node x" in found["error"]) == (422, True)
        assert (await page.json("/api/pending"))["pods"] == 1
        assert "gpu-server" in (await page.json("/api/choices"))["profiles"]

    with_page(story)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        pytest.param("POST", "/", "GET, HEAD", id="page"),
        pytest.param("DELETE", "/static/app.js", "GET, HEAD", id="file"),
        pytest.param("PUT", "/api/objects", "GET, HEAD", id="answer"),
        pytest.param("GET", "/api/what-if", "POST", id="question"),
    ],
)
def test_other_methods_are_refused(method: str, path: str, allowed: str) -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        async with page.session.request(method, page.url + path) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, allowed)
            assert answer.headers["X-Frame-Options"] == "DENY"

    with_page(story)


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/objects"])
def test_head_is_get_without_the_body(path: str) -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        async with page.session.get(page.url + path) as answer:
            got, length = answer.status, answer.headers["Content-Length"]
            kind = answer.headers["Content-Type"]
        async with page.session.head(page.url + path) as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (got, length)
            assert answer.headers["Content-Type"] == kind
            assert await answer.read() == b""

    with_page(story)


@pytest.mark.parametrize("path", ["/api/", "/api/objects/", "/static", "/static/", "//"])
def test_other_paths_are_not_found(path: str) -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        async with page.session.get(page.url + path, allow_redirects=False) as answer:
            assert answer.status == 404
            assert json.loads(await answer.read())["error"]

    with_page(story)


def test_a_closed_page_is_forgotten() -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        assert len(await events(page, 1)) == 1  # then the connection is closed
        async with asyncio.timeout(60):
            while page.dashboard.viewers:
                await asyncio.sleep(0.01)

    with_page(story)


def test_a_client_that_goes_within_its_body_disturbs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(page: Page) -> None:
        await page.sign_in()
        port = int(page.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        cookie = f"{page.access.cookie}={page.access.token}"
        writer.write(
            f"POST /api/what-if HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()
        assert (await page.json("/api/pending"))["pods"] == 1

    with_page(story)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
