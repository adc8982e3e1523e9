"""The environments of Kubernetes v1.38 for selectors and derived attributes.

A *new* expression may use what the cluster's previous version supports, and what enabled feature gates
add. A *stored* expression may use everything, independent of gates, because it was accepted once and
must keep working.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

from allot.cel import macros, types
from allot.cel.declarations import Function
from allot.cel.environment import Environment, MessageType, merge_functions
from allot.cel.library import (
    arithmetic,
    authorization,
    conversions,
    formats,
    kubernetes_lists,
    lists,
    maps,
    messages,
    network,
    optionals,
    quantities,
    regexes,
    sets,
    strings,
    times,
    urls,
)
from allot.cel.types import Type
from allot.features import CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES, FeatureGates
from allot.rules import DEVICE_NAME_IN_CEL


class Origin(Enum):
    """Where an expression comes from."""

    NEW = "new"
    STORED = "stored"


_LIBRARIES: Final = (
    arithmetic.FUNCTIONS,
    conversions.FUNCTIONS,
    times.FUNCTIONS,
    strings.STANDARD,
    urls.FUNCTIONS,
    regexes.FUNCTIONS,
    kubernetes_lists.FUNCTIONS,
    authorization.FUNCTIONS,
    optionals.FUNCTIONS,
    lists.ENDS,
    quantities.QUANTITIES,
    strings.EXTENDED,
    strings.FORMAT,
    sets.FUNCTIONS,
    network.FUNCTIONS,
    formats.FUNCTIONS,
    maps.INSERT,
    quantities.SEMVERS,
    lists.EXTENDED,
)
_ALL_FUNCTIONS: Final = merge_functions([*_LIBRARIES, kubernetes_lists.INCLUDES])
_MACROS: Final = {
    **macros.STANDARD,
    **macros.BINDINGS,
    **macros.OPTIONALS,
    **macros.LISTS,
    **macros.TWO_VARIABLES,
}


def typed_environment(
    variables: Mapping[str, Type],
    messages_by_name: Mapping[str, MessageType],
    more_functions: Iterable[Function] = (),
) -> Environment:
    """An environment with variables of the caller's types, as validation rules and admission policies have."""
    more = {function.name: function for function in more_functions}
    return Environment(
        variables=variables,
        messages={**messages.MESSAGES, **messages_by_name},
        functions={**_ALL_FUNCTIONS, **more} if more else _ALL_FUNCTIONS,
        macros=_MACROS,
    )


def attribute_type(origin: Origin, gates: FeatureGates) -> Type:
    """The static type of an attribute: lists can be iterated only where they may occur."""
    if origin is Origin.STORED or LIST_TYPE_ATTRIBUTES in gates:
        return types.DYN
    return types.ANY


def environment(origin: Origin, gates: FeatureGates) -> Environment:
    """The environment of an expression of this origin."""
    stored = origin is Origin.STORED
    return _environment(
        stored or LIST_TYPE_ATTRIBUTES in gates,
        stored or CONSUMABLE_CAPACITY in gates,
        stored or DEVICE_NAME_IN_CEL in gates,
    )


@lru_cache(maxsize=8)
def _environment(
    list_attributes: bool, consumable_capacity: bool, device_name: bool
) -> Environment:
    attribute = types.DYN if list_attributes else types.ANY
    fields = {
        "driver": types.STRING,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, attribute)),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
    }
    if device_name:  # KEP-6080's naming conventions need it
        fields["name"] = types.STRING
    if consumable_capacity:
        fields["allowMultipleAllocations"] = types.BOOL
    libraries = [*_LIBRARIES, kubernetes_lists.INCLUDES] if list_attributes else list(_LIBRARIES)
    return Environment(
        variables={"device": types.DEVICE},
        messages={**messages.MESSAGES, types.DEVICE.name: MessageType(types.DEVICE, fields)},
        functions=merge_functions(libraries),
        macros=_MACROS,
    )
