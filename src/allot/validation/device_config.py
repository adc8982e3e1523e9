"""Opaque driver configuration, in claims, classes and allocation results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.base import Opaque, is_set
from allot.api.resource import OpaqueDeviceConfiguration
from allot.validation.fields import FieldError, FieldPath, invalid, required, too_long
from allot.validation.names import validate_declared_driver_name, validate_driver_name

MAX_OPAQUE_SIZE: Final = 10 * 1024


def validate_opaque_configuration(
    opaque: OpaqueDeviceConfiguration | None,
    path: FieldPath,
    *,
    stored: bool = False,
    limit_size: bool = True,
) -> Iterator[FieldError]:
    """The driver and its parameters. `stored`: unchanged by an update, so hand-written rules apply."""
    opaque_path = path / "opaque"
    if opaque is None:
        yield required(opaque_path)
        return
    check_driver = validate_driver_name if stored else validate_declared_driver_name
    yield from check_driver(opaque.driver, opaque_path / "driver")
    if not is_set(opaque.parameters):
        yield required(opaque_path / "parameters")
    else:
        yield from validate_json_object(
            opaque.parameters, opaque_path / "parameters", limit_size=limit_size
        )


def validate_json_object(
    opaque: Opaque, path: FieldPath, *, limit_size: bool = True
) -> Iterator[FieldError]:
    """JSON that must be an object and not too large, counted in bytes as they were sent."""
    data = bytes(opaque)
    if limit_size and len(data) > MAX_OPAQUE_SIZE:
        yield too_long(path, MAX_OPAQUE_SIZE)
    elif not data.lstrip().startswith(b"{"):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")
