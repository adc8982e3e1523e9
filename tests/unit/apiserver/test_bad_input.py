"""Bad input is answered with a 4xx that names the problem, and nothing that is stored changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.clients.in_process import InProcessServer

DEFAULT: Final = "/api/v1/namespaces/default"
MAPS: Final = f"{DEFAULT}/configmaps"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SCALE: Final = "/apis/apps/v1/namespaces/default/deployments/d/scale"
TOKENS: Final = f"{DEFAULT}/serviceaccounts/sa/token"
BINDING: Final = f"{DEFAULT}/pods/p/binding"
EVICTION: Final = f"{DEFAULT}/pods/p/eviction"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
YAML: Final = "application/yaml"

_POD: Final = {"containers": [{"name": "c", "image": "i"}]}
_STORED: Final[list[tuple[str, dict[str, Any]]]] = [
    (MAPS, {"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"k": "v"}}),
    (f"{DEFAULT}/pods", {"metadata": {"name": "p"}, "spec": {**_POD, "nodeName": "n"}}),
    (f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "sa"}}),
    (
        CLAIMS,
        {
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
        },
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
            },
        },
    ),
]


@pytest.fixture(scope="module")
def filled() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        for path, document in _STORED:
            assert server.request("POST", path, document).code == 201
        yield server


@pytest.fixture
def server(filled: InProcessServer, caplog: pytest.LogCaptureFixture) -> Iterator[InProcessServer]:
    """A server with one object of some kinds, which no test may change."""
    before = filled.stored()
    yield filled
    assert filled.stored() == before
    assert caplog.records == []


def refusal(
    server: InProcessServer,
    method: str,
    path: str,
    body: Any = b"",
    content_type: str | None = "application/json",
    **more: Any,
) -> tuple[int, str]:
    """The code and message of the Status that answers a bad request."""
    answer = server.request(method, path, body, content_type, **more)
    assert 400 <= answer.code < 500, answer
    assert answer.headers["content-type"] == "application/json", answer
    status = answer.json
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["code"] == answer.code
    return answer.code, status["message"]


def nested(opening: bytes, closing: bytes, levels: int) -> bytes:
    return b'{"metadata":{"name":"x"},"zz":' + opening * levels + b"1" + closing * levels + b"}"


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        pytest.param(b"", 400, "empty", id="empty"),
        pytest.param(b'{"metadata":{"na', 400, "unexpected end of JSON input", id="cut-off"),
        pytest.param(b"null", 400, "null", id="null"),
        pytest.param(b"[]", 400, "array", id="array"),
        pytest.param(b'"x"', 400, "str", id="text"),
        pytest.param(b"{}", 422, "metadata.name", id="nothing-in-it"),
        pytest.param(b'{"metadata":7}', 400, "metadata", id="metadata-number"),
        pytest.param(b'{"metadata":{"name":7}}', 400, "metadata.name", id="name-number"),
        pytest.param(b'{"metadata":{"name":"A B"}}', 422, "metadata.name", id="bad-name"),
        pytest.param(b'{"metadata":{"name":".."}}', 422, "metadata.name", id="dots"),
        pytest.param(b'{"metadata":{"name":"a/b"}}', 422, "metadata.name", id="slash"),
        pytest.param(b'{"metadata":{"name":"\\u0000"}}', 422, "metadata.name", id="nul"),
        pytest.param(
            b'{"metadata":{"name":"%b"}}' % (b"a" * 254), 422, "metadata.name", id="long-name"
        ),
        pytest.param(b'{"metadata":{"name":"x"},"data":{"a":1}}', 400, "data", id="wrong-type"),
        pytest.param(
            b'{"metadata":{"name":"x"},"data":{"a":NaN}}',
            400,
            "looking for beginning of value",
            id="nan",
        ),
        pytest.param(b'{"metadata":{"name":"x"},"zz":1e999}', 400, "range", id="infinite"),
        pytest.param(b'{"metadata":{"name":"x"},"zz":%b}' % (b"9" * 5000), 400, "range", id="huge"),
        pytest.param(
            b'{"metadata":{"name":"x","generation":99999999999999999999}}',
            400,
            "generation",
            id="beyond-int64",
        ),
        pytest.param(b'\xff\xfe{"metadata":{"name":"x"}}', 400, "utf-8", id="utf-16-mark"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', 400, "utf-8", id="not-utf-8"),
        pytest.param(
            b'{"metadata":{"name":"x"},"zz":"\\ud800"}', 400, "json parse error", id="surrogate"
        ),
        pytest.param(nested(b"[", b"]", 2000), 400, "nested too deeply", id="nested-lists"),
        pytest.param(
            nested(b'{"a":', b"}", 100_000), 400, "nested too deeply", id="nested-objects"
        ),
        pytest.param(b'{"kind":"Pod","metadata":{"name":"x"}}', 400, "Pod", id="wrong-kind"),
        pytest.param(b'{"apiVersion":"v2","metadata":{"name":"x"}}', 400, "v2", id="wrong-version"),
        pytest.param(
            b'{"metadata":{"name":"x","namespace":"o"}}', 400, "namespace", id="elsewhere"
        ),
        pytest.param(b'{"metadata":{"name":"x","resourceVersion":"1"}}', 422, "Version", id="rv"),
        pytest.param(b'{"metadata":{"name":"x","labels":{"a b":"c"}}}', 422, "labels", id="label"),
        pytest.param(
            b'{"metadata":{"name":"x"},"data":{"a":"%b"}}' % (b"x" * 4_000_000),
            413,
            "too large",
            id="4-MB",
        ),
    ],
)
def test_objects(server: InProcessServer, body: bytes, code: int, named: str) -> None:
    found, message = refusal(server, "POST", MAPS, body)

    assert found == code
    assert named.lower() in message.lower()


def test_duplicate_and_unknown_fields_are_refused_if_asked(server: InProcessServer) -> None:
    strict = f"{MAPS}?fieldValidation=Strict"

    twice = refusal(server, "POST", strict, b'{"metadata":{"name":"x","name":"y"}}')
    unknown = refusal(server, "POST", strict, b'{"metadata":{"name":"x"},"zzz":1}')
    both = refusal(server, "POST", strict, b"metadata: {name: x}\nzzz: 1\nzzz: 2", YAML)

    assert twice[0] == unknown[0] == both[0] == 400
    assert 'duplicate field "metadata.name"' in twice[1]
    assert 'unknown field "zzz"' in unknown[1]
    assert 'duplicate field "zzz"' in both[1]


BOMB: Final = b"".join(
    b"a%d: &a%d [%b]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 10))
    for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        pytest.param(b"a: [", "line 2", id="cut-off"),
        pytest.param(b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + BOMB, "aliases", id="bomb"),
        pytest.param(b"a: &a [*a]", "unknown alias", id="into-itself"),
        pytest.param(b"{a: " * 5000, "levels deep", id="nested"),
        pytest.param(b"metadata: {name: x}\n---\nb: 1", "more than one", id="two-documents"),
        pytest.param(b"? [a]\n: b", "keys", id="list-as-key"),
        pytest.param(b"a: .nan", ".nan", id="nan"),
        pytest.param(b"a: !!python/object:os.system {}", "tag", id="python-tag"),
        pytest.param(b"a: \x00", "line 1", id="control-character"),
        pytest.param(b"a: \xff", "UTF-8", id="not-utf-8"),
        pytest.param(b"", "empty", id="empty"),
    ],
)
def test_yaml(server: InProcessServer, body: bytes, named: str) -> None:
    answer = server.request("POST", MAPS, body or b" ", YAML)

    assert answer.code == 400
    assert named in answer.json["message"] or not body


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", MAPS, "text/plain"),
        ("POST", MAPS, "application/x-www-form-urlencoded"),
        ("POST", MAPS, JSON_PATCH),
        ("PUT", f"{MAPS}/m", "image/png"),
        ("PATCH", f"{MAPS}/m", "application/json"),
        ("PATCH", f"{MAPS}/m", None),
        ("DELETE", f"{MAPS}/m", "text/plain"),
        ("POST", BINDING, "text/plain"),
        ("PATCH", SCALE, "application/json"),
    ],
)
def test_content_types(
    server: InProcessServer, method: str, path: str, content_type: str | None
) -> None:
    code, message = refusal(server, method, path, b'{"metadata":{}}', content_type)

    assert code == 415
    wanted = (
        "415: Unsupported"
        if method == "PATCH"
        else "accepted media types include: application/json"
    )
    assert wanted in message


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Zzz;v=v1;g=meta.k8s.io"])
def test_unacceptable_accept_headers(server: InProcessServer, accept: str) -> None:
    """It is known before anything is written."""
    document = {"metadata": {"name": "x"}}
    code, message = refusal(server, "POST", MAPS, document, headers={"accept": accept})

    assert code == 406
    assert "application/json" in message


@pytest.mark.parametrize(
    ("content_type", "patch", "code", "named"),
    [
        (MERGE_PATCH, b"{", 400, "invalid JSON patch"),
        (MERGE_PATCH, b"[]", 400, "cannot unmarshal array into Go value"),
        (MERGE_PATCH, b"null", 400, "Invalid JSON Patch"),
        (MERGE_PATCH, b'{"a":' * 5000, 400, "nested too deeply"),
        (MERGE_PATCH, b'{"metadata":null}', 400, "name must be provided"),
        (MERGE_PATCH, b'{"metadata":{"name":"z"}}', 400, "does not match the name"),
        (MERGE_PATCH, b'{"metadata":{"uid":"z"}}', 422, "metadata.uid"),
        (MERGE_PATCH, b'{"metadata":{"resourceVersion":"1"}}', 409, "modified"),
        (MERGE_PATCH, b'{"metadata":{"labels":{"a":7}}}', 422, "labels"),
        (MERGE_PATCH, b'{"kind":"Pod"}', 422, "Pod"),
        (MERGE_PATCH, b'{"data":"x"}', 422, "ConfigMap.data of type"),
        (STRATEGIC_PATCH, b"1", 400, "cannot unmarshal number into Go value"),
        (STRATEGIC_PATCH, b'{"$patch":"zz"}', 422, "zz"),
        (STRATEGIC_PATCH, b'{"$patch":"delete"}', 400, "name"),
        (STRATEGIC_PATCH, b'{"metadata":{"$retainKeys":1}}', 400, "retainKeys"),
        (STRATEGIC_PATCH, b'{"metadata":{"ownerReferences":[1]}}', 422, "OwnerReference"),
        (JSON_PATCH, b"{}", 400, "[]handlers.jsonPatchOp"),
        (JSON_PATCH, b"[1]", 400, "handlers.jsonPatchOp"),
        (JSON_PATCH, b'[{"op":"zz","path":"/a"}]', 422, "operation"),
        (JSON_PATCH, b'[{"op":"add"}]', 422, "path"),
        (JSON_PATCH, b'[{"op":"add","path":"a","value":1}]', 422, "slash"),
        (JSON_PATCH, b'[{"op":"remove","path":"/no/such"}]', 422, "no"),
        (JSON_PATCH, b'[{"op":"remove","path":""}]', 422, "slash"),
        (JSON_PATCH, b'[{"op":"test","path":"/data/k","value":"w"}]', 422, "another"),
        (JSON_PATCH, b'[{"op":"move","from":"/data","path":"/data/k"}]', 422, "itself"),
        (JSON_PATCH, b'[{"op":"add","path":"/data/~2","value":"x"}]', 422, "~"),
        (JSON_PATCH, b'[{"op":"replace","path":"","value":3}]', 422, "error in our request"),
        (JSON_PATCH, json.dumps([{"op": "remove", "path": "/x"}] * 10_001).encode(), 413, "10000"),
    ],
)
def test_patches(
    server: InProcessServer, content_type: str, patch: bytes, code: int, named: str
) -> None:
    found, message = refusal(server, "PATCH", f"{MAPS}/m", patch, content_type)

    assert found == code
    assert named in message


def token(**content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("query", "code", "named"),
    [
        ("labelSelector=a%3Db%3Dc", 400, "found '='"),
        ("labelSelector=a%20in%20(", 400, "expected"),
        ("labelSelector=!", 400, "identifier"),
        ("labelSelector=%00", 400, "\\x00"),
        ("labelSelector=%zz", 400, "%zz"),
        (f"labelSelector={'(' * 5000}", 400, "found '('"),
        ("fieldSelector=spec.zz%3Dx", 400, "spec.zz"),
        ("fieldSelector=zz", 400, "zz"),
        ("fieldSelector=metadata.name%3D%5C", 400, "escape"),
        ("limit=x", 400, "x"),
        ("limit=1_0", 400, "1_0"),
        ("limit=99999999999999999999", 400, "9999"),
        ("continue=x", 400, "continue key"),
        ("continue=%ff", 400, "continue key"),
        (f"continue={'A' * 9999}", 400, "too long"),
        (f"continue={token(v='zz', rv=1, start='a')}", 400, "zz"),
        (f"continue={token(v='meta.k8s.io/v1', rv=-1, start='a')}", 400, "resourceVersion"),
        (f"continue={token(v='meta.k8s.io/v1', rv=1, start='../a')}", 400, "point"),
        (f"continue={token(v='meta.k8s.io/v1', rv=10**9, start='a')}", 400, "not happened"),
        ("resourceVersion=-1", 400, "-1"),
        ("resourceVersion=abc", 400, "abc"),
        ("resourceVersion=99999999999999999999", 400, "9999"),
        ("resourceVersion=1&resourceVersionMatch=zz", 422, "zz"),
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, "Exact"),
        ("watch=1&resourceVersion=abc", 400, "abc"),
        ("watch=1&timeoutSeconds=abc", 400, "abc"),
        ("watch=1&sendInitialEvents=true", 422, "resourceVersionMatch"),
        ("watch=1&labelSelector=,,", 400, "expected"),
        ("&".join(["a=b"] * 200), 400, "query"),
    ],
)
def test_queries(server: InProcessServer, query: str, code: int, named: str) -> None:
    found, message = refusal(server, "GET", f"{MAPS}?{query}")

    assert found == code
    assert named in message


@pytest.mark.parametrize("name", ["a%3Db", "a%2Cb", "a%5C", "%5C%2C", "a%21%3Db"])
def test_a_watch_of_a_name_that_looks_like_a_selector(server: InProcessServer, name: str) -> None:
    """No object can have it, but that is no reason to fail."""
    assert server.request("GET", f"{MAPS}/{name}?watch=1").code == 200


def test_quantities_may_be_numbers_with_a_fraction(server: InProcessServer) -> None:
    """As texts they would be in quotes, which people forget."""
    resources = {"requests": {"cpu": 0.5}, "limits": {"cpu": 0.5, "memory": 1e3}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    pod = {"metadata": {"name": "fraction"}, "spec": {**spec, "resources": resources}}

    answer = server.request("POST", f"{DEFAULT}/pods?dryRun=All", pod)

    assert answer.code == 201


@pytest.mark.parametrize("path", [CLAIMS, MAPS])
@pytest.mark.parametrize("as_patch", [False, True])
def test_invalid_utf_8_is_refused_wherever_it_is(
    server: InProcessServer, path: str, as_patch: bool
) -> None:
    for body in (
        b'{"metadata":{"name":"c"},"\xff":1}',
        b'{"zz":{"a":"\xff"}}',
        b'{"zz":["\xed\xa0\x80"]}',
    ):
        if as_patch:
            name = "c" if path == CLAIMS else "m"
            code, message = refusal(server, "PATCH", f"{path}/{name}", body, MERGE_PATCH)
        else:
            code, message = refusal(server, "POST", path, body)
            assert f"invalid UTF-8 at byte {body.index(max(body))}" in message
        assert code == 400


def test_a_bad_selector_deletes_nothing(server: InProcessServer) -> None:
    for query in ("labelSelector=%zz", "labelSelector=a%20in%20(", "fieldSelector=zz"):
        assert refusal(server, "DELETE", f"{MAPS}?{query}")[0] == 400


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "truncated"),
        (b"[]", "array"),
        (b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m"}}', "ConfigMap"),
        (b'{"gracePeriodSeconds":"x"}', "gracePeriodSeconds"),
        (b'{"gracePeriodSeconds":99999999999999999999}', "gracePeriodSeconds"),
        (b'{"propagationPolicy":"zz"}', "propagationPolicy"),
        (b'{"preconditions":{"uid":"zz"}}', "UID"),
        (b'{"preconditions":{"resourceVersion":"zz"}}', "zz"),
        (b'{"dryRun":["zz"]}', "dryRun"),
        (b'{"orphanDependents":true,"propagationPolicy":"Orphan"}', "orphanDependents"),
    ],
)
def test_delete_options(server: InProcessServer, body: bytes, named: str) -> None:
    assert named in refusal(server, "DELETE", f"{MAPS}/m", body)[1]


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("POST", BINDING, {"target": 3}, "target"),
        ("POST", BINDING, {"target": {"name": 3}}, "target.name"),
        (
            "POST",
            BINDING,
            {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}},
            "target.kind",
        ),
        ("POST", BINDING, {"metadata": {"name": "q"}, "target": {"name": "n"}}, "does not match"),
        ("POST", BINDING, {"metadata": {"labels": 3}, "target": {"name": "n"}}, "labels"),
        ("POST", BINDING, {"metadata": {"name": "p"}, "target": {"name": "n"}}, "already assigned"),
        ("POST", BINDING, b'{"a":"\xff"}', "UTF-8"),
        ("POST", BINDING, b'{"a":1e999}', "range"),
        ("POST", EVICTION, {"deleteOptions": 3}, "deleteOptions"),
        (
            "POST",
            EVICTION,
            {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "x"}}},
            "UID",
        ),
        ("POST", EVICTION, {}, "name in URL"),
        ("POST", EVICTION, {"kind": "Pod"}, "Pod"),
        (
            "POST",
            f"{DEFAULT}/pods/none/eviction",
            {"metadata": {"name": "none"}},
            "not found",
        ),
        ("POST", TOKENS, {"spec": 3}, "spec"),
        ("POST", TOKENS, {"spec": {"audiences": 3}}, "audiences"),
        ("POST", TOKENS, {"spec": {"expirationSeconds": 1}}, "10 minutes"),
        ("POST", TOKENS, {"spec": {"expirationSeconds": 2**40}}, "2^32"),
        ("PUT", SCALE, {}, "name must be provided"),
        ("PUT", SCALE, {"metadata": {"name": "d"}, "spec": {"replicas": "x"}}, "replicas"),
        ("PUT", SCALE, {"metadata": {"name": "d"}, "spec": {"replicas": -1}}, "replicas"),
        ("PUT", SCALE, {"metadata": {"name": "d"}, "spec": {"replicas": 2**40}}, "replicas"),
        ("PUT", "/api/v1/namespaces/default/finalize", {}, "name must be provided"),
        ("PUT", f"{DEFAULT}/pods/p/status", {"metadata": {"name": "q"}}, "does not match"),
        ("PUT", f"{CLAIMS}/c/status", {"metadata": {"name": "c"}, "status": 3}, "status"),
        ("PUT", f"{DEFAULT}/pods/p/none", {}, "could not find"),
        ("PATCH", f"{MAPS}/m/status", {}, "could not find"),
        ("PUT", f"{MAPS}/m/scale", {}, "could not find"),
    ],
)
def test_subresources(
    server: InProcessServer, method: str, path: str, body: Any, named: str
) -> None:
    assert named in refusal(server, method, path, body)[1]


@pytest.mark.parametrize("patch", [{"metadata": 3}, {"spec": 3}, {"spec": {"replicas": "x"}}])
def test_scale_patches(server: InProcessServer, patch: Any) -> None:
    assert refusal(server, "PATCH", SCALE, patch, MERGE_PATCH)[0] == 422


@pytest.mark.parametrize(
    "path",
    [
        f"{MAPS}/..%2fm",
        f"{MAPS}/%2e%2e",
        f"{MAPS}/m%00",
        f"{MAPS}/%ff",
        f"{MAPS}/{'a' * 5000}",
        f"{MAPS}/m%2Fstatus",
    ],
)
def test_names_in_paths(server: InProcessServer, path: str) -> None:
    code, message = refusal(server, "GET", path)

    assert code == 404
    assert "not found" in message


@pytest.mark.parametrize(
    "path",
    [
        f"{MAPS}/../secrets",
        f"{MAPS}//m",
        "/api/v1/namespaces//configmaps",
        "/api/v1/namespaces/default%2Fconfigmaps/m",
        "/api/v1/zzz",
        "/api/v1/pods/p",
    ],
)
def test_paths_that_lead_nowhere(server: InProcessServer, path: str) -> None:
    assert server.request("GET", path).code == 404
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert refusal(server, method, path, b"{}")[0] == 404


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/apis/zzz/v1/pods", "/apis//v1/pods", "/zzz"])
def test_paths_outside_of_apis(server: InProcessServer, method: str, path: str) -> None:
    answer = server.request(method, path, b"{}")
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PROPFIND", "get", ""])
def test_methods(server: InProcessServer, method: str) -> None:
    assert refusal(server, method, MAPS)[0] == 405


@pytest.mark.parametrize("wrong", ["zz", "a.b.c", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.", "\xff"])
def test_wrong_tokens(server: InProcessServer, wrong: str) -> None:
    assert refusal(server, "GET", MAPS, token=wrong) == (401, "Unauthorized")


def test_requests_without_a_token_are_anonymous(server: InProcessServer) -> None:
    for headers in ({}, {"authorization": "Basic YTpi"}):
        code, message = refusal(server, "GET", MAPS, token=None, headers=headers)
        assert code == 403
        assert "system:anonymous" in message


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("dryRun=zz", "dryRun"),
        ("fieldValidation=zz", "fieldValidation"),
        (f"fieldManager={'a' * 200}", "fieldManager"),
        ("fieldManager=%00", "fieldManager"),
    ],
)
def test_write_options(server: InProcessServer, query: str, named: str) -> None:
    code, message = refusal(server, "POST", f"{MAPS}?{query}", {"metadata": {"name": "x"}})

    assert code == 422
    assert named in message


def test_body_that_never_ends(filled: InProcessServer) -> None:
    """The client leaves in the middle of the body, at whatever place: nothing is written."""
    before = filled.stored()
    whole = b'{"metadata":{"name":"cut"},"data":{"k":"v"}}'
    for end in range(0, len(whole) + 1, 7):
        assert filled.cut_off("POST", MAPS, whole[:end]) == 0
    assert filled.stored() == before


@pytest.mark.parametrize("grace", [2**63 - 1, -(2**63), 0])
def test_pods_can_be_deleted_with_any_grace(grace: int) -> None:
    with InProcessServer() as server:
        server.request("POST", _STORED[1][0], _STORED[1][1])
        path = f"{DEFAULT}/pods/p"

        assert server.request("DELETE", path, {"gracePeriodSeconds": grace}).code == 200
        server.request("DELETE", path, {"gracePeriodSeconds": 30})
        assert server.request("GET", path).code == (404 if grace == 0 else 200)
        server.request("DELETE", path, {"gracePeriodSeconds": 0})
        assert server.request("GET", path).code == 404
