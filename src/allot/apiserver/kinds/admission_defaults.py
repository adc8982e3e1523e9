"""Defaults of policies, bindings and webhook configurations."""

from __future__ import annotations

from allot.apiserver.defaults.filling import Data, change, change_each, fill


def _rule_defaults(rule: Data) -> Data:
    return fill(rule, scope="*")


def match_defaults(match: Data) -> Data:
    """What a policy or a binding matches."""
    filled = fill(match, matchPolicy="Equivalent")
    for name in ("namespaceSelector", "objectSelector"):
        if filled.get(name) is None:
            filled = filled | {name: {}}
    for name in ("resourceRules", "excludeResourceRules"):
        filled = change_each(filled, name, _rule_defaults)
    return filled


def policy_defaults(policy: Data) -> Data:
    def spec_defaults(spec: Data) -> Data:
        return change(fill(spec, failurePolicy="Fail"), "matchConstraints", match_defaults)

    return change(policy, "spec", spec_defaults)


def binding_defaults(binding: Data) -> Data:
    return change(binding, "spec", lambda spec: change(spec, "matchResources", match_defaults))


def webhook_defaults(configuration: Data, **more: str) -> Data:
    """`more` are the defaults of webhooks of one kind."""

    def hook_defaults(hook: Data) -> Data:
        filled = fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", **more)
        for name in ("namespaceSelector", "objectSelector"):
            if filled.get(name) is None:
                filled = filled | {name: {}}
        if filled.get("timeoutSeconds") is None:
            filled = filled | {"timeoutSeconds": 10}
        filled = change_each(filled, "rules", _rule_defaults)
        return change(filled, "clientConfig", lambda client: change(client, "service", _with_port))

    return change_each(configuration, "webhooks", hook_defaults)


def _with_port(service: Data) -> Data:
    return service if service.get("port") is not None else service | {"port": 443}
