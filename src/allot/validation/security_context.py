"""The security context of a container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.container_volumes import validate_descending_path
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
    too_long,
)
from allot.validation.formats import byte_length, subdomain_problems
from allot.validation.internal_types import internal_value
from allot.validation.parts import Part, part, text, texts

PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS: Final = ("Default", "Unmasked")
MAX_ID: Final = 2**31 - 1
ID_RULE: Final = f"must be between 0 and {MAX_ID}, inclusive"
MAX_APP_ARMOR_PROFILE: Final = 4095


def validate_security_context(
    context: Part, path: FieldPath, *, host_users: bool
) -> Iterator[FieldError]:
    """`host_users`: the pod has no user namespace of its own."""
    if not context:
        return
    for field in ("runAsUser", "runAsGroup"):
        number = context.get(field)
        if isinstance(number, int) and not 0 <= number <= MAX_ID:
            yield invalid(path / field, number, ID_RULE)
    if context.get("seccompProfile") is not None:
        yield from validate_seccomp(part(context, "seccompProfile"), path / "seccompProfile")
    yield from _validate_proc_mount(context, path / "procMount", host_users=host_users)
    yield from _validate_escalation(context, path)
    windows = part(context, "windowsOptions")
    if windows.get("gmsaCredentialSpecName") is not None:
        name = text(windows, "gmsaCredentialSpecName")
        for problem in subdomain_problems(name):
            yield invalid(path / "windowsOptions" / "gmsaCredentialSpecName", name, problem)
    yield from _validate_windows(windows, path / "windowsOptions")
    if context.get("appArmorProfile") is not None:
        yield from validate_app_armor(part(context, "appArmorProfile"), path / "appArmorProfile")


MAX_USER: Final = 104


def _validate_windows(options: Part, path: FieldPath) -> Iterator[FieldError]:
    if options.get("gmsaCredentialSpec") == "":
        where = path / "gmsaCredentialSpec"
        yield invalid(where, "", "gmsaCredentialSpec cannot be an empty string")
    name, where = options.get("runAsUserName"), path / "runAsUserName"
    if not isinstance(name, str):
        return
    if not name:
        yield invalid(where, name, "runAsUserName cannot be an empty string")
    elif name.count("\\") > 1:
        yield invalid(where, name, "runAsUserName cannot contain more than one backslash")
    elif len(name.rpartition("\\")[2]) > MAX_USER:
        rule = f"runAsUserName's User length must not be longer than {MAX_USER} characters"
        yield invalid(where, name, rule)


def _validate_proc_mount(
    context: Part, path: FieldPath, *, host_users: bool
) -> Iterator[FieldError]:
    mount = context.get("procMount")
    if mount is None:
        return
    if mount not in PROC_MOUNTS:
        yield not_supported(path, mount, PROC_MOUNTS)
    elif mount == "Unmasked" and host_users:
        yield invalid(path, mount, "`hostUsers` must be false to use `Unmasked`")


def _validate_escalation(context: Part, path: FieldPath) -> Iterator[FieldError]:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    rule = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        yield invalid(path, _shown(context), f"{rule} `privileged` to true")
    for capability in texts(part(context, "capabilities"), "add"):
        if capability == "CAP_SYS_ADMIN":
            yield invalid(path, _shown(context), f"{rule} `capabilities.Add` CAP_SYS_ADMIN")


def _shown(context: Part) -> Part:
    return internal_value(context, "SecurityContext")


def validate_seccomp(profile: Part, path: FieldPath) -> Iterator[FieldError]:
    type_, local = text(profile, "type"), profile.get("localhostProfile")
    if not type_:
        yield required(path / "type", "type is required when seccompProfile is set")
    elif type_ not in PROFILE_TYPES:
        yield not_supported(path / "type", type_, PROFILE_TYPES)
    local_path = path / "localhostProfile"
    if type_ != "Localhost":
        if local is not None:
            shown = internal_value(profile, "SeccompProfile")
            yield invalid(local_path, shown, "can only be set when seccomp type is Localhost")
    elif local is None:
        yield required(local_path, "must be set when seccomp type is Localhost")
    else:
        yield from validate_descending_path(str(local), local_path)


def validate_app_armor(profile: Part, path: FieldPath) -> Iterator[FieldError]:
    type_, local = text(profile, "type"), profile.get("localhostProfile")
    local_path = path / "localhostProfile"
    if not type_:
        yield required(path / "type", "type is required when appArmorProfile is set")
    elif type_ not in PROFILE_TYPES:
        yield not_supported(path / "type", type_, PROFILE_TYPES)
    elif type_ != "Localhost":
        if local is not None:
            yield invalid(local_path, local, "can only be set when AppArmor type is Localhost")
    elif not local or not str(local).strip():
        yield required(local_path, "must be set when AppArmor type is Localhost")
    elif str(local).strip() != local:
        yield invalid(local_path, local, "must not be padded with whitespace")
    elif byte_length(str(local)) > MAX_APP_ARMOR_PROFILE:
        yield too_long(local_path, MAX_APP_ARMOR_PROFILE)
