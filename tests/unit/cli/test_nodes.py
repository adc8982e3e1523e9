"""`allot nodes`: its options. That it works is for the integration tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from allot.cli.errors import CommandError
from allot.cli.main import allot as program
from allot.cli.nodes import load_all, nodes
from allot.driver.loading import profiles


def test_profiles_are_listed() -> None:
    done = CliRunner().invoke(nodes, ["--profiles"], standalone_mode=False)

    lines = done.output.splitlines()
    at = lines.index("gpu-server        2 node(s): gpu.example.com, nic.example.com")
    assert lines[at + 1].strip() == "24 device(s): 16 of gpu.example.com, 8 of nic.example.com"
    assert lines[at + 2].strip().startswith("A server with 8 GPUs on two sockets")
    assert len(lines) == 3 * len(profiles())
    assert all(line.strip() for line in lines), "every profile has a description"


def test_dry_run_prints_what_would_be_created(tmp_path: Path) -> None:
    """Without a cluster; the objects can be applied, or checked."""
    command = ["--hardware", "gpu-server=1", "--hardware", "fabric", "--dry-run"]

    done = CliRunner().invoke(nodes, command, standalone_mode=False)

    assert done.exception is None
    objects = list(yaml.safe_load_all(done.stdout))
    kinds = Counter(each["kind"] for each in objects)
    assert kinds == {"Node": 3, "ResourceSlice": 3, "DeviceClass": 3}
    assert done.stderr == ("dry run, nothing was created: 3 Node, 3 ResourceSlice, 3 DeviceClass\n")
    assert objects[0]["apiVersion"] == "v1"
    assert objects[0]["metadata"]["name"] == "gpu-server-0"
    devices = [each["name"] for each in objects[1]["spec"]["devices"]]
    assert devices == [f"gpu-{number}" for number in range(8)]
    file = tmp_path / "objects.yaml"
    file.write_text(done.stdout)
    checked = CliRunner().invoke(program, ["lint", "-f", str(file)], standalone_mode=False)
    assert checked.return_value == 0, checked.output


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
