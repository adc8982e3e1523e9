"""`allot allocate`: scenarios in, answers out."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from allot.cli.errors import EXIT_FINDINGS, EXIT_OK
from allot.cli.main import allot

DRIVER = "gpu.example.com"


def a_scenario(*, count: int = 1, devices: int = 2) -> dict[str, Any]:
    return {
        "name": "two GPUs",
        "features": {"ConsumableCapacity": True},
        "node": {"metadata": {"name": "node-1"}},
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "slices": [
            {
                "metadata": {"name": "slice"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": "node-1",
                    "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
                },
            }
        ],
        "allocated": None,
        "claims": [
            {
                "metadata": {"name": "claim", "namespace": "default"},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "r",
                                "exactly": {
                                    "deviceClassName": "gpu",
                                    "allocationMode": "ExactCount",
                                    "count": count,
                                },
                            }
                        ]
                    }
                },
            }
        ],
    }


def answers(lines: list[str], *options: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(
        allot, ["allocate", *options], input="\n".join(lines), standalone_mode=False
    )
    code = result.return_value
    assert isinstance(code, int)
    return code, [json.loads(line) for line in result.stdout.splitlines()]


def test_an_answer_per_scenario() -> None:
    code, (fits, does_not) = answers(
        [json.dumps(a_scenario()), "", json.dumps(a_scenario(count=3))]
    )

    assert code == EXIT_OK
    (device,) = fits["result"][0]["devices"]["results"]
    assert device == {"request": "r", "driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    assert (does_not["result"], does_not["error"]) == (None, "")


def test_a_line_that_is_no_scenario_is_answered_too() -> None:
    code, (wrong, right) = answers(["{", json.dumps(a_scenario())])

    assert code == EXIT_FINDINGS
    assert wrong["error"].startswith("not a scenario: ")
    assert right["error"] == ""


def test_explain_says_why_and_what_would_help() -> None:
    _, (answered,) = answers([json.dumps(a_scenario(count=3))], "--explain")

    assert answered["explanation"] == [
        (
            "node node-1: request r of claim default/claim finds 2 of 3 devices;"
            " there are no more devices"
        ),
        "  claim default/claim, request r: 2 of 3 devices found",
    ]
    assert answered["proposals"] == [
        "claim default/claim, request r: ask for 2 devices instead of 3",
        "1 more device like gpu-0 of gpu.example.com on node node-1",
    ]


def test_steps_bound_the_search() -> None:
    _, (answered,) = answers([json.dumps(a_scenario(count=2))], "--steps", "1")

    assert answered["error"] == "gave up after 1 steps"
