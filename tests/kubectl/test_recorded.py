"""Every kubectl command answers here as on Kubernetes v1.38: exit code, output and errors, as recorded.

`data/sections.yaml` and `data/further-sections.yaml` are written by hand, `data/walk.yaml` is what the walk through
kubectl's help needs. To record anew, see `recording.py`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest
import yaml

from tests.acceptance.server_process import running_cluster
from tests.attacks.clusters import KUBERNETES
from tests.kubectl.invocations import Section
from tests.kubectl.known_differences import KNOWN, compared_lines
from tests.kubectl.playing import Answer, Kubectl, prepare
from tests.kubectl.recording import WALK, read_vector, sections, vector

IN_GATE = ("claims", "nodes", "rbac")
SECTIONS = (
    "world", "configmaps", "workloads", "pods", "custom", "volumes",
    "generators", "changes", "reading", "descriptions", "access", "apply-sets", "odds",
    *IN_GATE,
)  # fmt: skip


def kubectls() -> list[Path]:
    """Kubernetes' own and the one of this machine, as far as they are there."""
    found = [Path(os.environ[KUBERNETES]) / "kubectl"] if KUBERNETES in os.environ else []
    installed = shutil.which("kubectl")
    return found + ([Path(installed)] if installed else [])


PARAMS = [
    pytest.param(0, id="first-kubectl"),
    pytest.param(1, id="second-kubectl", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=PARAMS)
def kubectl(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    yield from prepared_kubectl(request.param, tmp_path_factory)


@pytest.fixture(params=PARAMS)
def kubectl_on_new_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """Without objects and cached discovery of other sections."""
    yield from prepared_kubectl(request.param, tmp_path_factory)


def prepared_kubectl(number: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    available = kubectls()
    if number >= len(available):
        pytest.skip(
            f"{len(available)} kubectl on this machine; {KUBERNETES} may name a directory with another"
        )
    directory = tmp_path_factory.mktemp("up")
    controllers = ("--controllers", "*,-node-lifecycle-controller")
    # Compared with v1.38: without the decisions that the KEPs make otherwise.
    rules = ("--rules", "v1.38")
    with running_cluster(
        directory, "--empty", "--storage", "memory", *controllers, *rules
    ) as kubeconfig:
        found = Kubectl(available[number], kubeconfig, tmp_path_factory.mktemp("home"))
        if not vector(found.version()).exists():
            pytest.skip(f"no recorded answers of kubectl {found.version()}")
        prepare(found)
        yield found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in IN_GATE])
def test_answers_as_kubernetes_in_long_sections(kubectl_on_new_cluster: Kubectl, name: str) -> None:
    compare(kubectl_on_new_cluster, name)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", IN_GATE)
def test_answers_as_kubernetes(kubectl: Kubectl, name: str) -> None:
    compare(kubectl, name)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_answers_as_kubernetes_on_a_walk_through_the_help(
    kubectl_on_new_cluster: Kubectl,
) -> None:
    compare(kubectl_on_new_cluster, WALK)


def compare(kubectl: Kubectl, name: str) -> None:
    recorded = read_vector(vector(kubectl.version())).get(name)
    if recorded is None:
        pytest.skip(f"no recorded answers of kubectl {kubectl.version()} in the section {name}")
    (section,) = sections(kubectl, (name,))
    differences = list(_differences(kubectl, section, recorded))
    assert not differences, "\n\n".join(differences)


def _differences(
    kubectl: Kubectl, section: Section, recorded: dict[str, list[Answer]]
) -> Iterator[str]:
    for invocation, answer in kubectl.play_section(section):
        wanted = recorded[invocation.name].pop(0)
        name = f"{section.name}: {invocation.name}"
        difference = _difference(name, wanted, answer)
        if difference:
            yield f"kubectl {invocation.name}\n{difference}"
    yield from (f"kubectl {name}\nis not played" for name, left in recorded.items() if left)


def _difference(name: str, wanted: Answer, answer: Answer) -> str:
    codes = "" if wanted.code == answer.code else f"exit code {answer.code}, not {wanted.code}\n"
    if _lines(name, wanted) != _lines(name, answer):
        wanted, answer = (each._replace(stdout=in_order(each.stdout)) for each in (wanted, answer))
    lines = unified_diff(
        _lines(name, wanted), _lines(name, answer), "kubernetes", "allot", lineterm=""
    )
    return codes + "\n".join(lines)


def in_order(text: str) -> str:
    """A list of objects with random names, such as pods of a DaemonSet, is in the order of these names: in any order."""
    if "<random>" not in text or not text.lstrip("-\n").startswith(("{", "apiVersion:")):
        return text
    document = yaml.safe_load(text)
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        return text
    items = sorted(document["items"], key=lambda item: json.dumps(item, sort_keys=True))
    return json.dumps({**document, "items": items}, indent=1)


def test_lists_of_objects_with_random_names_are_in_any_order() -> None:
    def listed(*nodes: str) -> str:
        items = [{"metadata": {"name": "agent-<random>"}, "node": node} for node in nodes]
        return yaml.safe_dump({"apiVersion": "v1", "items": items})

    assert in_order(listed("n1", "n2")) == in_order(listed("n2", "n1"))
    assert in_order(listed("n1", "n2")) != in_order(listed("n1", "n1"))


def _lines(name: str, answer: Answer) -> list[str]:
    return [
        *compared_lines(name, answer.stdout),
        *(f"stderr: {line}" for line in compared_lines(name, answer.stderr)),
    ]


def test_the_list_is_long_and_known_differences_are_few() -> None:
    recorded = read_vector(vector("1.38"))
    assert set(SECTIONS) <= set(recorded)
    assert sum(map(len, recorded.values())) >= 500
    assert len(KNOWN) <= 10
