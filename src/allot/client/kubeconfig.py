"""Where the API server is and as whom to talk to it: kubeconfig files, or the service account of a pod.

Files are found and merged as kubectl does. What proves an identity is in `credentials`.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import yaml

from allot.client.credentials import (
    Credential,
    CredentialSource,
    credential_source,
    read_contents,
)
from allot.client.errors import ConfigError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML has it: ten times as fast."""


class ClusterAccess(NamedTuple):
    """All that a connection needs. Files are read, so that two of them are equal if nothing has changed."""

    server: str
    authorization: str = ""
    """The value of the header; empty if a certificate, or nothing, identifies the user."""
    root_certificates: str = ""
    """PEM; empty for the certificates that the machine trusts."""
    certificate: bytes = b""
    key: bytes = b""
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    """The namespace of the context, used where a command names none."""

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for a server without TLS."""
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.root_certificates or None)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the certificate authority is no PEM certificate: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            _load_certificate(context, self.certificate, self.key)
        return context


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL reads a certificate chain from files only. The directory is ours alone (mode 0700).
    with tempfile.TemporaryDirectory() as directory:
        chain = Path(directory, "chain.pem")
        chain.write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(chain)
        except ssl.SSLError as error:
            raise ConfigError(
                f"the client certificate or its key cannot be used: {error}"
            ) from None


class AccessSource(Protocol):
    """Gives access repeatedly, because tokens and certificates expire."""

    def load(self) -> ClusterAccess:
        """Read everything anew. May block: call it in a thread."""
        ...

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        """Access with credentials that have not expired; cheap if nothing has."""
        ...


class Kubeconfig:
    """One or more files, found and merged as kubectl does."""

    def __init__(self, path: str | Path | None = None, context: str | None = None) -> None:
        self._path = str(path) if path is not None else default_location()
        self._context = context
        self._credentials: CredentialSource | None = None

    def load(self) -> ClusterAccess:
        return self._access(renew=True)

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        return self._access(renew=False)

    def _access(self, *, renew: bool) -> ClusterAccess:
        config = _merged(self._path)
        name = self._context or str(config.get("current-context") or "")
        if not name:
            raise ConfigError(
                f"{self._path} has no current context; select one with `kubectl config use-context`"
            )
        context = _entry(config, "contexts", name, self._path)
        cluster = _entry(config, "clusters", str(context.get("cluster") or ""), self._path)
        user_name = str(context.get("user") or "")
        user = _entry(config, "users", user_name, self._path) if user_name else {}
        server = str(cluster.get("server") or "").rstrip("/")
        if not server.startswith(("https://", "http://")):
            raise ConfigError(
                f"cluster {context.get('cluster')!r} in {self._path} has no server URL"
            )
        source = credential_source(user, cluster)
        if renew or source != self._credentials:
            self._credentials = source
        assert self._credentials is not None
        found = self._credentials.current(renew=renew)
        return ClusterAccess(
            server,
            found.authorization,
            read_contents(cluster, "certificate-authority").decode("ascii", "replace"),
            found.certificate,
            found.key,
            not cluster.get("insecure-skip-tls-verify"),
            cluster.get("tls-server-name") or None,
            _proxy(server, cluster.get("proxy-url")),
            _impersonation(user),
            str(context.get("namespace") or "default"),
        )


class InCluster:
    """The service account of the pod that this process runs in."""

    def __init__(self, directory: Path = SERVICE_ACCOUNT) -> None:
        self._directory = directory

    def load(self) -> ClusterAccess:
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
        if ":" in host:
            host = f"[{host}]"
        try:
            token = (self._directory / "token").read_text(encoding="utf-8").strip()
            authority = (self._directory / "ca.crt").read_text(encoding="ascii")
        except OSError as error:
            raise ConfigError(
                f"the service account of this pod cannot be read: {error.filename}: {error.strerror}"
            ) from error
        namespace = self._directory / "namespace"
        return ClusterAccess(
            f"https://{host}:{port}",
            Credential.bearer(token).authorization,
            authority,
            namespace=namespace.read_text().strip() if namespace.exists() else "default",
        )

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        return self.load()


def find_access(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> Kubeconfig | InCluster:
    """As kubectl: the named file, $KUBECONFIG, ~/.kube/config, the service account of this pod."""
    is_default = kubeconfig is None and context is None
    if (
        is_default
        and "KUBERNETES_SERVICE_HOST" in os.environ
        and not any(path.exists() for path in _paths(default_location()))
    ):
        return InCluster()
    return Kubeconfig(kubeconfig, context)


def default_location() -> str:
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


def context_names(location: str | None = None) -> list[str]:
    """The contexts in the files of a location, by default those of kubectl; `ConfigError` if they cannot be read."""
    return sorted(_merged(location or default_location())["contexts"])


# --- files ---


def _paths(location: str) -> list[Path]:
    return [Path(path).expanduser() for path in location.split(os.pathsep) if path]


def _merged(location: str) -> dict[str, Any]:
    """All files as one: of entries with the same name, and of current contexts, the first counts."""
    files = [(path, _read(path)) for path in _paths(location) if path.exists()]
    if not files:
        raise ConfigError(f"no kubeconfig at {location}")
    merged: dict[str, Any] = {section: {} for section in _SECTIONS}
    for path, document in files:
        if not merged.get("current-context"):
            merged["current-context"] = document.get("current-context")
        for section, key in _SECTIONS.items():
            for name, value in _entries(document, section, key, path):
                merged[section].setdefault(name, _with_absolute_paths(value, path.parent))
    return merged


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 - a safe loader
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"kubeconfig {path} is not YAML: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path} is a {type(document).__name__}, not a mapping")
    return document


def _entries(
    document: Mapping[str, Any], section: str, key: str, path: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise ConfigError(f"kubeconfig {path}: {section} must be a list")
    for entry in entries:
        value = (entry.get(key) or {}) if isinstance(entry, dict) else None
        if not isinstance(value, dict):
            raise ConfigError(f"kubeconfig {path}: an entry of {section} has no {key}")
        yield str(entry.get("name") or ""), value


def _with_absolute_paths(value: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Paths in a kubeconfig are relative to the file they are written in."""
    absolute = dict(value)
    for field in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
        if absolute.get(field):
            absolute[field] = str(directory / str(absolute[field]))
    plugin = absolute.get("exec")
    if isinstance(plugin, dict):
        command = str(plugin.get("command") or "")
        if os.sep in command:
            absolute["exec"] = plugin | {"command": str(directory / command)}
    return absolute


def _entry(config: Mapping[str, Any], section: str, name: str, location: str) -> dict[str, Any]:
    entries: Mapping[str, dict[str, Any]] = config[section]
    if name not in entries:
        available = ", ".join(sorted(entries)) or "none"
        kind = _SECTIONS[section]
        raise ConfigError(f"no {kind} {name!r} in {location} (available: {available})")
    return entries[name]


# --- the rest of a connection ---


def _proxy(server: str, configured: object) -> str | None:
    proxy = str(configured) if configured else _proxy_from_environment(server)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"proxy {proxy} is not supported; use an http or https proxy")
    return proxy


def _proxy_from_environment(server: str) -> str | None:
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127."):
        return None
    proxies = urllib.request.getproxies_environment()
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme) or None


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = []
    if user.get("as"):
        headers.append(("Impersonate-User", str(user["as"])))
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{name}", str(value)) for value in values]
    return tuple(headers)
