from __future__ import annotations

import base64
import json
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.client import credentials
from allot.client.errors import ConfigError
from allot.client.kubeconfig import (
    ClusterAccess,
    InCluster,
    Kubeconfig,
    find_access,
)

SERVER = "https://one.example.com:6443"


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def a_config(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **context: str
) -> dict[str, Any]:
    return {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"} | context}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    }


def written(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(yaml.dump(config))
    return path


def load(tmp_path: Path, config: dict[str, Any]) -> ClusterAccess:
    return Kubeconfig(written(tmp_path / "config", config)).load()


def test_server_token_and_namespace(tmp_path: Path) -> None:
    access = load(tmp_path, a_config({"token": "t"}, namespace="ns"))

    assert access[:2] == (SERVER, "Bearer t")
    assert access.namespace == "ns"
    assert access.verify


def test_name_and_password(tmp_path: Path) -> None:
    access = load(tmp_path, a_config({"username": "me", "password": "secret"}))

    assert access.authorization == "Basic bWU6c2VjcmV0"


def test_impersonation(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "u7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"scopes": ["view"]},
    }

    assert load(tmp_path, a_config(user)).impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes", "view"),
    )


@pytest.mark.parametrize(
    ("cluster", "environment", "proxy"),
    [
        pytest.param({"proxy-url": "http://p:1"}, {}, "http://p:1", id="in-the-file"),
        pytest.param({}, {"HTTPS_PROXY": "http://e:2"}, "http://e:2", id="in-the-environment"),
        pytest.param(
            {},
            {"HTTPS_PROXY": "http://e:2", "NO_PROXY": "one.example.com"},
            None,
            id="not-for-this-host",
        ),
        pytest.param({}, {}, None, id="none"),
    ],
)
def test_proxies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cluster: dict[str, Any],
    environment: dict[str, str],
    proxy: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert load(tmp_path, a_config(cluster=cluster)).proxy == proxy


def test_an_unsupported_proxy_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="socks5"):
        load(tmp_path, a_config(cluster={"proxy-url": "socks5://p:1"}))


def test_several_files_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = a_config({"token": "t"})
    users = first.pop("users")
    paths = [
        written(tmp_path / "first", first),
        tmp_path / "missing",
        written(tmp_path / "second", {"users": users}),
    ]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))

    assert find_access().load().authorization == "Bearer t"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param(a_config() | {"current-context": "two"}, "two", id="no-such-context"),
        pytest.param(a_config() | {"clusters": []}, "no cluster 'c' in", id="no-such-cluster"),
        pytest.param(
            a_config(cluster={"certificate-authority": "/nowhere/ca.crt"}),
            "ca.crt",
            id="no-such-file",
        ),
    ],
)
def test_kubeconfig_errors(tmp_path: Path, config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, config)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        Kubeconfig(tmp_path / "missing").load()


def plugin(tmp_path: Path, status: dict[str, Any] | None) -> dict[str, Any]:
    """A user of an exec plugin that gives a new token each time."""
    script = tmp_path / "plugin"
    credential = json.dumps(
        {
            "kind": "ExecCredential",
            "apiVersion": "client.authentication.k8s.io/v1",
            "status": status,
        }
    )
    script.write_text(
        f"#!/bin/sh\necho >> {tmp_path}/runs\n"
        f"echo '{credential}' | sed s/NUMBER/$(wc -l < {tmp_path}/runs)/\n"
        f"exit {0 if status else 1}\n"
    )
    script.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


@pytest.mark.parametrize(
    ("lasts", "again"),
    [
        pytest.param(timedelta(hours=1), "Bearer t1", id="still-good"),
        pytest.param(timedelta(minutes=1), "Bearer t2", id="about-to-expire"),
    ],
)
def test_a_plugin_runs_again_when_its_token_expires(
    tmp_path: Path, lasts: timedelta, again: str
) -> None:
    expires = (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(tmp_path, {"token": "tNUMBER", "expirationTimestamp": expires})
    source = Kubeconfig(written(tmp_path / "config", a_config(user)))

    access = source.load()

    assert access.authorization == "Bearer t1"
    assert source.refresh(access).authorization == again


def test_a_plugin_that_gives_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="returned no credentials"):
        load(tmp_path, a_config(plugin(tmp_path, None)))


def test_files_that_change_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("one")
    (tmp_path / "token").write_text("t1\n")
    config = a_config({"tokenFile": "token"}, {"certificate-authority": "ca.crt"})
    source = Kubeconfig(written(tmp_path / "config", config))
    access = source.load()
    assert access.authorization == "Bearer t1"
    assert source.refresh(access) == access

    (tmp_path / "token").write_text("t2\n")
    assert source.refresh(access) == access._replace(authorization="Bearer t2")
    (tmp_path / "ca.crt").unlink()
    (tmp_path / "ca.crt").write_text("two")
    assert source.refresh(access).root_certificates == "two"


def test_inside_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("ca")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert isinstance(find_access(), InCluster)
    source = InCluster(tmp_path)
    access = source.load()

    assert access.server == "https://10.0.0.1:443"
    assert access.authorization.lower() == "bearer pod-token"
    assert source.refresh(access) == access
    assert isinstance(find_access("some/file"), Kubeconfig)


