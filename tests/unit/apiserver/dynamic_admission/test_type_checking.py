"""Type checking of policies, as kube-controller-manager v1.38 wrote it into their statuses.

`tests/conformance/data/admission-type-checking.json.gz` has the statuses of the policies in `admission_type_checking.py`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from allot.apiserver.dynamic_admission.type_checking import checked_kinds, expression_warnings
from allot.apiserver.registry.served import BY_DEFAULT
from allot.testing.servers import LocalServer
from tests.conformance.admission_bad_objects import path_of
from tests.conformance.admission_type_checking import POLICIES

DATA = Path(__file__).parents[3] / "conformance" / "data" / "admission-type-checking.json.gz"
RECORDED: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy["metadata"]["name"])
def test_warnings_are_those_of_the_real_controller(policy: dict[str, Any]) -> None:
    expected = RECORDED[policy["metadata"]["name"]]["typeChecking"].get("expressionWarnings", [])

    assert expression_warnings(policy, BY_DEFAULT) == expected


def test_the_status_follows_the_generation() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            policy = next(each for each in POLICIES if each["metadata"]["name"] == "tc-type")
            path = f"{path_of(policy)}/tc-type"

            async def status(generation: int) -> Any:
                async with asyncio.timeout(30):
                    while True:
                        found = await server.get(path)
                        if found["status"].get("observedGeneration") == generation:
                            assert found["metadata"]["generation"] == generation
                            return found["status"]
                        await asyncio.sleep(0.01)

            await server.post(path_of(policy), policy)
            assert await status(1) == RECORDED["tc-type"]
            fixed = {**policy, "spec": {**policy["spec"], "validations": [{"expression": "true"}]}}
            assert (await server.ask("PUT", path, fixed)).code == 200
            assert await status(2) == {"observedGeneration": 2, "typeChecking": {}}

    asyncio.run(run())


def test_rules_with_billions_of_combinations() -> None:
    names = [f"n{number}" for number in range(2_000)]
    rule = {"apiGroups": names, "apiVersions": names, "resources": names}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}

    found = checked_kinds({"matchConstraints": {"resourceRules": [pods, rule]}}, BY_DEFAULT)

    assert [kind.kind for kind in found] == ["Pod"]
