"""What `allot demo` says where there is nothing to play in. The stories are in tests/integration/test_stories.py."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from allot.cli.demo import demo
from allot.cli.errors import CommandError

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%d"}}]
"""


def complaint(kubeconfig: Path) -> str:
    result = CliRunner().invoke(demo, ["--fast", "--kubeconfig", str(kubeconfig)])
    assert isinstance(result.exception, CommandError)
    return str(result.exception)


def test_no_kubeconfig(tmp_path: Path) -> None:
    said = complaint(tmp_path / "nope")

    assert said.startswith(f"no kubeconfig at {tmp_path / 'nope'}; `allot up` starts a cluster")


def test_no_cluster_answers(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        path = tmp_path / "kubeconfig"
        path.write_text(KUBECONFIG % closed.getsockname()[1])

        said = complaint(path)

    assert f"Connection refused; the kubeconfig is {path} (--kubeconfig)" in said
    assert "`allot up` starts a cluster" in said


@pytest.mark.parametrize(
    "text", ["hello", "a: [", "", "[]"], ids=["word", "broken", "empty", "list"]
)
def test_not_a_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    said = complaint(path)

    assert str(path) in said
    assert "\n" not in said


def test_unknown_story(tmp_path: Path) -> None:
    result = CliRunner().invoke(demo, ["1234"])

    assert result.exit_code == 2
    assert "'1234' is not one of" in result.output
