from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import incluster_config

from allot.client.kubeconfig import (
    ClusterAccess,
    ConfigError,
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


def test_a_proxy_we_cannot_use_is_told(tmp_path: Path) -> None:
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
        pytest.param(a_config() | {"clusters": []}, "c in", id="no-such-cluster"),
        pytest.param(
            a_config(cluster={"certificate-authority": "/nowhere/ca.crt"}),
            "ca.crt",
            id="no-such-file",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, config: dict[str, Any], said: str) -> None:
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
    with pytest.raises(ConfigError, match="gave no credentials"):
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
    assert source.refresh(access).files_changed_at != access.files_changed_at


def test_inside_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("ca")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HOME", str(tmp_path))

    source = find_access()
    access = source.load()

    assert isinstance(source, InCluster)
    assert access.server == "https://10.0.0.1:443"
    assert access.authorization.lower() == "bearer pod-token"
    assert source.refresh(access) == access
    assert isinstance(find_access("some/file"), Kubeconfig)
