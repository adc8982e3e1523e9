"""Random requests to every path, with every verb; the same ones for the same seed."""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import MEDIA_TYPE, encode_document, in_envelope
from allot.api.protobuf.wire import ProtobufError
from allot.apiserver.kinds.resources import RESOURCES, Resource
from tests.fuzz.documents import BAD_NAMES, NAMES, Documents

JSON: Final = "application/json"
YAML: Final = "application/yaml"
APPLY: Final = "application/apply-patch+yaml"
PROTOBUF: Final = MEDIA_TYPE
PATCHES: Final = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    APPLY,
)
OTHER_TYPES: Final = (
    "",
    "text/plain",
    "application/apply-patch+json",
    "application/vnd.kubernetes.protobuf",
    ";",
    "é",
)
ACCEPTED: Final = (
    JSON, YAML, "*/*", "", "text/html", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json", "application/json;q=x", ";;,=",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf,application/json;q=0.5", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;stream=watch",
)  # fmt: skip
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "é")
PAGES: Final = (
    "/", "/api", "/apis", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3", "/api/v1",
    "/openapi/v3/apis/resource.k8s.io/v1", "/apis/resource.k8s.io", "/apis/x", "/api/v2", "/x", "//", "/api/v1//", "/..",
    "/api/v1/namespaces/default/pods/a/b/c", "/api/v1/pods/a", "/livez/ping", "/healthz/x", "/metrics/x", "/%ff", "/%", "/api/%2e%2e",
)  # fmt: skip
NAMESPACES: Final = ("default", "kube-system", "a", "missing")
SELECTORS: Final = (
    "a=b", "a", "!a", "a in (b,c)", "a notin ()", "a>1", "a<x", "metadata.name=a", "metadata.name!=a", "spec.nodeName=n",
    "status.phase=Running", "x=y", "=", "a==b", ",", "a=b,", "a in (", "\\", "a=\\x", "a=b\\,c", "é=é", "(" * 50, "a" * 400,
)  # fmt: skip
VERSIONS: Final = ("", "0", "1", "2", "5", "-1", "x", "1.5", "9" * 19, "9" * 30, "01", "٣")
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "limit": ("0", "1", "2", "-1", "x", "9" * 30, ""),
    "continue": (
        "",
        "x",
        "e30",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0",
        "%%",
        "é",
    ),
    "resourceVersion": VERSIONS,
    "resourceVersionMatch": ("", "Exact", "NotOlderThan", "x"),
    "watch": ("1", "true", "false", "", "0", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false", ""),
    "timeoutSeconds": ("0", "1", "-5", "x", "9" * 25),
    "dryRun": ("All", "", "x"),
    "fieldValidation": ("Ignore", "Warn", "Strict", "", "x"),
    "fieldManager": ("kubectl", "x" * 200, "\x00", "é"),
    "force": ("true", "x"),
    "pretty": ("true", "false", "x"),
    "includeObject": ("None", "Metadata", "Object", "x"),
    "gracePeriodSeconds": ("0", "30", "-1", "x", "9" * 25),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "x"),
    "orphanDependents": ("true", "x"),
    "verbose": ("",),
    "unknown": ("x",),
}


class FuzzedRequest(NamedTuple):
    """Every byte of a request."""

    method: str
    path: bytes
    query: bytes
    body: bytes
    headers: list[tuple[bytes, bytes]]


