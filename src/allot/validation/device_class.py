"""DeviceClass: selectors, configuration, and its extended resource name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.classes import DeviceClass, DeviceClassConfiguration, DeviceClassSpec
from allot.validation.context import Context
from allot.validation.device_config import validate_opaque_configuration
from allot.validation.expressions import AcceptEverything, validate_selector
from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.formats import label_key_problems, subdomain_problems
from allot.validation.lists import validate_items
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.resource_claim import MAX_CONFIGS, MAX_SELECTORS, SPEC


def validate_class(device_class: DeviceClass, context: Context) -> Iterator[FieldError]:
    yield from validate_metadata(
        device_class.metadata,
        namespaced=False,
        check_generate_name=False,
        name_problems=lambda name: subdomain_problems(name, "bytes"),
    )
    yield from _validate_spec(device_class.spec, None, context)


def validate_class_update(
    new: DeviceClass, old: DeviceClass, context: Context
) -> Iterator[FieldError]:
    """An existing class. Unchanged selectors are not compiled again, unchanged configs not measured."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    yield from _validate_spec(new.spec, old.spec, context)


def _validate_spec(
    spec: DeviceClassSpec, old: DeviceClassSpec | None, context: Context
) -> Iterator[FieldError]:
    same_selectors = old is not None and spec.selectors == old.selectors
    checker = AcceptEverything() if same_selectors else context.expressions
    yield from validate_items(
        spec.selectors,
        SPEC / "selectors",
        MAX_SELECTORS,
        lambda selector, path: validate_selector(selector, path, checker, context.gates),
    )
    same_config = old is not None and spec.config == old.config

    def check_config(config: DeviceClassConfiguration, path: FieldPath) -> Iterator[FieldError]:
        return validate_opaque_configuration(
            config.opaque, path, stored=same_config, limit_size=not same_config
        )

    yield from validate_items(spec.config, SPEC / "config", MAX_CONFIGS, check_config)
    name = spec.extended_resource_name
    if name is not None:
        stored = old is not None and name == old.extended_resource_name
        yield from _validate_extended_resource_name(name, SPEC / "extendedResourceName", stored)


_DOMAIN: Final = "kubernetes.io/"
_REQUESTS: Final = "requests."


def _validate_extended_resource_name(
    name: str, path: FieldPath, stored: bool
) -> Iterator[FieldError]:
    problems = _extended_resource_name_problems(name)
    if problems and stored:
        # The hand-written rule, which applies to unchanged values, gives no details.
        yield invalid(path, name, "must be a valid extended resource name")
        return
    for problem in problems:
        yield invalid(path, name, problem, declared=True)


def _extended_resource_name_problems(name: str) -> list[str]:
    problems = []
    if "/" not in name:
        problems.append("a name must be a domain-prefixed path, such as 'example.com/my-prop'")
    elif _DOMAIN in name:
        problems.append(f'must not have "{_DOMAIN}" domain')
    if name.startswith(_REQUESTS):
        problems.append(f'must not have "{_REQUESTS}" prefix')
    # As a quota it is written with a prefix, and must be a label key then, too.
    return problems + label_key_problems(_REQUESTS + name)
