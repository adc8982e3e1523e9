"""One rule says which cluster a command talks to, and an error says which one it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot.cli.data_directory import occupied
from allot.cli.errors import CommandError
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error
from allot.client.errors import ApiStatusError, ConfigError, TransportError
from allot.public.errors import ClusterError

CONFIG = """\
apiVersion: v1
kind: Config
current-context: allot
contexts: [{name: allot, context: {cluster: allot}}]
clusters: [{name: allot, cluster: {server: "https://127.0.0.1:1"}}]
"""
OWN = Path(".allot/kubeconfig")
REFUSED = TransportError("127.0.0.1:1: Connection refused", was_sent=False)


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Path(".allot").mkdir()
    OWN.write_text(CONFIG)
    Path("named").write_text(CONFIG)


def test_named_file_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "other")
    with occupied(Path(".allot")):
        assert chosen_kubeconfig(Path("named")) == Path("named")


def test_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "other")
    with occupied(Path(".allot")):
        assert chosen_kubeconfig(None) is None, "kubectl's rules apply"


def test_then_the_cluster_here_if_it_runs() -> None:
    assert chosen_kubeconfig(None) is None
    with occupied(Path(".allot")):
        assert chosen_kubeconfig(None) == OWN
        assert chosen_kubeconfig(None, "allot") == OWN
        assert chosen_kubeconfig(None, "production") is None, "another file has this context"
    assert chosen_kubeconfig(None) is None


def test_missing_file() -> None:
    with pytest.raises(CommandError, match="no kubeconfig at nope; `allot up` starts a cluster"):
        chosen_kubeconfig(Path("nope"))


def test_error_says_how_to_start_a_stopped_cluster(tmp_path: Path) -> None:
    with occupied(Path(".allot")):
        pass
    absolute = tmp_path / ".allot" / "kubeconfig"

    said = str(cluster_error(REFUSED, absolute))

    assert said == (
        f"127.0.0.1:1: Connection refused; the kubeconfig is {absolute} (--kubeconfig): "
        "its cluster is stopped; start it with `allot up`"
    )


def test_error_names_another_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "elsewhere"
    with occupied(directory):
        pass
    (directory / "kubeconfig").write_text(CONFIG)
    monkeypatch.setenv("KUBECONFIG", str(directory / "kubeconfig"))

    said = str(cluster_error(REFUSED, None))

    assert "(KUBECONFIG)" in said
    assert f"`allot up --data-dir {directory}`" in said


def test_error_names_the_cluster_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "named")
    with occupied(Path(".allot")):
        said = str(cluster_error(REFUSED, None))

    assert said.endswith(
        f"the kubeconfig is named (KUBECONFIG); the cluster that runs here is {OWN}"
    )


def test_token_of_an_earlier_cluster() -> None:
    said = str(cluster_error(ApiStatusError(401, "Unauthorized", "Unauthorized"), Path("named")))

    assert said.startswith("Unauthorized; the kubeconfig is named (--kubeconfig)")


def test_cause_of_an_error_of_the_public_api() -> None:
    error = ClusterError(str(REFUSED))
    error.__cause__ = REFUSED

    assert "the kubeconfig is named" in str(cluster_error(error, Path("named")))


def test_no_kubeconfig_but_a_stopped_cluster() -> None:
    with occupied(Path(".allot")):
        pass

    said = str(cluster_error(ConfigError("no kubeconfig at ~/.kube/config"), None))

    assert said.endswith("; the cluster in .allot is stopped: `allot up` starts it")


def test_no_kubeconfig_but_a_cluster_that_runs() -> None:
    with occupied(Path(".allot")), pytest.raises(CommandError) as raised:
        chosen_kubeconfig(Path("nope"))

    assert str(raised.value) == f"no kubeconfig at nope; the cluster that runs here is {OWN}"


def test_other_errors_stay_as_they_are() -> None:
    error = ApiStatusError(403, "Forbidden", "pods is forbidden")

    assert str(cluster_error(error, None)) == "pods is forbidden"
