"""The pytest plugin as its users see it: files beside the test, failures that show their own lines."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

RACK = """
nodes: {count: 1}
pools:
- driver: gpu.example.com
  devices:
  - {name: "gpu-{i}", count: 2}
deviceClasses:
- name: gpu.example.com
  selectors:
  - cel: {expression: device.driver == "gpu.example.com"}
"""
CLAIM_AND_POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.example.com, count: COUNT}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  resourceClaims: [{name: gpus, resourceClaimName: gpus}]
  containers: [{name: main, image: example.com/main, resources: {claims: [{name: gpus}]}}]
"""


def _run(pytester: pytest.Pytester, test: str, *, virtual: bool = True) -> pytest.RunResult:
    """The result of a test module in a directory of its own, run from another one."""
    folder = pytester.mkdir("project")
    (folder / "rack.yaml").write_text(RACK)
    (folder / "one.yaml").write_text(CLAIM_AND_POD.replace("COUNT", "1"))
    (folder / "three.yaml").write_text(CLAIM_AND_POD.replace("COUNT", "3"))
    header = f"""
        from pathlib import Path
        import pytest

        pytestmark = pytest.mark.allot_cluster(hardware=["rack.yaml"], virtual_time={virtual})
    """
    (folder / "test_rack.py").write_text(textwrap.dedent(header) + textwrap.dedent(test))
    return pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:xdist", str(folder / "test_rack.py")
    )


def test_paths_are_relative_to_the_test(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        def test_it(allot_cluster):
            allot_cluster.apply(Path("one.yaml"))
            allot_cluster.wait_for_phase("user", "Running")
            assert [node["metadata"]["name"] for node in allot_cluster.list("Node")] == ["rack-0"]
            assert allot_cluster.devices_of("pod/user") == [("gpu.example.com", "rack-0", "gpu-0")]
            assert [device.device for device in allot_cluster.devices_of("claim/gpus")] == ["gpu-0"]
            allot_cluster.apply(
                "{apiVersion: v1, kind: Namespace, metadata: {name: flow}}",
                '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "json"}}',
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dict"}},
            )
            assert {"flow", "json", "dict"} <= {
                each["metadata"]["name"] for each in allot_cluster.list("Namespace")
            }
        """,
    )

    result.assert_outcomes(passed=1)


def test_pending_pods_are_explained(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        def test_it(allot_cluster):
            allot_cluster.apply(Path("three.yaml"))
            allot_cluster.advance(5)
            explanation = allot_cluster.explain("pod/user")
            assert explanation.state == "DoesNotFit"
            assert "2 of 3 devices" in explanation.verdict
            assert allot_cluster.devices_of("pod/user") == []
        """,
    )

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            'allot_cluster.wait_for_phase("user", "Running", seconds=3)',
            "*timed out after 3 s waiting for Pod user*",
            id="wait-for-what-does-not-exist",
        ),
        pytest.param(
            'allot_cluster.apply(CLAIM.replace("count", "coutn"))',
            '*strict decoding error: unknown field "spec.devices.requests[[]0].exactly.coutn"*',
            id="unknown-field",
        ),
        pytest.param(
            'allot_cluster.apply(CLAIM.replace("name: gpus}", "name: a, name: b}"))',
            "*<string>:4: duplicate field metadata.name*",
            id="duplicate-field",
        ),
        pytest.param(
            'allot_cluster.apply(CLAIM.replace("kind: ResourceClaim", "kind: Claim"))',
            "*the server has no kind Claim in resource.k8s.io/v1*",
            id="unknown-kind-in-a-manifest",
        ),
        pytest.param(
            'allot_cluster.apply(Path("missing.yaml"))',
            "*missing.yaml: No such file or directory*",
            id="missing-file",
        ),
        pytest.param(
            'allot_cluster.get("Pods", "user")',
            "*the cluster does not serve kind Pods; did you mean *Pod*",
            id="unknown-kind",
        ),
        pytest.param(
            'allot_cluster.devices_of("pod/missing")',
            "*pod default/missing does not exist*",
            id="devices-of-a-missing-pod",
        ),
        pytest.param(
            'allot_cluster.explain("user")',
            "*'user': expected pod/NAME or claim/NAME*",
            id="explain-without-a-kind",
        ),
        pytest.param(
            'allot_cluster.devices_of("node/user")',
            "*'node/user': expected pod/NAME or claim/NAME*",
            id="devices-of-another-kind",
        ),
    ],
)
@pytest.mark.parametrize("virtual", [True, False], ids=["virtual", "real"])
def test_failures_show_the_line_of_the_test(
    pytester: pytest.Pytester, line: str, expected: str, virtual: bool
) -> None:
    result = _run(
        pytester,
        f"""
        CLAIM = Path(__file__).with_name("one.yaml").read_text()

        def test_it(allot_cluster):
            {line}
        """,
        virtual=virtual,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">       {line.replace('[', '[[]')}", f"E {expected}"])
    assert "src/allot" not in result.stdout.str()
    assert "concurrent/futures" not in result.stdout.str()


