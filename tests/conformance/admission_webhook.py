"""A webhook server whose path says how it answers. It keeps the last review that it got."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HANGS_SECONDS = 5.0


def make_certificates(directory: Path) -> tuple[bytes, Path]:
    """A CA (PEM) and the path of a key with a certificate for 127.0.0.1."""
    now = datetime.now(UTC)
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook-ca")])

    def builder(subject: x509.Name, public_key: Any) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=3))
        )

    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("hook.default.svc")]
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    certificate = (
        builder(subject, key.public_key())
        .add_extension(names, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    both = directory / "webhook.pem"
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(private + certificate.public_bytes(pem))
    return ca.public_bytes(pem), both


def _patch(*operations: dict[str, Any]) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


_ADD = {"op": "add", "path": "/data/b", "value": "2"}
_LABEL = {"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}
_JSON_PATCH = {"allowed": True, "patchType": "JSONPatch"}

RESPONSES: dict[str, dict[str, Any]] = {
    "/allow": {"allowed": True},
    "/review": {"allowed": True},
    "/review-v1beta1": {"allowed": True},
    "/deny": {"allowed": False},
    "/deny-message": {"allowed": False, "status": {"message": "not today"}},
    "/deny-code": {"allowed": False, "status": {"code": 418, "message": "a teapot"}},
    "/deny-reason": {"allowed": False, "status": {"reason": "Conflict"}},
    "/deny-details": {
        "allowed": False,
        "status": {
            "code": 409,
            "reason": "Conflict",
            "message": "two at once",
            "details": {"name": "x", "causes": [{"reason": "R", "message": "M", "field": "f"}]},
        },
    },
    "/deny-success": {"allowed": False, "status": {"status": "Success", "code": 200}},
    "/warnings": {"allowed": True, "warnings": ["first", "second"]},
    "/annotations": {"allowed": True, "auditAnnotations": {"key": "value"}},
    "/patch": _JSON_PATCH | {"patch": _patch(_ADD)},
    "/patch-label": _JSON_PATCH | {"patch": _patch(_LABEL)},
    "/patch-v1beta1": _JSON_PATCH | {"patch": _patch(_ADD)},
    "/patch-no-type": {"allowed": True, "patch": _patch(_ADD)},
    "/patch-bad-type": {"allowed": True, "patch": _patch(_ADD), "patchType": "Merge"},
    "/patch-not-json": _JSON_PATCH | {"patch": base64.b64encode(b"rubbish").decode()},
    "/patch-fails": _JSON_PATCH | {"patch": _patch({"op": "remove", "path": "/data/nothing"})},
    "/patch-invalid": _JSON_PATCH
    | {"patch": _patch({"op": "add", "path": "/data/bad key", "value": "x"})},
    "/patch-not-object": _JSON_PATCH
    | {"patch": _patch({"op": "replace", "path": "/data", "value": 3})},
    "/patch-on-deny": _JSON_PATCH | {"allowed": False, "patch": _patch(_ADD)},
}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reviews: dict[str, Any]

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers["content-length"]))
        review = json.loads(body)
        self.reviews["last"] = {"path": self.path, "review": review}
        code, answer = self._answer(path, review)
        if path == "/redirect":
            self.send_response(302)
            self.send_header("location", "/allow")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self, path: str, review: dict[str, Any]) -> tuple[int, bytes]:
        uid = review["request"]["uid"]
        version = review["apiVersion"]
        whole = {"kind": "AdmissionReview", "apiVersion": version}
        response = RESPONSES.get(path, {"allowed": True}) | {"uid": uid}
        match path:
            case "/hang":
                time.sleep(HANGS_SECONDS)
            case "/not-json":
                return 200, b"this is not JSON"
            case "/empty":
                return 200, b""
            case "/wrong-kind":
                return 200, json.dumps({"kind": "ConfigMap", "apiVersion": "v1"}).encode()
            case "/wrong-uid":
                response["uid"] = "another"
            case "/no-response":
                return 200, json.dumps(whole).encode()
            case "/null-response":
                return 200, json.dumps(whole | {"response": None}).encode()
            case "/not-review-version":
                whole["apiVersion"] = "admission.k8s.io/v7"
            case "/error-500":
                return 500, b"it broke"
            case "/error-404":
                return 404, b"404 page not found\n"
            case "/status-error":
                status = {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "status": "Failure",
                    "message": "go away",
                    "reason": "Forbidden",
                    "code": 403,
                }
                return 403, json.dumps(status).encode()
            case "/count-a" | "/count-b":
                value = review["request"]["object"]["data"]["count"] + path[-1]
                response |= _JSON_PATCH | {
                    "patch": _patch({"op": "replace", "path": "/data/count", "value": value})
                }
            case _:
                pass
        return 200, json.dumps(whole | {"response": response}).encode()

    def log_message(self, *arguments: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: object) -> None:
        """Clients that do not trust the certificate, or do not wait, go away."""


class WebhookServer:
    """The address, its CA, and what was asked last."""

    def __init__(self, port: int, ca: bytes, reviews: dict[str, Any]) -> None:
        self.port = port
        self.url = f"https://127.0.0.1:{port}"
        self.ca = base64.b64encode(ca).decode()
        self._reviews = reviews

    def take_review(self) -> dict[str, Any] | None:
        """The last review since the last call."""
        last: dict[str, Any] | None = self._reviews.pop("last", None)
        return last


@contextlib.contextmanager
def webhook_server() -> Iterator[WebhookServer]:
    with tempfile.TemporaryDirectory() as directory:
        ca, both = make_certificates(Path(directory))
        reviews: dict[str, Any] = {}
        handler = type("Handler", (_Handler,), {"reviews": reviews})
        server = _Server(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield WebhookServer(server.server_address[1], ca, reviews)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
