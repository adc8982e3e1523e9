"""Roles and bindings from the beginning: what they grant, and what happens to changes of them."""

from __future__ import annotations

import asyncio

from allot.apiserver.auth.rbac.bootstrap import (
    AUTO_UPDATE,
    bootstrap_roles,
    read_roles,
    reconciled_binding,
    reconciled_role,
)
from allot.apiserver.auth.rbac.rules import PolicyRule
from allot.features import DEFAULTS
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def rules(name: str) -> list[PolicyRule]:
    (role,) = [each.role for each in bootstrap_roles() if each.role["metadata"]["name"] == name]
    return [PolicyRule.from_document(rule) for rule in role["rules"]]


def test_how_a_table_is_read() -> None:
    (found,) = read_roles(
        "# a comment\nRole kube-system/r part=p gate=G\n  bound as=b User:u ServiceAccount:n/s\n"
        "  get,list core,apps pods x\n"
    )

    assert found.gate == "G"
    assert found.role["metadata"]["namespace"] == "kube-system"
    assert found.role["rules"] == [
        {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods"], "resourceNames": ["x"]}
    ]  # fmt: skip
    assert found.binding is not None
    assert found.binding["metadata"]["name"] == "b"
    assert [each["name"] for each in found.binding["subjects"]] == ["u", "s"]


def test_no_role_for_users_but_cluster_admin_has_pool_status() -> None:
    """KEP-5677: device inventories tell what others run."""
    holders = {
        each.role["metadata"]["name"]
        for each in bootstrap_roles()
        for rule in PolicyRule.all_of(each.role)
        if rule.has_kind("get", "resource.k8s.io", "resourcepoolstatusrequests")
        or rule.has_kind("create", "resource.k8s.io", "resourcepoolstatusrequests")
    }

    assert {"cluster-admin", "system:controller:resourcepoolstatusrequest-controller"} <= holders
    # Kubernetes' controllers handle objects of all kinds; they are no roles for users.
    assert {name for name in holders if not name.startswith("system:")} == {"cluster-admin"}


def test_admin_has_what_edit_has_and_edit_what_view_has() -> None:
    assert set(rules("view")) < set(rules("edit")) < set(rules("admin"))


def test_what_is_missing_is_added_and_additions_stay() -> None:
    wanted = next(
        each.role
        for each in bootstrap_roles()
        if each.role["metadata"]["name"] == "system:basic-user"
    )
    own = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    stored = {**wanted, "metadata": {"name": "system:basic-user"}, "rules": [own]}

    found = reconciled_role(stored, wanted)

    assert found is not None
    assert found["rules"] == [own, *wanted["rules"]]
    assert found["metadata"]["annotations"] == {AUTO_UPDATE: "true"}
    assert reconciled_role(found, wanted) is None


def test_a_role_that_does_not_want_updates_gets_none() -> None:
    wanted = bootstrap_roles()[1].role
    kept = {"metadata": {"name": "x", "annotations": {AUTO_UPDATE: "false"}}, "rules": []}

    assert reconciled_role(kept, wanted) is None


def test_a_binding_to_another_role_is_replaced() -> None:
    wanted = next(each.binding for each in bootstrap_roles() if each.binding is not None)
    other = {**wanted, "roleRef": {**wanted["roleRef"], "name": "other"}}
    fewer = {**wanted, "subjects": []}

    assert reconciled_binding(other, wanted) == wanted
    assert reconciled_binding(fewer, wanted) == wanted


def test_a_restart_repairs_what_was_deleted_and_keeps_what_was_added() -> None:
    async def run() -> None:
        store = MemoryStore()
        first = LocalServer(store)
        await first.server.start()
        before = await first.get(f"{ROLES}/view")
        await first.ask("DELETE", f"{ROLES}/system:discovery")
        role = await first.get(f"{ROLES}/system:basic-user")
        role["rules"] = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
        await first.ask("PUT", f"{ROLES}/system:basic-user", role)
        await first.server.close()

        async with LocalServer(store) as second:
            assert (await second.get(f"{ROLES}/system:discovery"))["rules"]
            repaired = await second.get(f"{ROLES}/system:basic-user")
            assert role["rules"][0] in repaired["rules"]
            assert len(repaired["rules"]) == 3
            assert (await second.get(f"{ROLES}/view"))["metadata"]["uid"] == before["metadata"][
                "uid"
            ]

    asyncio.run(run())


def test_a_role_of_a_gate_that_is_off_does_not_exist() -> None:
    async def run() -> None:
        async with LocalServer(gates=DEFAULTS.switched({"DRAResourcePoolStatus": False})) as server:
            name = "system:controller:resourcepoolstatusrequest-controller"
            assert (await server.ask("GET", f"{ROLES}/{name}")).code == 404
            assert (await server.ask("GET", f"{BINDINGS}/{name}")).code == 404

    asyncio.run(run())
