"""`allot nodes`: its options. That it works is for the integration tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from allot.cli.errors import CommandError
from allot.cli.nodes import load_all, nodes


def test_profiles_are_listed() -> None:
    done = CliRunner().invoke(nodes, ["--profiles"], standalone_mode=False)

    assert "gpu-server   2 node(s): gpu.example.com, nic.example.com" in done.output.splitlines()


@pytest.mark.parametrize(
    ("references", "message"),
    [
        pytest.param(["nope"], "nope: no such file or profile", id="missing"),
        pytest.param(
            ["fabric", "fabric=3"],
            "--hardware fabric=3: hardware fabric is in fabric already",
            id="twice",
        ),
        pytest.param(
            ["gpu-server", "FILE"], "FILE: node gpu-server-1 is in gpu-server already", id="node"
        ),
    ],
)
def test_hardware_that_cannot_be(tmp_path: Path, references: list[str], message: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("nodes: {name: 'gpu-server-{node+1}'}")

    with pytest.raises(CommandError) as error:
        load_all([reference.replace("FILE", str(path)) for reference in references])

    assert message.replace("FILE", str(path)) in str(error.value)


def test_several_descriptions_beside_each_other() -> None:
    loaded = load_all(["gpu-server=1", "fabric"])

    assert [hardware.name for hardware in loaded] == ["gpu-server", "fabric"]
