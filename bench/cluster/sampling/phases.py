"""The phase and the component of a sample of the stack, by the modules and functions in it.

Rules are tried for each frame, from the innermost outwards; the first one that fits decides. So the parsing of a
quantity counts as what it is done for, and a write of the scheduler as writing, whatever has decided it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple


class Call(NamedTuple):
    """A frame: the module, as a path below `allot` or a name of the standard library, and the function."""

    module: str
    function: str


PHASES: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("garbage collection", r"sampling/|cli/garbage_collection"),
        ("events", r"client/events"),
        ("TLS", r"asyncio/sslproto|^ssl"),
        ("audit", r"apiserver/audit/"),
        ("authentication, authorization", r"apiserver/auth/"),
        ("admission", r"apiserver/admission/|^quota/"),
        ("managedFields", r"apiserver/managed_fields/|apiserver/http/field_"),
        ("encode", (r"watch_cache/codecs.*:(encode|as_stored)|apiserver/http/(rendering|protobuf_rendering|list_bodies)"
                   r"|watch_cache/stored_objects.*:(body|message|with_)")),
        ("decode, default", (r"apiserver/(defaults|schemas)/|http/(object_bodies|type_checks|patch_bodies|apply_bodies)"
                            r"|registry/patches/|watch_cache/codecs|api/strictness|api/json_limits|api/scheme")),
        ("validate", r"^validation/|^cel/|apiserver/kinds/|registry/write_pipeline"),
        ("storage", r"^storage/"),
        ("watch fan-out", r"http/watching|apiserver/watch_cache/|registry/selection|apiserver/selectors/"),
        ("registry", r"apiserver/registry/"),
        ("link", r"client/link|http/link_server"),
        ("HTTP", r"apiserver/http/|apiserver/"),
        ("deciding", r"^allocation/|scheduler/(core/(scheduling|scheduler|equivalence)|plugins|framework|state)"),
        ("informers", r"client/(reflector|informer|watch_stream|codecs|object_store|snapshot|cooperative)"),
        ("writing", r"client/(client|asgi|transport|retries|resources|metadata)|scheduler/core/(binding|pod_status)"),
        ("queueing", r"scheduler/|client/work_queue"),
        ("reconciling", r"^(controllers|kubelet|driver|components)/?"),
        ("event loop", r"^asyncio/|^selectors"),
    )
)  # fmt: skip
OTHER: Final = "other"

COMPONENTS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("events", r"client/events"),
        ("scheduler", r"^scheduler/"),
        ("controllers", r"^controllers/"),
        ("nodes", r"^(kubelet|driver)/"),
        ("API server", r"^(apiserver|storage)/"),
        ("informers", r"client/(reflector|informer|watch_stream)"),
        ("link", r"client/link"),
    )
)


def phase_of(stack: Iterable[Call]) -> str:
    """The phase of a stack, innermost frame first."""
    return next((found for call in stack if (found := _phase(call))), OTHER)


def component_of(stack: Iterable[Call]) -> str:
    """The component: the outermost frame that belongs to one, which is the task that runs."""
    return next((found for call in reversed([*stack]) if (found := _component(call))), OTHER)


@cache
def _phase(call: Call) -> str:
    return next(_matches(PHASES, f"{call.module}:{call.function}"), "")


@cache
def _component(call: Call) -> str:
    return next(_matches(COMPONENTS, call.module), "")


def _matches(rules: Iterable[tuple[str, re.Pattern[str]]], text: str) -> Iterator[str]:
    return (name for name, pattern in rules if pattern.search(text))
