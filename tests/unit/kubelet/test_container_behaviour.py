"""What annotations say about the life of a pod's containers."""

from __future__ import annotations

import pytest

from allot.api.core import Pod
from allot.kubelet.container_behaviour import ContainerBehaviour, container_behaviour
from allot.kubelet.settings import KubeletSettings
from allot.testing.builders import a_pod, an_owner


def annotated(annotations: dict[str, str], owner: str = "") -> Pod:
    owners = [an_owner("o", kind=owner)] if owner else []
    return a_pod(metadata={"annotations": annotations}, owners=owners)


def behaviour(settings: KubeletSettings | None = None, /, **annotations: str) -> ContainerBehaviour:
    named = {
        "allot.dev/" + name.replace("__", ".").replace("_", "-"): text
        for name, text in annotations.items()
    }
    return container_behaviour(annotated(named), settings or KubeletSettings())


def test_without_annotations_containers_run_until_they_are_stopped() -> None:
    found = behaviour()

    assert found.run_seconds("c") is None
    assert found.exit_code("c", 0) == 0
    assert found.ready_seconds("c") == found.start_seconds == found.stop_seconds == 0


def test_init_containers_end_at_once_and_well_unless_one_is_named() -> None:
    found = behaviour(run_seconds="60", exit_code="1", run_seconds__setup="5", exit_code__setup="2")

    assert found.run_seconds("other", is_init=True) == 0
    assert found.exit_code("other", 0, is_init=True) == 0
    assert found.run_seconds("setup", is_init=True) == 5
    assert found.exit_code("setup", 0, is_init=True) == 2


def test_a_named_container_has_its_own_way() -> None:
    found = behaviour(run_seconds="60", run_seconds__web="forever", ready_seconds__web="3")

    assert (found.run_seconds("web"), found.run_seconds("worker")) == (None, 60)
    assert (found.ready_seconds("web"), found.ready_seconds("worker")) == (3, 0)


@pytest.mark.parametrize(("run", "code"), [(0, 1), (1, 2), (2, 0), (3, 0), (99, 0)])
def test_exit_codes_run_by_run(run: int, code: int) -> None:
    assert behaviour(exit_code="1, 2,0").exit_code("c", run) == code


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf", "1e999"])
def test_an_invalid_number_of_seconds_is_ignored_and_reported(text: str) -> None:
    found = behaviour(run_seconds=text)

    assert found.run_seconds("c") is None
    assert found.problems == (
        f"annotation allot.dev/run-seconds: {text!r} is not a number of seconds",
    )


@pytest.mark.parametrize("text", ["", "x", "-1", "256", "1,", "1;2"])
def test_an_invalid_exit_code_is_ignored_and_reported(text: str) -> None:
    found = behaviour(exit_code=text)

    assert found.exit_code("c", 0) == 0
    assert len(found.problems) == 1


def test_defaults_of_the_settings() -> None:
    settings = KubeletSettings(
        run_seconds=9, job_run_seconds=4, complete_annotation="example.com/done"
    )

    assert behaviour(settings).run_seconds("c") == 9
    assert container_behaviour(annotated({}, owner="Job"), settings).run_seconds("c") == 4
    assert container_behaviour(annotated({}, owner="ReplicaSet"), settings).run_seconds("c") == 9
    assert (
        container_behaviour(annotated({"example.com/done": "true"}), settings).run_seconds("c") == 0
    )
    assert (
        container_behaviour(annotated({"example.com/done": "no"}), settings).run_seconds("c") == 9
    )
    assert behaviour(settings, run_seconds="forever").run_seconds("c") is None
