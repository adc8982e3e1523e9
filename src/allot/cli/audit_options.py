"""The options of the audit log, as kube-apiserver calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from allot.cli.errors import CommandError

if TYPE_CHECKING:
    from allot.apiserver.running import AuditOptions

F = TypeVar("F", bound=Callable[..., Any])


class AuditArguments(NamedTuple):
    """What the command line says about the audit log."""

    policy_file: str | None = None
    log_path: str | None = None
    max_age: int = 0
    max_backup: int = 0
    max_size: int = 100

    def options(self) -> AuditOptions | None:
        """None if there is no audit log; `CommandError` if only a part of it is named."""
        if self.policy_file is None and self.log_path is None:
            return None
        if self.policy_file is None or self.log_path is None:
            raise CommandError("--audit-policy-file and --audit-log-path are used together")
        from allot.apiserver.audit.log_file import Rotation
        from allot.apiserver.running import AuditOptions

        rotation = Rotation(self.max_size, self.max_backup, self.max_age)
        return AuditOptions(Path(self.policy_file), Path(self.log_path), rotation)

    def arguments(self) -> tuple[str, ...]:
        """The same, for the command line of another process."""
        if self.policy_file is None or self.log_path is None:
            return ()
        return (
            f"--audit-policy-file={self.policy_file}",
            f"--audit-log-path={self.log_path}",
            f"--audit-log-maxage={self.max_age}",
            f"--audit-log-maxbackup={self.max_backup}",
            f"--audit-log-maxsize={self.max_size}",
        )


def audit_options(command: F) -> F:
    """Adds the options, in the order of `AuditArguments`: audit_policy_file, audit_log_path, audit_log_maxage, …"""
    for option in reversed(
        (
            click.option(
                "--audit-policy-file",
                type=click.Path(exists=True, dir_okay=False),
                help="What the audit log has: a Policy of audit.k8s.io/v1.",
            ),
            click.option(
                "--audit-log-path",
                type=click.Path(dir_okay=False, allow_dash=True),
                help="Write an audit event per line to this file; - is standard output.",
            ),
            click.option(
                "--audit-log-maxage",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Days for which old audit logs are kept; 0: whatever their age.",
            ),
            click.option(
                "--audit-log-maxbackup",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Old audit logs that are kept; 0: all.",
            ),
            click.option(
                "--audit-log-maxsize",
                type=click.IntRange(0),
                default=100,
                show_default=True,
                help="Megabytes after which an audit log is renamed and a new one begun.",
            ),
        )
    ):
        command = option(command)
    return command
