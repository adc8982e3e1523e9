"""Completion in shells: commands, options, and names of objects."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from allot.cli.completion import complete_for_kubectl
from allot.cli.program import allot as program
from allot.testing.cluster import ClusterSettings, RealTimeCluster

ROOT = Path(__file__).parents[3]
LIMIT_SECONDS = 120


def completed(*words: str) -> list[str]:
    """What the last word can be completed to."""
    *before, incomplete = words
    shell = ShellComplete(program, {}, "allot", "_ALLOT_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


def test_commands_and_options() -> None:
    assert completed("exp") == ["explain", "exporter"]
    assert "--kubeconfig" in completed("status", "--kube")
    assert completed("completion", "b") == ["bash"]
    assert completed("demo", "50") == ["5075", "5007"]


def test_profiles_and_rules() -> None:
    assert completed("up", "--hardware", "gpu")[0] == "gpu-server"
    assert completed("nodes", "--hardware", "fab")[0] == "fabric"
    assert completed("lint", "--ignore", "missing-cl") == ["missing-claim", "missing-class"]


def test_objects_in_files(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: train}\n---\n"
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: gpus}\n"
    )

    assert completed("explain", "-f", str(file), "") == ["claim/gpus", "pod/train"]
    assert completed("explain", "-f", str(file), "pod/") == ["pod/train"]
    assert completed("explain", "-f", str(file), "pod", "") == ["train"]


def test_objects_of_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with RealTimeCluster(tmp_path, ClusterSettings(["gpu-server=1"])) as cluster:
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "train"},
                "spec": {"containers": [{"name": "c", "image": "example.com/i"}]},
            }
        )
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

        assert completed("explain", "pod/t") == ["pod/train"]
        assert completed("explain", "-n", "kube-system", "pod/") == []
        assert "kube-system" in completed("explain", "-n", "kube")
        assert completed("status", "--node", "gpu") == ["gpu-server-0"]
        assert completed("status", "--class", "g") == ["gpu.example.com"]
        assert completed("status", "--driver", "n") == ["nic.example.com"]
        assert completed("status", "--pool", "gpu-server-0-") == ["gpu-server-0-rdma"]
        assert completed("status", "--context", "") == ["allot"]


def test_no_cluster_completes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nope"))

    assert completed("explain", "pod/") == []
    assert completed("status", "--context", "") == []


def test_kubectl_plugin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """kubectl runs `kubectl_complete-allot`; the last line is a directive of cobra."""
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-allot", "expl"])
    complete_for_kubectl()

    line, directive = capsys.readouterr().out.splitlines()
    assert line.split("\t")[0] == "explain"
    assert directive == ":4"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_for_both_programs(shell: str) -> None:
    script = CliRunner().invoke(program, ["completion", shell]).output

    assert "_ALLOT_COMPLETE" in script
    assert " allot" in script
    assert " kubectl-allot" in script


PROGRAMS = ("allot", "kubectl-allot")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with which a shell finds both names of the program, and no files of a user."""
    for name in PROGRAMS:
        path = tmp_path / name
        path.write_text(
            f"#!/bin/sh\nexec {sys.executable} -c 'from allot.cli.main import run; run()' \"$@\"\n"
        )
        path.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "nope"),
        "TERM": "dumb",
    }


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(shell) is None,
        reason=f"{shell} is not on the PATH: apt install {shell}",
    )


@needs("bash")
@pytest.mark.parametrize("name", PROGRAMS)
def test_bash_completes(environment: dict[str, str], name: str) -> None:
    text = (
        "source <(allot completion bash)\n"
        "for COMP_WORDS in x; do :; done\n"
        f"COMP_WORDS=({name} expl); COMP_CWORD=1\n"
        f"_allot_completion {name} 2>/dev/null || true\n"
        'echo "${COMPREPLY[@]}"\n'
        "complete -p allot kubectl-allot\n"
    )

    done = subprocess.run(
        ["bash", "--norc", "-c", text],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    assert done.stdout.splitlines()[0] == "explain", done.stderr
    assert "kubectl-allot" in done.stdout


@needs("fish")
@pytest.mark.parametrize("name", PROGRAMS)
def test_fish_completes(environment: dict[str, str], name: str) -> None:
    lines = (f"{name} expl", f"{name} completion z", f"{name} status --no")
    asked = "".join(f"; complete --do-complete '{line}'" for line in lines)

    done = subprocess.run(
        ["fish", "--no-config", "-c", f"allot completion fish | source{asked}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == ["explain", "zsh", "--node"], done.stderr


@needs("zsh")
@pytest.mark.parametrize("name", PROGRAMS)
def test_zsh_completes(environment: dict[str, str], name: str) -> None:
    """The keys of a user, in a pseudo-terminal: what Tab has completed is printed by `echo`."""
    begin_of_line, tab = "\x01", "\t"
    keys = [
        "autoload -Uz compinit && compinit -u -D",
        "source <(allot completion zsh)",
        f"{name} expla{tab}{begin_of_line}echo DONE ",
        f"{name} completion zs{tab}{begin_of_line}echo DONE ",
        "exit",
    ]

    output = typed(["zsh", "-f", "-i"], keys, environment)

    done = [line for line in output.splitlines() if line.startswith("DONE ")]
    assert [line.split()[1:] for line in done] == [
        [name, "explain"],
        [name, "completion", "zsh"],
    ], output


def typed(command: list[str], lines: list[str], environment: dict[str, str]) -> str:
    """The output of an interactive program in a terminal, after these lines were typed."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(terminal)
    os.write(controller, "".join(f"{line}\r" for line in lines).encode())
    output = b""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        ready, _, _ = select.select([controller], [], [], 1)
        if not ready:
            continue
        try:
            output += os.read(controller, 4096)
        except OSError:  # the program has ended
            break
    process.kill()
    process.wait()
    os.close(controller)
    return output.decode(errors="replace")
