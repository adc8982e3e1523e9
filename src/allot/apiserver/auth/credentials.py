"""The server's certificates and keys: certificate authority, serving certificate, the admin's token and kubeconfig."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import os
import secrets
import stat
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS: Final = 3650
SERVER_DAYS: Final = 365
RENEW_BEFORE: Final = timedelta(days=30)
SECRET_SUFFIXES: Final = (".key", ".token", ".kubeconfig")
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
SERVICE_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class CredentialError(Exception):
    """A file with credentials cannot be used; the message says which and why."""


class Credentials(NamedTuple):
    """The server's certificates and the admin's token."""

    ca_file: Path
    cert_file: Path
    key_file: Path
    admin_token: str
    component_secret: str
    """The secret from which the tokens of components are derived."""
    signing_key: ec.EllipticCurvePrivateKey

    def component_token(self, user: str) -> str:
        """The token of a component that runs in a separate process."""
        secret = self.component_secret.encode()
        return hmac.new(secret, user.encode(), hashlib.sha256).hexdigest()


def prepare_credentials(directory: Path, hosts: Iterable[str], now: datetime) -> Credentials:
    """The credentials in `directory`, created if they are missing or about to expire."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    ca_key = _key(directory / "ca.key")
    ca_cert = _authority(directory / "ca.crt", ca_key, now)
    server_key = _key(directory / "apiserver.key")
    _server_certificate(directory / "apiserver.crt", server_key, ca_cert, ca_key, hosts, now)
    return Credentials(
        directory / "ca.crt",
        directory / "apiserver.crt",
        directory / "apiserver.key",
        _token(directory / "admin.token"),
        _token(directory / "components.token"),
        _key(directory / "service-accounts.key"),
    )


def write_secret(path: Path, content: bytes) -> None:
    """Writes a file atomically, readable by its owner only; `CredentialError` if that fails."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise CredentialError(f"{path} cannot be written: {error.strerror or error}") from error


class ExposedFile(NamedTuple):
    """A file with secrets that others than its owner can read."""

    path: Path
    mode: int


def exposed_files(directory: Path, *others: Path) -> list[ExposedFile]:
    """Keys, tokens and kubeconfigs that others can read: those in `directory`, and `others`."""
    secret = [path for path in sorted(directory.iterdir()) if path.suffix in SECRET_SUFFIXES]
    found = []
    for path in (*secret, *others):
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & OTHERS:
                found.append(ExposedFile(path, mode))
    return found


def _token(path: Path) -> str:
    if not path.exists():
        write_secret(path, secrets.token_urlsafe(32).encode() + b"\n")
    token = path.read_text(encoding="ascii", errors="replace").strip()
    if len(token) < 16:
        raise CredentialError(f"{path}: the token is too short; remove the file to get a new one")
    return token


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        write_secret(
            path,
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )
    try:
        loaded = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except ValueError as error:
        raise CredentialError(f"{path} is not a private key: {error}") from error
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise CredentialError(f"{path} is not an elliptic curve key")
    return loaded


def _authority(path: Path, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    found = _certificate(path)
    if found is not None:
        return found
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "allot")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key.public_key(), now, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_secret(path, certificate.public_bytes(serialization.Encoding.PEM))
    return certificate


def _server_certificate(
    path: Path,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    hosts: Iterable[str],
    now: datetime,
) -> None:
    names = _alternative_names({*SERVICE_NAMES, "127.0.0.1", "::1", *hosts})
    found = _certificate(path)
    if found is not None and _is_good(found, key, ca, names, now):
        return
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "allot-apiserver")])
    certificate = (
        _builder(subject, ca.subject, key.public_key(), now, SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    write_secret(path, certificate.public_bytes(serialization.Encoding.PEM))


def _is_good(
    found: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    names: list[x509.GeneralName],
    now: datetime,
) -> bool:
    """Whether a certificate can be kept: same key, same authority, all names, not about to expire."""
    try:
        found.verify_directly_issued_by(ca)
        stated = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001 - any invalid certificate is replaced
        return False
    return (
        found.public_key() == key.public_key()
        and set(names) <= set(stated)
        and found.not_valid_after_utc - now.astimezone(UTC) > RENEW_BEFORE
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _alternative_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in sorted(hosts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _certificate(path: Path) -> x509.Certificate | None:
    if not path.exists():
        return None
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise CredentialError(f"{path} is not a certificate: {error}") from error


def write_kubeconfig(path: Path, server: str, ca_file: Path, user: str, token: str) -> None:
    """Writes a self-contained kubeconfig for a user with a token, unless the file has the same content."""
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "allot",
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {
                "name": "allot",
                "context": {"cluster": "allot", "user": user, "namespace": "default"},
            }
        ],
        "current-context": "allot",
    }
    written = yaml.safe_dump(content, sort_keys=False).encode()
    with contextlib.suppress(OSError):
        if path.read_bytes() == written and not path.stat().st_mode & OTHERS:
            return
    write_secret(path, written)
