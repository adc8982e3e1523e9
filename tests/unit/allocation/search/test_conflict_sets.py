"""Conflict sets of devices that are refused before their constraints are checked."""

from __future__ import annotations

from allot.allocation.allocator import allocate
from allot.allocation.problem import Infeasible, StepBudget
from allot.api.claims import (
    DeviceConstraint,
    DeviceDerivedAttribute,
    ExactDeviceRequest,
)
from allot.testing.builders import GPU, a_claim, a_device, a_problem, a_request, a_slice

BUDGET = StepBudget(1000)


def test_a_derived_attribute_of_a_refused_device_is_no_error() -> None:
    """The node cannot skip the driver's operations. Its derived attribute, which fails, is not needed to say so."""
    derived = DeviceDerivedAttribute("d.example.com/derived", 'device.attributes["a.b"].size')
    request = ExactDeviceRequest(
        device_class_name=GPU.device_class_name,
        allocation_mode="All",
        derived_attributes=(derived,),
    )
    distinct = DeviceConstraint(distinct_attribute="d.example.com/derived")
    problem = a_problem(
        a_claim(a_request(exactly=request), constraints=(distinct,)),
        slices=[a_slice(a_device("gpu-0"), skip_node_operations=("NodePrepareResources",))],
    )

    plain = allocate(problem, BUDGET, lambda: "share")
    with_forward_checking = allocate(
        problem, BUDGET, lambda: "share", failures_before_forward_checking=-1
    )

    assert isinstance(plain, Infeasible)
    assert isinstance(with_forward_checking, Infeasible)
