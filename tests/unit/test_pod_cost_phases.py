"""How samples of the stack are counted in bench/cluster."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Final

import pytest

PHASES: Final = Path(__file__).parents[2] / "bench" / "cluster" / "sampling" / "phases.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("pod_cost_phases", PHASES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("stack", "component", "phase"),
    [
        pytest.param(
            ["api/quantity:parse", "validation/device:validate", "apiserver/http/app:_serve"],
            "API server",
            "validate",
            id="by-the-innermost-that-is-known",
        ),
        pytest.param(
            ["apiserver/watch_cache/codecs:encode", "apiserver/registry/object_store:create"],
            "API server",
            "encode",
            id="by-function",
        ),
        pytest.param(
            ["client/link:send", "client/client:patch", "scheduler/core/binding_cycles:run"],
            "scheduler",
            "link",
            id="task-of-the-scheduler",
        ),
        pytest.param(
            ["scheduler/core/event_handlers:put", "client/reflector:_take"],
            "informers",
            "queueing",
            id="handlers-run-in-informers",
        ),
        pytest.param(
            ["asyncio/sslproto:_do_read", "asyncio/events:_run"], "other", "TLS", id="TLS"
        ),
        pytest.param(["threading:run"], "other", "other", id="unknown"),
    ],
)
def test_component_and_phase(stack: list[str], component: str, phase: str) -> None:
    phases = load()
    calls = [phases.Call(*call.split(":")) for call in stack]

    assert phases.component_of(calls) == component
    assert phases.phase_of(calls) == phase
