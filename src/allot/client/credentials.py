"""What proves to the API server who a client is: tokens, certificates, exec plugins, OpenID Connect.

A source says which of these a kubeconfig's user has; `current` gives a credential that has not
expired, and runs a plugin or asks an identity provider only when it must.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlencode

from allot.client.errors import ConfigError
from allot.client.wall_clock import utc_now

EXPIRY_MARGIN: Final = timedelta(seconds=90)
"""Renewed this long before it expires: longer than the interval at which clients look."""
EXEC_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
PLUGIN_TIMEOUT_SECONDS: Final = 120.0
"""Long enough for a person to log in."""
PROVIDER_TIMEOUT_SECONDS: Final = 20.0


class Credential(NamedTuple):
    """A header, a certificate, or neither for an anonymous user."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_at: datetime | None = None

    @classmethod
    def bearer(cls, token: str, expires_at: datetime | None = None) -> Credential:
        return cls(f"Bearer {token}" if token else "", expires_at=expires_at)

    @property
    def expires_soon(self) -> bool:
        return self.expires_at is not None and utc_now() + EXPIRY_MARGIN >= self.expires_at


class CredentialSource(Protocol):
    """Gives credentials. Sources of the same kubeconfig entries are equal."""

    @abstractmethod
    def current(self, *, renew: bool = False) -> Credential:
        """A credential that has not expired; a new one in any case if `renew`."""
        ...


def credential_source(user: Mapping[str, Any], cluster: Mapping[str, Any]) -> CredentialSource:
    """The source for a kubeconfig's user. A token or certificate goes before a plugin, as in kubectl."""
    if user.get("token") or user.get("tokenFile") or user.get("username"):
        return _StaticSource(user)
    if user.get("exec"):
        return _ExecSource(user, cluster)
    if user.get("auth-provider"):
        return _OidcSource(user)
    return _StaticSource(user)


