"""A conversion webhook whose path says how it answers: v1 has `spec.address`, v2 has `spec.host` and `spec.port`."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.server
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conformance.admission_webhook import make_certificates
from tests.custom_resources.steps import Step, crd, schema_of

Document = dict[str, Any]

STRING = {"type": "string"}
V1 = schema_of({"address": STRING})
V2 = schema_of({"host": STRING, "port": {"type": "integer"}})
METADATA = {"name": "w", "labels": {"kept": "yes"}}


def definition(conversion: dict[str, Any]) -> dict[str, Any]:
    """Widgets in two versions, stored in v1."""
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
        }
        for name, schema in (("v1", V1), ("v2", V2))
    ]
    return crd(versions=versions, conversion=conversion)


def widgets(version: str, name: str = "") -> str:
    return f"/apis/GRP/{version}/namespaces/NS/widgets" + (f"/{name}" if name else "")


def in_v1(name: str = "w") -> dict[str, Any]:
    metadata = METADATA | {"name": name}
    spec = {"address": "localhost:80"}
    return {"apiVersion": "GRP/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def in_v2(name: str = "w") -> dict[str, Any]:
    metadata = METADATA | {"name": name}
    spec = {"host": "localhost", "port": 80}
    return {"apiVersion": "GRP/v2", "kind": "Widget", "metadata": metadata, "spec": spec}


STEPS = {
    "get": Step("GET", widgets("v2", "w")),
    "create": Step("POST", widgets("v2"), in_v2("x")),
    "update": Step(
        "PATCH", widgets("v2", "w"), {"spec": {"port": 81}}, "application/merge-patch+json"
    ),
    "list": Step("GET", widgets("v2")),
    "delete": Step("DELETE", widgets("v2", "w")),
}
"""Requests in a version that is not stored, after an object was created in the stored one."""


def converted(document: Document, api_version: str) -> Document:
    made = copy.deepcopy(document)
    made["apiVersion"] = api_version
    spec = made.get("spec") or {}
    if api_version.endswith("/v2") and "address" in spec:
        host, _, port = spec.pop("address").partition(":")
        spec |= {"host": host, "port": int(port)}
    elif api_version.endswith("/v1") and "host" in spec:
        spec["address"] = f"{spec.pop('host')}:{spec.pop('port')}"
    return made


def _with_metadata(**changes: Any) -> Callable[[Document], Document]:
    return lambda made: made | {"metadata": made["metadata"] | changes}


CHANGES: dict[str, Callable[[Document], Any]] = {
    "/other-version": lambda made: made | {"apiVersion": "other.example.com/v9"},
    "/no-version": lambda made: {name: made[name] for name in made if name != "apiVersion"},
    "/other-kind": lambda made: made | {"kind": "Gadget"},
    "/other-name": _with_metadata(name="other"),
    "/other-namespace": _with_metadata(namespace="elsewhere"),
    "/other-uid": _with_metadata(uid="another"),
    "/no-metadata": lambda made: {name: made[name] for name in made if name != "metadata"},
    "/metadata-is-a-list": lambda made: made | {"metadata": []},
    "/labels-are-a-list": _with_metadata(labels=["a"]),
    "/label-is-a-number": _with_metadata(labels={"a": 1}),
    "/label-is-invalid": _with_metadata(labels={"a": "not good"}),
    "/annotation-is-invalid": _with_metadata(annotations={"not good": "x"}),
    "/labels-and-annotations": _with_metadata(labels={"l": "1"}, annotations={"a": "2"}),
    "/no-labels": _with_metadata(labels=None),
    "/other-finalizers": _with_metadata(
        finalizers=["x.example.com/f"], ownerReferences=[], generation=77, managedFields=[]
    ),
    "/unknown-field": lambda made: made | {"spec": made["spec"] | {"unknown": 1}},
    "/object-is-a-text": lambda _: "text",
}
"""What is wrong with the objects that are answered."""

RESULTS: dict[str, Document] = {
    "/fail": {"status": "Failure"},
    "/fail-message": {"status": "Failure", "message": "cannot be converted"},
    "/no-status": {},
}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reviews: list[Document]
    released: threading.Event

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.reviews.append({"path": self.path, "review": review})
        code, answer = self._answer(path, review)
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self, path: str, review: Document) -> tuple[int, bytes]:
        request = review["request"]
        objects = [converted(each, request["desiredAPIVersion"]) for each in request["objects"]]
        change = CHANGES.get(path)
        response: Document = {
            "uid": request["uid"],
            "result": RESULTS.get(path, {"status": "Success"}),
            "convertedObjects": [change(each) for each in objects] if change else objects,
        }
        whole = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
        match path:
            case "/hang":
                self.released.wait(60)
            case "/not-json":
                return 200, b"this is not JSON"
            case "/empty":
                return 200, b""
            case "/error-500":
                return 500, b"it broke"
            case "/error-404":
                return 404, b"404 page not found\n"
            case "/status":
                status = {"kind": "Status", "apiVersion": "v1", "message": "go away", "code": 403}
                return 403, json.dumps(status | {"status": "Failure"}).encode()
            case "/other-review":
                whole["apiVersion"] = "apiextensions.k8s.io/v1beta1"
            case "/unknown-review":
                whole["apiVersion"] = "apiextensions.k8s.io/v7"
            case "/no-response":
                del whole["response"]
            case "/other-request":
                response["uid"] = "another"
            case "/too-few":
                response["convertedObjects"] = []
            case "/too-many":
                response["convertedObjects"] *= 2
            case _:
                pass
        return 200, json.dumps(whole).encode()

    def log_message(self, *arguments: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: object) -> None:
        """Clients that do not trust the certificate, or do not wait, go away."""


class ConversionServer:
    """The address, its CA, and the reviews that it was asked."""

    def __init__(
        self, port: int, ca: bytes, reviews: list[Document], released: threading.Event
    ) -> None:
        self.port = port
        self.ca = base64.b64encode(ca).decode()
        self.reviews = reviews
        self.released = released

    def conversion(self, path: str = "/convert", **webhook: Any) -> Document:
        """`spec.conversion` of a definition."""
        client = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca}
        whole = {"conversionReviewVersions": ["v1"], "clientConfig": client} | webhook
        return {"strategy": "Webhook", "webhook": whole}


@contextlib.contextmanager
def conversion_server() -> Iterator[ConversionServer]:
    with tempfile.TemporaryDirectory() as directory:
        ca, both = make_certificates(Path(directory))
        reviews: list[Document] = []
        released = threading.Event()
        handler = type("Handler", (_Handler,), {"reviews": reviews, "released": released})
        server = _Server(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield ConversionServer(server.server_address[1], ca, reviews, released)
        finally:
            released.set()
            server.shutdown()
            server.server_close()
            thread.join()
