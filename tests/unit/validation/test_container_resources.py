"""What a container may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from allot.validation.container_resources import validate_container_resources
from allot.validation.fields import FieldPath

GPU = "a.b/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        pytest.param({"requests": {"cpu": "1"}}, "", id="no-limit"),
        pytest.param({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}, "", id="more"),
        pytest.param({"requests": {GPU: "1"}, "limits": {GPU: "1"}}, "", id="extended"),
        pytest.param({"limits": {IMPLICIT: "1"}}, "", id="of-a-class"),
        pytest.param({"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}, "", id="huge-pages"),
        pytest.param(
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            'requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="less",
        ),
        pytest.param(
            {"requests": {GPU: "1"}},
            "limits: Required value: Limit must be set for non overcommitable resources",
            id="extended-without-limit",
        ),
        pytest.param(
            {"requests": {GPU: "1"}, "limits": {GPU: "2"}},
            'requests: Invalid value: "1": must be equal to a.b/gpu limit of 2',
            id="extended-with-more",
        ),
        pytest.param(
            {"limits": {GPU: "500m"}},
            'limits[a.b/gpu]: Invalid value: "500m": must be an integer',
            id="half-a-device",
        ),
        pytest.param(
            {"limits": {"gpu": "1"}},
            'limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified\n'
            'limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            id="no-domain",
        ),
        pytest.param(
            {"limits": {"requests.a.b/gpu": "1"}},
            'limits[requests.a.b/gpu]: Invalid value: "requests.a.b/gpu": '
            "doesn't follow extended resource name standard",
            id="name-of-a-quota",
        ),
        pytest.param(
            {"limits": {"cpu": "-1"}},
            'limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="negative",
        ),
    ],
)
def test_resources(resources: dict[str, Any], problem: str) -> None:
    errors = validate_container_resources(resources, FieldPath(""))

    assert [str(error).lstrip(".") for error in errors] == problem.splitlines()