class Requests:
    """An endless supply of requests."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - the same requests for the same seed
        self._documents = Documents(self._random)
        self._known = [(each, version) for each in RESOURCES for version in each.versions]

    def next(self) -> FuzzedRequest:
        random = self._random
        if self._rarely(0.04):
            path = random.choice(PAGES)
            body = self._documents.garbage() if self._rarely(0.3) else b""
            return self._request(random.choice(METHODS), path, body, JSON)
        resource, version = random.choice(self._known)
        name = random.choice(BAD_NAMES) if self._rarely(0.05) else random.choice(NAMES)
        namespace = random.choice(NAMESPACES) if self._rarely(0.2) else "default"
        place = _place(resource, version, namespace)
        one = f"{place}/{quote(name, safe='', errors='replace')}"
        match random.randrange(10):
            case 0 | 1 | 2:
                body, kind = self._object(resource, version, name, namespace)
                return self._request("POST", place, body, kind)
            case 3:
                body, kind = self._object(resource, version, name, namespace)
                return self._request("PUT", one + self._part(resource), body, kind)
            case 4 | 5:
                body, kind = self._patch(resource.gvk(version))
                if kind == APPLY and self._rarely(0.95):
                    body, _ = self._object(resource, version, name, namespace)
                return self._request("PATCH", one + self._part(resource), body, kind)
            case 6:
                return self._request("GET", one + self._part(resource))
            case 7:
                return self._request("GET", place)
            case 8:
                body = self._delete_options() if self._rarely(0.3) else b""
                whole = self._rarely(0.1)
                return self._request("DELETE", place if whole else one, body, JSON)
        return self._odd(resource, place, one)

    def _odd(self, resource: Resource, place: str, one: str) -> FuzzedRequest:
        """Parts with kinds of their own, and methods where they do not belong."""
        random = self._random
        kinds = [part.kind for part in resource.subresources if part.kind is not None]
        if kinds and self._rarely(0.7):
            kind = random.choice(kinds)
            part = next(part for part in resource.subresources if part.kind == kind)
            document = self._documents.of_kind(kind)
            if self._rarely(0.7):
                document["metadata"] = {"name": one.rpartition("/")[2]}
            body = self._documents.encoded(document)
            method = "POST" if "create" in part.verbs else random.choice(("PUT", "PATCH", "GET"))
            content = random.choice(PATCHES) if method == "PATCH" else JSON
            return self._request(method, f"{one}/{part.name}", body, content)
        path = random.choice((place, one, one + self._part(resource)))
        content = random.choice((JSON, YAML, *PATCHES, *OTHER_TYPES))
        return self._request(random.choice(METHODS), path, self._documents.garbage(), content)

    # --- parts of a request ---

    def _part(self, resource: Resource) -> str:
        names = [part.name for part in resource.subresources]
        if self._rarely(0.02):
            names.append("nothing")
        return f"/{self._random.choice(names)}" if names and self._rarely(0.25) else ""

    def _object(
        self, resource: Resource, version: str, name: str, namespace: str
    ) -> tuple[bytes, str]:
        if self._rarely(0.03):
            return self._documents.garbage(), self._random.choice((JSON, YAML))
        document = self._documents.of(resource, version, name, namespace)
        if self._rarely(0.2):
            return self._message(document, resource.gvk(version)), PROTOBUF
        as_yaml = self._rarely(0.12)
        return self._documents.encoded(document, as_yaml=as_yaml), YAML if as_yaml else JSON

    def _message(self, document: dict[str, Any], gvk: GroupVersionKind) -> bytes:
        """A document in protobuf, if it fits; now and then with a few other bytes in it."""
        try:
            body = bytearray(encode_document(document, gvk))
        except ProtobufError:
            body = bytearray(in_envelope(b"\n\x00", str(gvk.group_version), gvk.kind))
        for _ in range(self._random.randint(1, 4) if self._rarely(0.3) else 0):
            place = self._random.randrange(len(body))
            end = place + self._random.randint(0, 2)
            body[place:end] = self._random.randbytes(self._random.randint(0, 3))
        return bytes(body)

    def _patch(self, gvk: GroupVersionKind) -> tuple[bytes, str]:
        kind = (
            self._random.choice(OTHER_TYPES) if self._rarely(0.03) else self._random.choice(PATCHES)
        )
        if self._rarely(0.05):
            return self._documents.garbage(), kind
        patch = (
            self._documents.operations() if "json-patch" in kind else self._documents.patch_of(gvk)
        )
        if self._rarely(0.03):
            patch = self._documents.anything()
        return self._documents.encoded(patch), kind

    def _delete_options(self) -> bytes:
        options: Any = {
            "kind": self._random.choice(("DeleteOptions", "Pod", 1)),
            "gracePeriodSeconds": self._random.choice((0, 1, -1, "x", 2**70)),
            "preconditions": self._random.choice(({}, {"uid": "x"}, {"resourceVersion": "1"}, 1)),
            "propagationPolicy": self._random.choice(
                ("Orphan", "Background", "Foreground", "x", 1)
            ),
            "dryRun": self._random.choice(([], ["All"], ["x"], "All")),
        }
        for field in list(options):
            if self._rarely(0.5):
                del options[field]
        return self._documents.encoded(options)

    def _query(self) -> bytes:
        random = self._random
        if self._rarely(0.6):
            return b""
        if self._rarely(0.03):
            return self._documents.garbage()
        pairs = [
            (name, random.choice(PARAMETERS[name]))
            for name in random.sample(list(PARAMETERS), random.randint(1, 3))
        ]
        if self._rarely(0.1):
            pairs.append(random.choice(pairs))
        return urlencode(pairs, errors="replace").encode()

    def _headers(self, content_type: str) -> list[tuple[bytes, bytes]]:
        random = self._random
        headers = [(b"content-type", content_type.encode("latin-1"))] if content_type else []
        if self._rarely(0.4):
            headers.append((b"accept", random.choice(ACCEPTED).encode("latin-1")))
        if self._rarely(0.05):
            headers.append((b"accept-encoding", random.choice((b"gzip", b"gzip;q=0", b"\xff"))))
        if self._rarely(0.02):
            name = random.choice(
                (b"impersonate-user", b"impersonate-group", b"content-length", b"x")
            )
            headers.append((name, random.choice((b"a", b"", b"\xff", b"9" * 30))))
        return headers

    def _request(
        self, method: str, path: str, body: bytes = b"", content_type: str = ""
    ) -> FuzzedRequest:
        raw = path.encode("latin-1", errors="replace")
        if self._rarely(0.01):
            raw = self._documents.damaged(raw)
        query = self._query().replace(b"#", b"")
        if content_type == APPLY and self._rarely(0.9):
            manager = self._random.choice((b"a", b"b", b"kubectl"))
            force = b"&force=true" if self._rarely(0.4) else b""
            query = b"fieldManager=%b%b&%b" % (manager, force, query)
        return FuzzedRequest(method, raw, query, body, self._headers(content_type))

    def _rarely(self, chance: float) -> bool:
        return self._random.random() < chance


def _place(resource: Resource, version: str, namespace: str) -> str:
    start = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    inside = f"/namespaces/{quote(namespace)}" if resource.namespaced else ""
    return f"{start}{inside}/{resource.plural}"