@pytest.mark.parametrize(
    ("line", "virtual"),
    [
        pytest.param("allot_cluster.kubeconfig", True, id="kubeconfig-in-virtual-time"),
        pytest.param("allot_cluster.url", True, id="url-in-virtual-time"),
        pytest.param("allot_cluster.advance(5)", False, id="advance-in-real-time"),
    ],
)
def test_what_a_cluster_lacks_shows_the_line_of_the_test(
    pytester: pytest.Pytester, line: str, virtual: bool
) -> None:
    result = _run(
        pytester,
        f"""
        def test_it(allot_cluster):
            {line}
        """,
        virtual=virtual,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">       {line}", "E *virtual time*"])
    assert "src/allot" not in result.stdout.str()


def test_timeouts_say_why_a_pod_is_pending(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        def test_it(allot_cluster):
            allot_cluster.apply(Path("three.yaml"))
            allot_cluster.wait_for_phase("user", "Running", seconds=5)
        """,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*timed out after 5 s waiting for Pod user:", "*request gpus of claim*2 of 3 devices*"]
    )


def test_errors_in_the_predicate_keep_their_lines(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        def test_it(allot_cluster):
            def is_so(pod):
                return pod["no such key"]

            allot_cluster.apply(Path("one.yaml"))
            allot_cluster.wait_for("Pod", "user", is_so)
        """,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['>*return pod[[]"no such key"]', "E*KeyError*"])


def test_what_only_one_kind_of_time_has(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        def test_virtual(allot_cluster):
            with pytest.raises(AttributeError, match="a cluster in virtual time has no kubeconfig"):
                allot_cluster.kubeconfig
            with pytest.raises(AttributeError, match="a cluster in virtual time has no url"):
                allot_cluster.url
            assert not hasattr(allot_cluster, "kubeconfig")

        @pytest.mark.allot_cluster()
        def test_real(allot_cluster):
            with pytest.raises(AttributeError, match=r"advance\\(\\) needs virtual time"):
                allot_cluster.advance(5)
        """,
    )

    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('hardwre=["gpu-server"]', "allot_cluster: unknown argument hardwre; did you mean hardware?"),
        ('["gpu-server"]', "allot_cluster: arguments are given by name, such as hardware=[...]"),
        ('hardware="gpu-server"', "allot_cluster: hardware is a list: ['gpu-server']"),
        ('hardware=["gpu-sever"]', "allot_cluster: gpu-sever: no such file or profile"),
        ('feature_gates={"DRAA": True}, virtual_time=True', "allot_cluster: *DRAA*"),
        ('rules="v1.39"', "allot_cluster: unknown rules 'v1.39'; available: seeds, v1.38"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_line(
    pytester: pytest.Pytester, arguments: str, expected: str
) -> None:
    result = _run(
        pytester,
        f"""
        @pytest.mark.allot_cluster({arguments})
        def test_it(allot_cluster):
            pass
        """,
    )

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"{expected.replace('[', '[[]')}*"])
    assert "src/allot" not in result.stdout.str()
    assert "During handling" not in result.stdout.str()


def test_example_of_a_rack_is_read_from_the_working_directory_too(
    pytester: pytest.Pytester,
) -> None:
    (Path(pytester.path) / "elsewhere.yaml").write_text(RACK)
    result = _run(
        pytester,
        """
        @pytest.mark.allot_cluster(hardware=["elsewhere.yaml=2"], virtual_time=True)
        def test_it(allot_cluster):
            assert len(allot_cluster.list("Node")) == 2
        """,
    )

    result.assert_outcomes(passed=1)
