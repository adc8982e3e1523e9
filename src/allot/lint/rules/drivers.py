"""Names of drivers that are probably typos: in selectors and in configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from allot.api.classes import DeviceClass
from allot.api.resource import DeviceSelector
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.spelling import only_typo
from allot.lint.subjects import LintSubject

_compared_driver: Final = re.compile(r"""device\.driver\s*==\s*(["'])([a-z0-9.-]+)\1""")


def unknown_drivers(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Only near misses: devices of other drivers need not be among the files."""
    drivers = {slice_.spec.driver for slice_ in known.slices.values()}
    for path, name in _named_drivers(subject):
        meant = only_typo(name, drivers) if name not in drivers else None
        if meant is not None:
            text = f'no ResourceSlice {known.where} is of driver "{name}"; did you mean "{meant}"?'
            yield Problem(rules.UNKNOWN_DRIVER, path, text)


def _named_drivers(subject: LintSubject) -> Iterator[tuple[str, str]]:
    """Fields, and the drivers that they name."""
    if isinstance(subject.object, DeviceClass):
        spec = subject.object.spec
        yield from _in_selectors("spec.selectors", spec.selectors)
        yield from _in_configuration("spec.config", spec.config)
    if subject.claim is not None:
        for alternative in subject.claim.alternatives():
            yield from _in_selectors(f"{alternative.path}.selectors", alternative.spec.selectors)
        yield from _in_configuration(f"{subject.claim.path}.config", subject.claim.devices.config)


def _in_selectors(path: str, selectors: Iterable[DeviceSelector]) -> Iterator[tuple[str, str]]:
    for index, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        for found in _compared_driver.finditer(expression):
            yield f"{path}[{index}].cel.expression", found[2]


def _in_configuration(path: str, configuration: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(configuration):
        if each.opaque is not None:
            yield f"{path}[{index}].opaque.driver", each.opaque.driver
