"""What is in `deploy/` is accepted by a server, and starts what it should. Roles: tests/integration/test_deployed_roles.py."""

from __future__ import annotations

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client import CollectorRegistry

from allot.cli.gate_options import gates_from_option
from allot.cli.main import allot as program
from allot.client.apply import resource_of
from allot.client.client import Client
from allot.client.discovery import discover
from allot.client.in_process import InProcessTransport
from allot.controllers.pool_status import ResourcePoolStatusRequestController
from allot.endpoints import ComponentEndpoints
from allot.questions.observed_cluster import KINDS
from allot.scheduler.configuration import read_configuration
from allot.testing.servers import TOKEN, LocalServer
from tests.integration.deployed_roles import DEPLOY, manifests


def test_server_takes_everything() -> None:
    names = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    documents = manifests(*names, "all-controllers.yaml", "exporter.yaml")

    async def run() -> int:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            kinds = {
                (each.api_version, each.kind): resource_of(each)
                for each in (await discover(client)).kinds
            }
            for document in documents:
                resource = kinds[document["apiVersion"], document["kind"]]
                path = resource.collection_path(document["metadata"].get("namespace", ""))
                body = yaml.safe_dump(document).encode()
                # As kubectl does: unknown and duplicate fields are errors.
                await client.request(
                    "POST", path, {"fieldValidation": "Strict"}, body, "application/yaml"
                )
            return len(documents)

    assert asyncio.run(run()) > 10


def test_scheduler_reads_its_configuration() -> None:
    [config] = [each for each in manifests("scheduler.yaml") if each["kind"] == "ConfigMap"]

    read = read_configuration(yaml.safe_load(config["data"]["config.yaml"]))

    assert [profile.scheduler_name for profile in read.profiles] == ["allot-scheduler"]
    assert (read.leader_election.namespace, read.leader_election.name) == (
        "allot-system",
        "allot-scheduler",
    )


@pytest.mark.parametrize("name", ["scheduler", "controller-manager", "exporter"])
def test_deployment_starts_a_command_that_answers_its_probes(name: str, tmp_path: Path) -> None:
    [deployment] = [each for each in manifests(f"{name}.yaml") if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    command_name, *arguments = container["args"]
    config = tmp_path / "config.yaml"
    config.touch()
    given = [each.replace("/etc/allot/config.yaml", str(config)) for each in arguments]

    command = program.get_command(click.Context(program), command_name)
    assert command is not None
    options = command.make_context(command_name, given).params

    assert command_name == name
    assert [port["containerPort"] for port in container["ports"]] == [options["port"]]
    assert options["bind_address"] == "0.0.0.0"  # noqa: S104 - inside the pod
    gates_from_option(options.get("feature_gates", ""))  # it knows them all
    pages = ComponentEndpoints(lambda: True, CollectorRegistry)
    for probe in ("livenessProbe", "readinessProbe"):
        assert pages.answer("GET", container[probe]["httpGet"]["path"]).code == 200


def _workloads() -> list[dict[str, Any]]:
    """Everything in deploy/ that runs containers."""
    documents = manifests(*sorted(path.name for path in DEPLOY.glob("*.yaml")))
    return [each for each in documents if "template" in each.get("spec", {})]


def test_containers_have_no_privileges() -> None:
    workloads = _workloads()

    assert len(workloads) == 3
    for workload in workloads:
        pod = workload["spec"]["template"]["spec"]
        context = pod["securityContext"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"] > 0
        assert context["runAsGroup"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert not [each for each in pod["volumes"] if "hostPath" in each]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"].keys() == {"requests", "limits"}


def test_image_installs_extras_that_exist() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    [extras] = re.findall(r'pip install "\.\[(.+)\]"', dockerfile)

    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_controller_manager_runs_what_its_role_is_for() -> None:
    [deployment] = manifests("controller-manager.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]

    assert f"--controllers={ResourcePoolStatusRequestController.name}" in container["args"]
    assert "--leader-elect-resource-namespace=allot-system" in container["args"]


def test_exporter_may_list_and_watch_what_it_reads_and_nothing_else() -> None:
    [role] = [each for each in manifests("exporter.yaml") if each["kind"] == "ClusterRole"]
    rules = [rule for rule in role["rules"] if "resources" in rule]

    granted = {(rule["apiGroups"][0], name) for rule in rules for name in rule["resources"]}

    assert granted == {(resource.group, resource.plural) for resource in KINDS}
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)


def test_image_runs_as_the_user_of_the_deployments() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    [user] = re.findall(r"^USER (\d+):\d+$", dockerfile, re.MULTILINE)
    users = {
        each["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        for each in manifests("scheduler.yaml", "controller-manager.yaml", "exporter.yaml")
        if each["kind"] == "Deployment"
    }

    assert users == {int(user)}
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in source.split())
