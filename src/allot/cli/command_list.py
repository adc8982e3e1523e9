"""All commands with their summaries, in the order in which people need them.

`allot --help` prints this list; it imports no command, because that takes longer than reading the help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class ListedCommand(NamedTuple):
    """A command, what it does in a few words, and the page of docs/ about it."""

    name: str
    summary: str
    page: str


GROUPS: Final[Mapping[str, tuple[ListedCommand, ...]]] = {
    "A cluster on this machine": (
        ListedCommand("up", "Start a cluster with example hardware", "operations.md"),
        ListedCommand("demo", "Show the five KEPs in a running cluster", "cli.md"),
        ListedCommand("down", "Stop the cluster; its state stays", "operations.md"),
        ListedCommand("reset", "Delete the state of a stopped cluster", "operations.md"),
        ListedCommand("kubeconfig", "Print the path of its kubeconfig", "operations.md"),
    ),
    "Questions, about a cluster or files": (
        ListedCommand("status", "Show which devices are free, and where", "pool-status.md"),
        ListedCommand("top", "Follow devices and pending pods in the terminal", "top.md"),
        ListedCommand("devices", "List every device, and which claim holds it", "questions.md"),
        ListedCommand("dashboard", "Show a cluster in a browser", "dashboard.md"),
        ListedCommand("explain", "Say why a pod or claim is pending, and what helps", "explain.md"),
        ListedCommand("fit", "Count how many more of a pod fit, and where", "questions.md"),
        ListedCommand("what-if", "Say what changes would do to all pods", "questions.md"),
        ListedCommand(
            "simulate", "Schedule what is in files, also in virtual time", "questions.md"
        ),
        ListedCommand("plan", "Check manifests before they are applied", "questions.md"),
        ListedCommand("clone", "Write a cluster to a file, to run it elsewhere", "questions.md"),
        ListedCommand("record", "Keep what happens in a cluster", "recordings.md"),
        ListedCommand("replay", "Play a recording as a simulated cluster", "recordings.md"),
        ListedCommand("exporter", "Serve metrics of a cluster for Prometheus", "metrics.md"),
        ListedCommand("lint", "Check manifests and hardware files", "lint.md"),
        ListedCommand("cel", "Try a CEL expression on devices", "cli.md"),
    ),
    "Components, for a cluster of several processes": (
        ListedCommand("apiserver", "Run the Kubernetes-compatible API server", "apiserver.md"),
        ListedCommand("scheduler", "Schedule pods and allocate their claims", "scheduler.md"),
        ListedCommand("controller-manager", "Run the controllers", "controllers.md"),
        ListedCommand("nodes", "Simulate nodes and their devices", "nodes.md"),
        ListedCommand("binding-controller", "Make devices ready for pods", "binding-conditions.md"),
    ),
    "Drivers": (
        ListedCommand(
            "conformance", "Check a DRA driver against its contract", "driver-conformance.md"
        ),
        ListedCommand("hardware", "Show and capture hardware profiles", "hardware.md"),
        ListedCommand("driver", "Create a DRA driver from a template", "guides/drivers.md"),
    ),
    "Maintenance and testing": (
        ListedCommand("storage", "Check and rescue a data directory", "operations.md"),
        ListedCommand("allocate", "Answer allocation scenarios, one per line", "cli.md"),
        ListedCommand("validate", "Answer test vectors, one per line", "cli.md"),
    ),
    "This program": (
        ListedCommand("help", "Show the help of a command", "cli.md"),
        ListedCommand("completion", "Print a completion script for your shell", "cli.md"),
        ListedCommand("version", "Print the version", "cli.md"),
    ),
}

COMMANDS: Final = {each.name: each for group in GROUPS.values() for each in group}
