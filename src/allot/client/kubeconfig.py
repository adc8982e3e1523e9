"""Where the API server is and who we are, from a kubeconfig or from inside a cluster.

Files, contexts, certificates, tokens, exec plugins and identity providers are read by the official
client's loader. What it leaves out is added here: impersonation, token files that change, and an
error where an exec plugin gives nothing.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from allot.client.errors import ClientError


class ConfigError(ClientError):
    """The kubeconfig cannot be used as it is."""


class ClusterAccess(NamedTuple):
    """All that a connection needs."""

    server: str
    authorization: str = ""
    """The value of the header; empty if a certificate or nothing says who we are."""
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    """The namespace of the context, for people who name none."""
    files_changed_at: tuple[float, ...] = ()
    """When the files above were last written: certificates are renewed in place."""

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for a server without TLS."""
        if not self.server.startswith("https:"):
            return None
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


class AccessSource(Protocol):
    """Where access comes from, again and again, because tokens and certificates expire."""

    def load(self) -> ClusterAccess:
        """Read everything anew. May take a while: call it beside the event loop."""
        ...

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        """The same access with credentials that are still good; cheap if nothing has expired."""
        ...


class Kubeconfig:
    """One or more files, as kubectl finds and merges them."""

    def __init__(self, path: str | Path | None = None, context: str | None = None) -> None:
        self._path = str(path) if path is not None else default_location()
        self._context = context
        self._configuration: Any = None
        self._is_costly = False

    def load(self) -> ClusterAccess:
        from kubernetes.client import Configuration
        from kubernetes.config import load_kube_config

        user, context = self._sections()
        configuration = Configuration()
        _loading(
            load_kube_config,
            config_file=self._path,
            context=self._context,
            client_configuration=configuration,
            persist_config=False,
        )
        self._configuration = configuration
        self._is_costly = "exec" in user or "auth-provider" in user
        access = _access(configuration)._replace(
            impersonation=_impersonation(user), namespace=context.get("namespace") or "default"
        )
        if "exec" in user and not (access.authorization or access.certificate_file):
            raise ConfigError(
                f"the exec plugin {user['exec'].get('command')!r} gave no credentials"
            )
        return access

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        # The loader runs plugins again only when what they gave is about to expire.
        if not self._is_costly:
            return self.load()
        return access._replace(authorization=_renewed_authorization(self._configuration))

    def _sections(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The user and the context that are in effect, as they are written."""
        from kubernetes.config.kube_config import KubeConfigMerger

        merged = _loading(KubeConfigMerger, self._path).config
        if merged is None:
            raise ConfigError(f"there is no kubeconfig at {self._path}")
        config = merged.value
        name = self._context or config.get("current-context")
        context = _named(config, "contexts", name).get("context") or {}
        return _named(config, "users", context.get("user")).get("user") or {}, context


class InCluster:
    """The service account of the pod we run in."""

    def __init__(self) -> None:
        self._configuration: Any = None

    def load(self) -> ClusterAccess:
        from kubernetes.client import Configuration
        from kubernetes.config import load_incluster_config

        configuration = Configuration()
        _loading(load_incluster_config, client_configuration=configuration)
        self._configuration = configuration
        return _access(configuration)

    def refresh(self, access: ClusterAccess) -> ClusterAccess:
        return access._replace(authorization=_renewed_authorization(self._configuration))


def find_access(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> Kubeconfig | InCluster:
    """As kubectl: the file that is named, $KUBECONFIG, the file at home, the cluster we run in."""
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        paths = default_location().split(os.pathsep)
        if not any(Path(path).expanduser().exists() for path in paths if path):
            return InCluster()
    return Kubeconfig(kubeconfig, context)


def default_location() -> str:
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


def _loading(function: Any, *args: Any, **kwargs: Any) -> Any:
    from kubernetes.config import ConfigException
    from yaml import YAMLError

    # A file that is YAML, but no kubeconfig, makes the loader stumble over its types.
    wrong = (ConfigException, YAMLError, OSError, ValueError, TypeError, AttributeError)
    try:
        return function(*args, **kwargs)
    except wrong as error:
        raise ConfigError(f"the kubeconfig cannot be used: {error}") from error


def _named(config: Mapping[str, Any], section: str, name: str | None) -> Mapping[str, Any]:
    for node in config.get(section) or ():
        entry: Mapping[str, Any] = getattr(node, "value", node)
        if entry.get("name") == name:
            return entry
    return {}


def _access(configuration: Any) -> ClusterAccess:
    from kubernetes.client.rest import should_bypass_proxies

    proxy = configuration.proxy
    if proxy and should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        proxy = None
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"the proxy {proxy} is of a kind that cannot be used; use http or https")
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    access = ClusterAccess(
        configuration.host,
        _authorization(configuration),
        *files,
        configuration.verify_ssl,
        configuration.tls_server_name,
        proxy or None,
    )
    changed = tuple(Path(file).stat().st_mtime for file in files if file)
    return access._replace(files_changed_at=changed)


def _authorization(configuration: Any) -> str:
    return str(configuration.api_key.get("BearerToken") or "").strip()


def _renewed_authorization(configuration: Any) -> str:
    """After the loader has had a look at whether it must do something about it."""
    if configuration.refresh_api_key_hook is not None:
        configuration.refresh_api_key_hook(configuration)
    return _authorization(configuration)


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
