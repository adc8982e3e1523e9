"""What `kubectl explain` says about limits is what validation holds people to."""

from __future__ import annotations

import re
from typing import Final

import pytest

from allot.api import claims
from allot.api.resource import MAX_RESULTS
from allot.apiserver.http.openapi.descriptions import field_description
from allot.apiserver.schemas.structs import types_in, versions
from allot.validation import (
    claim_status,
    derived_attributes,
    device,
    device_taint_rule,
    pool_status_request,
    resource_claim,
    resource_slice,
)
from allot.validation.binding_conditions import MAX_BINDING_CONDITIONS
from allot.validation.capacity_policy import MAX_VALID_VALUES
from allot.validation.device_config import MAX_OPAQUE_SIZE
from allot.validation.expressions import MAX_EXPRESSION_LENGTH
from allot.validation.names import DRIVER_NAME_LENGTH, IDENTIFIER_LENGTH, POOL_NAME_LENGTH

_says: Final = re.compile(r"[Aa]t most (\d+)( KiB)?")

MAX_SLICE_ERRORS: Final = 10
"""Of a v1alpha1 pool status; the controller keeps to it, and Kubernetes has no such field."""

ASKED: Final = {
    "selectors": [resource_claim.MAX_SELECTORS],
    "count": [MAX_RESULTS],
    "derivedAttributes": [derived_attributes.MAX_DERIVED_ATTRIBUTES],
}
DEVICE: Final = {
    "attributes": [device.MAX_ATTRIBUTES_AND_CAPACITIES, device.MAX_ATTRIBUTE_VALUES],
    "bindingConditions": [MAX_BINDING_CONDITIONS],
    "bindingFailureConditions": [MAX_BINDING_CONDITIONS],
    "consumesCounters": [device.MAX_CONSUMED_SETS],
    "taints": [device.MAX_TAINTS],
}
LIMITS: Final[dict[str, dict[str, list[int]]]] = {
    "AllocatedDeviceStatus": {
        "conditions": [claim_status.MAX_DEVICE_CONDITIONS],
        "data": [MAX_OPAQUE_SIZE],
    },
    "BasicDevice": DEVICE,
    "CELDeviceSelector": {"expression": [MAX_EXPRESSION_LENGTH]},
    "CapacityRequestPolicy": {"validValues": [MAX_VALID_VALUES]},
    "CounterSet": {"counters": [device.MAX_COUNTERS]},
    "Device": DEVICE,
    "DeviceAllocationResult": {
        "config": [claim_status.MAX_ALLOCATED_CONFIGS],
        "results": [MAX_RESULTS],
    },
    "DeviceAttribute": {
        name: [device.MAX_TEXT_ATTRIBUTE] for name in ("string", "strings", "version")
    },
    "DeviceClaim": {
        "config": [resource_claim.MAX_CONFIGS],
        "constraints": [resource_claim.MAX_CONSTRAINTS],
        "requests": [resource_claim.MAX_REQUESTS],
    },
    "DeviceClaimConfiguration": {"requests": [resource_claim.MAX_REQUESTS]},
    "DeviceClassSpec": {
        "config": [resource_claim.MAX_CONFIGS],
        "selectors": [resource_claim.MAX_SELECTORS],
    },
    "DeviceConstraint": {"requests": [resource_claim.MAX_REQUESTS]},
    "DeviceCounterConsumption": {
        "compatibilityGroups": [device.MAX_COMPATIBILITY_GROUPS],
        "counters": [device.MAX_COUNTERS],
    },
    "DeviceDerivedAttribute": {
        "expression": [MAX_EXPRESSION_LENGTH],
        "name": [IDENTIFIER_LENGTH],
    },
    "DeviceRequest": {**ASKED, "firstAvailable": [resource_claim.MAX_ALTERNATIVES]},
    "DeviceRequestAllocationResult": {
        "bindingConditions": [MAX_BINDING_CONDITIONS],
        "bindingFailureConditions": [MAX_BINDING_CONDITIONS],
    },
    "DeviceSubRequest": ASKED,
    "DeviceTaintRuleStatus": {"conditions": [device_taint_rule.MAX_CONDITIONS]},
    "ExactDeviceRequest": ASKED,
    "NetworkDeviceData": {
        "hardwareAddress": [claim_status.MAX_HARDWARE_ADDRESS],
        "interfaceName": [claim_status.MAX_INTERFACE_NAME],
        "ips": [claim_status.MAX_IPS],
    },
    "OpaqueDeviceConfiguration": {
        "driver": [DRIVER_NAME_LENGTH],
        "parameters": [MAX_OPAQUE_SIZE],
    },
    "PoolStatus": {
        "partitionSummary": [pool_status_request.MAX_SUMMARIES],
        "validationError": [pool_status_request.MAX_VALIDATION_ERROR],
    },
    "ResourceClaimStatus": {"reservedFor": [claims.MAX_CONSUMERS]},
    "ResourcePool": {"name": [POOL_NAME_LENGTH]},
    "ResourcePoolStatusRequestStatus": {
        "conditions": [pool_status_request.MAX_CONDITIONS],
        "pools": [pool_status_request.MAX_POOLS],
        "validationErrors": [MAX_SLICE_ERRORS],
    },
    "ResourceSliceSpec": {
        "devices": [resource_slice.MAX_DEVICES],
        "driver": [DRIVER_NAME_LENGTH],
        "sharedCounters": [resource_slice.MAX_COUNTER_SETS],
    },
    "ShareableSummaryStatus": {"capacity": [pool_status_request.MAX_SUMMARIES]},
}


@pytest.mark.parametrize("version", versions())
def test_texts_state_the_limits_that_hold(version: str) -> None:
    """All of them: a description with a number that is not in the table fails, too."""
    for name, schema in types_in(version).items():
        for field in schema.fields:
            said = [
                int(number) * (1024 if unit else 1)
                for number, unit in _says.findall(field_description(schema, field))
            ]
            limits = LIMITS.get(name, {}).get(field, [])
            if name == "DeviceRequest" and version != "v1beta1" and field in ASKED:
                limits = []
            assert said == limits, f"{version} {name}.{field}"


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_names_of_derived_attributes(version: str) -> None:
    text = field_description(types_in(version)["DeviceDerivedAttribute"], "name")

    assert "or an identifier alone, which may have hyphens" in " ".join(text.split())
