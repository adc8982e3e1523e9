"""Feature gates of a running component, from its metrics `kubernetes_feature_enabled`, and its rules from `allot_rules`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from allot.client.errors import ApiStatusError
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.client.client import Client

FEATURE_ENABLED: Final = "kubernetes_feature_enabled"
RULES_IN_FORCE: Final = "allot_rules"

API_SERVER: Final = "/metrics"
SCHEDULER: Final = "/metrics/scheduler"
"""The path at which an API server serves the metrics of the scheduler beside it, as in `allot up`."""
_NAMES: Final = {API_SERVER: "API server", SCHEDULER: "scheduler"}


class ServerGates(NamedTuple):
    """The feature gates of a component. Without `component`, `unread` says why they are unknown."""

    component: str = ""
    states: Mapping[str, bool] = {}
    rules: RuleSet | None = None
    """None if the component does not report it, such as those of Kubernetes."""
    unread: str = ""


async def read_server_gates(client: Client, pages: Sequence[str]) -> ServerGates:
    """The gates of the first of these components that reports them."""
    why = ""
    for page in pages:
        try:
            response = await client.request("GET", page, may_repeat=True)
            states, rules = _parsed(response.body.decode())
        except ApiStatusError as error:
            why = str(error)
            continue
        except ValueError as error:
            why = f"{page} has no metrics: {error}"
            continue
        if states:
            return ServerGates(_NAMES[page], states, rules)
        why = f"the metrics of the {_NAMES[page]} do not show them"
    return ServerGates(unread=why)


def _parsed(text: str) -> tuple[dict[str, bool], RuleSet | None]:
    from prometheus_client.parser import text_string_to_metric_families

    states: dict[str, bool] = {}
    rules = None
    for family in text_string_to_metric_families("\n".join(_of_interest(text)) + "\n"):
        for sample in family.samples:
            if sample.name == FEATURE_ENABLED and "name" in sample.labels:
                states[sample.labels["name"]] = sample.value > 0
            elif sample.name == RULES_IN_FORCE and sample.value > 0:
                rules = RuleSet(sample.labels["rules"])
    return states, rules


def _of_interest(text: str) -> Iterator[str]:
    """Only the relevant lines: a server has thousands of others."""
    return (
        line for line in text.splitlines() if line.startswith((FEATURE_ENABLED, RULES_IN_FORCE))
    )
