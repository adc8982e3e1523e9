"""Files with credentials: who can read them, and what is in them."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from allot.apiserver.auth.credentials import (
    CredentialError,
    exposed_files,
    prepare_credentials,
    write_kubeconfig,
    write_secret,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_authority_signs_no_further_authorities(tmp_path: Path) -> None:
    credentials = prepare_credentials(tmp_path, [], NOW)
    authority = x509.load_pem_x509_certificate(credentials.ca_file.read_bytes())
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)


def test_credentials_are_kept(tmp_path: Path) -> None:
    first = prepare_credentials(tmp_path, [], NOW)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "components.token").unlink()  # data directories of earlier versions have none
    second = prepare_credentials(tmp_path, [], NOW)
    assert second.admin_token == first.admin_token
    assert second.component_secret != first.component_secret
    changed = {path.name for path in tmp_path.iterdir() if path.read_bytes() != kept[path.name]}
    assert changed == {"components.token"}


def test_everything_is_for_the_owner_only(tmp_path: Path) -> None:
    credentials = prepare_credentials(tmp_path / "pki", [], NOW)
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, "https://here", credentials.ca_file, "ann", "token")
    files = [*(tmp_path / "pki").iterdir(), kubeconfig]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert exposed_files(tmp_path / "pki", kubeconfig) == []


def test_files_that_others_can_read_are_found(tmp_path: Path) -> None:
    pki = tmp_path / "pki"
    prepare_credentials(pki, [], NOW)
    (pki / "ca.key").chmod(0o644)
    (pki / "admin.token").chmod(0o640)
    (pki / "ca.crt").chmod(0o644)  # no secret
    users = tmp_path / "tokens.csv"
    users.write_text("")
    users.chmod(0o604)
    found = exposed_files(pki, users, tmp_path / "missing")
    assert [(path.name, oct(mode)) for path, mode in found] == [
        ("admin.token", "0o640"),
        ("ca.key", "0o644"),
        ("tokens.csv", "0o604"),
    ]


def test_a_kubeconfig_is_written_only_when_it_changes(tmp_path: Path) -> None:
    credentials = prepare_credentials(tmp_path / "pki", [], NOW)
    path = tmp_path / "kubeconfig"

    def write(server: str) -> int:
        write_kubeconfig(path, server, credentials.ca_file, "ann", "token")
        return path.stat().st_ino

    first = write("https://here")
    assert write("https://here") == first
    assert write("https://there") != first
    path.chmod(0o644)
    write("https://there")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["users"] == [{"name": "ann", "user": {"token": "token"}}]


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CredentialError, match=r"admin\.token cannot be written: No space left"):
        write_secret(tmp_path / "admin.token", b"secret")
    assert list(tmp_path.iterdir()) == []
