from __future__ import annotations

from allot.api.base import replace
from allot.api.claims import DeviceRequest, ExactDeviceRequest
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.resource import CELDeviceSelector, DeviceSelector
from allot.apiserver.registry.write_results import RuleWarnings
from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.testing.builders import a_claim, a_request
from allot.validation.kubernetes_warnings import rule_warnings

GATES = DEFAULTS.with_rules(RuleSet.SEEDS)
NAMED = (DeviceSelector(CELDeviceSelector("device.name == 'a'")),)


def asking(selectors: tuple[DeviceSelector, ...]) -> DeviceRequest:
    return a_request(exactly=ExactDeviceRequest("gpu", selectors))


def test_rule_warnings_are_those_of_the_spec() -> None:
    warnings = RuleWarnings(GATES)
    named, plain = a_claim(asking(NAMED)), a_claim(asking(()))
    of_class = DeviceClass(spec=DeviceClassSpec(selectors=NAMED))
    again = replace(named, metadata=plain.metadata)

    for new in (named, again, plain, named, of_class, plain, plain, again):
        assert warnings.about(new) == rule_warnings(new, GATES)
    assert len(warnings.about(named)) == len(warnings.about(of_class)) == 1