def read_contents(section: Mapping[str, Any], field: str) -> bytes:
    """`field` of a kubeconfig's entry: its inline data, or else the file that it names."""
    data = section.get(f"{field}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise ConfigError(f"{field}-data is not base64: {error}") from error
    path = section.get(field)
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{field} {path}: {error.strerror}") from error


class _Source(CredentialSource):
    """Remembers the last credential. Two sources are equal if they are configured alike."""

    def __init__(self, *configuration: Mapping[str, Any]) -> None:
        self._configuration = configuration
        self._credential: Credential | None = None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._configuration == vars(other)["_configuration"]

    __hash__ = None  # type: ignore[assignment]  # compared, never a key

    def current(self, *, renew: bool = False) -> Credential:
        if self._credential is None or renew or self._credential.expires_soon:
            self._credential = self._fetch()
        return self._credential

    @abstractmethod
    def _fetch(self) -> Credential: ...


class _StaticSource(_Source):
    """What the kubeconfig or its files contain. Files are read again each time: they are rotated in place."""

    def current(self, *, renew: bool = False) -> Credential:
        return self._fetch()

    def _fetch(self) -> Credential:
        (user,) = self._configuration
        certificate = read_contents(user, "client-certificate")
        key = read_contents(user, "client-key")
        if bool(certificate) != bool(key):
            raise ConfigError("client-certificate and client-key must be given together")
        return Credential(self._authorization(user), certificate, key)

    def _authorization(self, user: Mapping[str, Any]) -> str:
        if user.get("tokenFile"):
            token = read_contents({"tokenFile": user["tokenFile"]}, "tokenFile").decode()
            return Credential.bearer(token.strip()).authorization
        if user.get("token"):
            return Credential.bearer(str(user["token"])).authorization
        if user.get("username"):
            pair = f"{user['username']}:{user.get('password') or ''}"
            return "Basic " + base64.b64encode(pair.encode()).decode()
        return ""


class _ExecSource(_Source):
    """A program that prints an ExecCredential."""

    def _fetch(self) -> Credential:
        user, cluster = self._configuration
        plugin = user["exec"]
        if not isinstance(plugin, dict) or not plugin.get("command"):
            raise ConfigError("exec has no command")
        command = str(plugin["command"])
        version = plugin.get("apiVersion")
        if version not in EXEC_VERSIONS:
            raise ConfigError(
                f"exec plugin {command!r}: apiVersion {version!r} is not supported"
                f" (available: {', '.join(EXEC_VERSIONS)})"
            )
        output = _run_plugin(command, plugin, _exec_info(plugin, cluster))
        status = _exec_status(command, version, output)
        token = str(status.get("token") or "")
        certificate = str(status.get("clientCertificateData") or "").encode()
        key = str(status.get("clientKeyData") or "").encode()
        if not token and not (certificate and key):
            raise ConfigError(f"exec plugin {command!r} returned no credentials")
        bearer = Credential.bearer(token, _time(status.get("expirationTimestamp"), command))
        return bearer._replace(certificate=certificate, key=key)


def _exec_info(plugin: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    spec: dict[str, Any] = {"interactive": _is_interactive(plugin)}
    if plugin.get("provideClusterInfo"):
        authority = read_contents(cluster, "certificate-authority")
        info = {
            "server": cluster.get("server"),
            "tls-server-name": cluster.get("tls-server-name"),
            "insecure-skip-tls-verify": cluster.get("insecure-skip-tls-verify"),
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "proxy-url": cluster.get("proxy-url"),
            "config": _exec_extension(cluster),
        }
        spec["cluster"] = {name: value for name, value in info.items() if value}
    return json.dumps({"kind": "ExecCredential", "apiVersion": plugin["apiVersion"], "spec": spec})


def _exec_extension(cluster: Mapping[str, Any]) -> Any:
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            return extension.get("extension")
    return None


def _is_interactive(plugin: Mapping[str, Any]) -> bool:
    mode = plugin.get("interactiveMode") or "IfAvailable"
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise ConfigError(
            f"exec plugin {plugin['command']!r} needs a terminal (interactiveMode: Always)"
        )
    return terminal and mode != "Never"


def _run_plugin(command: str, plugin: Mapping[str, Any], info: str) -> bytes:
    added = {str(item["name"]): str(item.get("value") or "") for item in plugin.get("env") or ()}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own kubeconfig names it
            [command, *map(str, plugin.get("args") or ())],
            env=os.environ | added | {"KUBERNETES_EXEC_INFO": info},
            stdin=None if _is_interactive(plugin) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if _is_interactive(plugin) else subprocess.PIPE,
            timeout=PLUGIN_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        hint = str(plugin.get("installHint") or "").strip()
        raise ConfigError(
            f"exec plugin {command!r} not found" + (f": {hint}" if hint else "")
        ) from None
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"exec plugin {command!r}: timed out after {PLUGIN_TIMEOUT_SECONDS:.0f} s"
        ) from None
    except OSError as error:
        raise ConfigError(f"exec plugin {command!r}: {error.strerror}") from error
    if done.returncode != 0:
        reason = (done.stderr or b"").decode(errors="replace").strip()
        raise ConfigError(
            f"exec plugin {command!r} returned no credentials: exit code {done.returncode}"
            + (f": {reason[-1000:]}" if reason else "")
        )
    return done.stdout


def _exec_status(command: str, version: str, output: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(output)
    except ValueError as error:
        raise ConfigError(f"exec plugin {command!r} printed no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise ConfigError(f"exec plugin {command!r} printed no ExecCredential")
    if document.get("apiVersion") != version:
        raise ConfigError(
            f"exec plugin {command!r} is configured for {version},"
            f" but printed {document.get('apiVersion')}"
        )
    status = document.get("status")
    return status if isinstance(status, dict) else {}


def _time(written: object, command: str) -> datetime | None:
    if not written:
        return None
    try:
        time = datetime.fromisoformat(str(written))
    except ValueError:
        raise ConfigError(
            f"exec plugin {command!r}: expirationTimestamp {written!r} is not a time"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class _OidcSource(_Source):
    """The auth provider `oidc`: an ID token, renewed with a refresh token when it expires."""

    def _fetch(self) -> Credential:
        (user,) = self._configuration
        provider = user["auth-provider"]
        name = provider.get("name") if isinstance(provider, dict) else provider
        if name != "oidc":
            raise ConfigError(
                f"auth provider {name!r} is not supported: Kubernetes replaced it by exec plugins"
            )
        config: Mapping[str, Any] = provider.get("config") or {}
        known = (
            self._credential
        )  # a refresh token in the file may be older than the ID token we have
        token = str(config.get("id-token") or "")
        credential = Credential.bearer(token, _token_expiry(token))
        if known is None and token and not credential.expires_soon:
            return credential
        if not config.get("refresh-token"):
            if token:
                raise ConfigError(
                    "the ID token has expired, and there is no refresh-token; log in again"
                )
            raise ConfigError("auth provider oidc has no id-token")
        token = _refreshed_token(config)
        return Credential.bearer(token, _token_expiry(token))


def _token_expiry(token: str) -> datetime | None:
    """When a JSON Web Token expires, as it says itself; its signature is the server's to verify."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _refreshed_token(config: Mapping[str, Any]) -> str:
    issuer = str(config.get("idp-issuer-url") or "").rstrip("/")
    if not issuer.startswith("https://"):
        raise ConfigError("auth provider oidc: idp-issuer-url must be an https URL")
    authority = read_contents(config, "idp-certificate-authority").decode("ascii", "replace")
    context = ssl.create_default_context(cadata=authority or None)
    found = _provider_answer(f"{issuer}/.well-known/openid-configuration", context)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": str(config["refresh-token"]),
        "client_id": str(config.get("client-id") or ""),
        "client_secret": str(config.get("client-secret") or ""),
    }
    body = urlencode({name: value for name, value in form.items() if value}).encode()
    answer = _provider_answer(str(found.get("token_endpoint") or ""), context, body)
    token = answer.get("id_token")
    if not isinstance(token, str) or not token:
        raise ConfigError(f"identity provider {issuer} returned no ID token; log in again")
    return token


def _provider_answer(
    url: str, context: ssl.SSLContext, body: bytes | None = None
) -> Mapping[str, Any]:
    if not url.startswith("https://"):
        raise ConfigError(f"identity provider: {url!r} is not an https URL")
    try:
        with urllib.request.urlopen(  # noqa: S310 - https, checked above
            urllib.request.Request(url, data=body),  # noqa: S310
            timeout=PROVIDER_TIMEOUT_SECONDS,
            context=context,
        ) as response:
            document = json.loads(response.read())
    except urllib.error.URLError as error:
        raise ConfigError(f"identity provider {url}: {error.reason}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"identity provider {url}: {error}") from error
    return document if isinstance(document, dict) else {}