def test_of_entries_with_one_name_the_first_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tmp_path / "first", {"users": [{"name": "u", "user": {"token": "first"}}]})
    second = written(tmp_path / "second", a_config({"token": "second"}))
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")

    access = find_access().load()

    assert access.authorization == "Bearer first"
    assert access.server == SERVER


def test_paths_are_relative_to_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.crt").write_text(f"ca of {name}")
    users = {"users": [{"name": "u", "user": {"tokenFile": "token"}}]}
    (tmp_path / "one" / "token").write_text("t")
    cluster = a_config(cluster={"certificate-authority": "ca.crt"})
    paths = (
        written(tmp_path / "one" / "config", users),
        written(tmp_path / "two" / "config", cluster),
    )
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))

    access = find_access().load()

    assert (access.authorization, access.root_certificates) == ("Bearer t", "ca of two")


def test_data_goes_before_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    cluster = {"certificate-authority-data": data, "certificate-authority": "/nowhere"}

    assert load(tmp_path, a_config(cluster=cluster)).root_certificates == "inline"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param("- a\n", "is a list, not a mapping", id="a-list"),
        pytest.param("a: [", "is not YAML", id="not-yaml"),
        pytest.param("", "no current context", id="empty"),
        pytest.param("clusters: 1\n", "clusters must be a list", id="no-list"),
        pytest.param("users: [1]\n", "an entry of users has no user", id="no-entry"),
        pytest.param(yaml.dump(a_config(cluster={"server": ""})), "no server URL", id="no-server"),
        pytest.param(
            yaml.dump(a_config(cluster={"certificate-authority-data": "%"})),
            "certificate-authority-data is not base64",
            id="no-base64",
        ),
        pytest.param(
            yaml.dump(a_config({"client-certificate-data": "YQ=="})),
            "client-certificate and client-key must be given together",
            id="no-key",
        ),
        pytest.param(
            yaml.dump(a_config({"auth-provider": {"name": "gcp"}})), "exec plugins", id="gcp"
        ),
        pytest.param(
            yaml.dump(a_config({"exec": {"command": "x", "apiVersion": "v0"}})),
            "apiVersion 'v0' is not supported",
            id="exec-version",
        ),
        pytest.param(
            yaml.dump(
                a_config(
                    {
                        "exec": {
                            "command": "no-such-plugin",
                            "apiVersion": "client.authentication.k8s.io/v1",
                            "installHint": "install it first",
                        }
                    }
                )
            ),
            "'no-such-plugin' not found: install it first",
            id="exec-not-installed",
        ),
    ],
)
def test_unusable_files_have_one_clear_error(tmp_path: Path, config: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(config)

    with pytest.raises(ConfigError, match=message):
        Kubeconfig(path).load()


@pytest.mark.parametrize(
    "access",
    [
        pytest.param(ClusterAccess(SERVER, root_certificates="x"), id="authority"),
        pytest.param(ClusterAccess(SERVER, certificate=b"x"), id="client"),
    ],
)
def test_certificates_that_are_none_have_one_clear_error(access: ClusterAccess) -> None:
    with pytest.raises(ConfigError, match="certificate"):
        access.ssl_context()


def test_a_plugin_gets_its_arguments_environment_and_cluster(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = ' '.join([*sys.argv[1:], os.environ['ONE'], info['spec']['cluster']['server']])\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'],\n"
        "                  'status': {'token': token}}))\n"
    )
    script.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "./plugin",  # beside the kubeconfig, not in the working directory
            "args": ["get", "token"],
            "env": [{"name": "ONE", "value": "1"}],
            "provideClusterInfo": True,
            "interactiveMode": "Never",
        }
    }

    assert load(tmp_path, a_config(user)).authorization == f"Bearer get token 1 {SERVER}"


def an_id_token(expires: datetime) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires.timestamp()}).encode())
    return f"e30.{claims.decode().rstrip('=')}.c2ln"


def test_an_id_token_is_renewed_when_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    fresh = an_id_token(now + timedelta(hours=1))
    asked: list[tuple[str, bytes | None]] = []

    def answer(url: str, context: ssl.SSLContext, body: bytes | None = None) -> dict[str, str]:
        asked.append((url, body))
        return {"token_endpoint": "https://idp/token", "id_token": fresh}

    monkeypatch.setattr(credentials, "_provider_answer", answer)
    config = {"id-token": an_id_token(now + timedelta(hours=2)), "idp-issuer-url": "https://idp/"}
    user = {"auth-provider": {"name": "oidc", "config": config}}
    assert load(tmp_path, a_config(user)).authorization == f"Bearer {config['id-token']}"

    config["id-token"] = an_id_token(now)
    with pytest.raises(ConfigError, match="no refresh-token; log in again"):
        load(tmp_path, a_config(user))

    config |= {"refresh-token": "r", "client-id": "c"}
    assert load(tmp_path, a_config(user)).authorization == f"Bearer {fresh}"
    assert asked == [
        ("https://idp/.well-known/openid-configuration", None),
        ("https://idp/token", b"grant_type=refresh_token&refresh_token=r&client_id=c"),
    ]
