"""The volumes of pods and pod templates: their names, and the sources that pods have most often."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.validation.container_environment import (
    validate_field_reference,
    validate_resource_reference,
)
from allot.validation.container_volumes import validate_descending_path
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import subdomain_problems
from allot.validation.names import validate_label
from allot.validation.parts import Part, part, parts, text
from allot.validation.volume_paths import validate_projected_paths

HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
VOLUME_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
"""The fields of pods that a file can have."""
MIN_TOKEN_SECONDS: Final = 600
MAX_TOKEN_SECONDS: Final = 2**32
KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
CERTIFICATE_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
MAX_FILE_MODE: Final = 0o777
MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_volumes(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, volume in enumerate(parts(spec, "volumes")):
        one, name = path @ index, text(volume, "name")
        sources = [field for field in volume if field != "name" and volume[field] is not None]
        known = [field for field in _SOURCES if field in sources]
        for field in known[:1]:
            shown = "persistentDisk" if field == "gcePersistentDisk" else field
            yield from _SOURCES[field](part(volume, field), one / shown)
        for field in known[1:]:
            yield forbidden(one / field, "may not specify more than 1 volume type")
        if not name:
            yield required(one / "name")
            continue
        yield from validate_label(name, one / "name")
        if name in seen:
            yield duplicate(one / "name", name)
        seen.add(name)


def _required(source: Part, path: FieldPath, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        if not source.get(field):
            yield required(path / field)


def _empty_dir(source: Part, path: FieldPath) -> Iterator[FieldError]:
    limit = source.get("sizeLimit")
    try:
        is_negative = limit is not None and quantity_from_json(limit).sign < 0
    except QuantityError:
        return  # found when it was decoded
    if is_negative:
        yield forbidden(path / "sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Part, path: FieldPath) -> Iterator[FieldError]:
    where, type_ = text(source, "path"), source.get("type")
    if not where:
        yield required(path / "path")
        return
    if ".." in where.split("/"):
        yield invalid(path / "path", where, "must not contain '..'")
    if type_ is not None and type_ not in HOST_PATH_TYPES:
        yield not_supported(path / "type", type_, HOST_PATH_TYPES)


def _files(name: str) -> Callable[[Part, FieldPath], Iterator[FieldError]]:
    """Secrets and ConfigMaps, named in the field `name`."""

    def validate(source: Part, path: FieldPath) -> Iterator[FieldError]:
        yield from _required(source, path, name)
        yield from _mode(source.get("defaultMode"), path / "defaultMode")
        for index, item in enumerate(parts(source, "items")):
            one, where = path / "items" @ index, text(item, "path")
            yield from _required(item, one, "key", "path")
            if where:
                yield from validate_descending_path(where, one / "path")
            yield from _mode(item.get("mode"), one / "mode")

    return validate


def _mode(mode: object, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(mode, int) and not 0 <= mode <= MAX_FILE_MODE:
        yield invalid(path, mode, MODE_RULE)


def _claim(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "claimName")


def _downward_api(source: Part, path: FieldPath) -> Iterator[FieldError]:
    """Errors about items do not say which one, as in Kubernetes."""
    yield from _mode(source.get("defaultMode"), path / "defaultMode")
    for item in parts(source, "items"):
        where = text(item, "path")
        yield from _required(item, path, "path")
        if where:
            yield from validate_descending_path(where, path / "path")
        if item.get("fieldRef") is not None:
            field = part(item, "fieldRef")
            yield from validate_field_reference(field, path / "fieldRef", VOLUME_FIELDS)
            if item.get("resourceFieldRef") is not None:
                yield invalid(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                )
        elif item.get("resourceFieldRef") is None:
            yield required(path, "one of fieldRef and resourceFieldRef is required")
        elif not text(part(item, "resourceFieldRef"), "containerName"):
            yield required(path / "resourceFieldRef" / "containerName")
        else:
            resource = part(item, "resourceFieldRef")
            yield from validate_resource_reference(resource, path / "resourceFieldRef")
        yield from _mode(item.get("mode"), path / "mode")


def _projected(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _mode(source.get("defaultMode"), path / "defaultMode")
    for index, one in enumerate(parts(source, "sources")):
        where = path / "sources" @ index
        if len([field for field in one if one[field] is not None]) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")
        for field in ("secret", "configMap"):
            if one.get(field) is not None:
                yield from _files("name")(part(one, field), where / field)
        if one.get("downwardAPI") is not None:
            yield from _downward_api(part(one, "downwardAPI"), where / "downwardAPI")
        token = part(one, "serviceAccountToken")
        seconds, seconds_path = (
            token.get("expirationSeconds"),
            where / "serviceAccountToken" / "expirationSeconds",
        )
        if isinstance(seconds, int) and seconds < MIN_TOKEN_SECONDS:
            rule = "may not specify a duration less than 10 minutes"
            yield invalid(seconds_path, seconds, rule)
        elif isinstance(seconds, int) and seconds > MAX_TOKEN_SECONDS:
            rule = "may not specify a duration larger than 2^32 seconds"
            yield invalid(seconds_path, seconds, rule)
        if one.get("serviceAccountToken") is not None:
            file = text(token, "path")
            yield from _required(token, path, "path")
            if file:
                yield from validate_descending_path(file, path / "path")
        if one.get("clusterTrustBundle") is not None:
            yield from _trust_bundle(part(one, "clusterTrustBundle"), where / "clusterTrustBundle")
        if one.get("podCertificate") is not None:
            yield from _certificate(part(one, "podCertificate"), where / "podCertificate")
    yield from validate_projected_paths(source, path)


def _trust_bundle(source: Part, path: FieldPath) -> Iterator[FieldError]:
    if not text(source, "name") and not text(source, "signerName"):
        yield required(path, "either name or signerName must be specified")
    elif text(source, "name") and text(source, "signerName"):
        shown = {
            "Name": source.get("name"),
            "SignerName": source.get("signerName"),
            "LabelSelector": source.get("labelSelector"),
            "Optional": source.get("optional"),
            "Path": text(source, "path"),
            "User": source.get("user"),
        }
        yield invalid(path, shown, "only one of name and signerName may be used")
    yield from _required(source, path, "path")


def _certificate(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "signerName")
    key = text(source, "keyType")
    if key not in KEY_TYPES:
        yield not_supported(path / "keyType", key, KEY_TYPES, is_ordered=True)
    if not any(text(source, field) for field in CERTIFICATE_PATHS):
        rule = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        yield required(path, rule)


def validate_token_volumes(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """A pod without an account has no tokens of one. Templates get theirs later."""
    if text(spec, "serviceAccountName"):
        return
    for index, volume in enumerate(parts(spec, "volumes")):
        for number, source in enumerate(parts(part(volume, "projected"), "sources")):
            if source.get("serviceAccountToken") is not None:
                where = path @ index / "projected" / "sources" @ number / "serviceAccountToken"
                yield forbidden(where, "must not be specified when serviceAccountName is not set")


def _csi(source: Part, path: FieldPath) -> Iterator[FieldError]:
    driver = text(source, "driver")
    if not driver:
        yield required(path / "driver")
    else:
        for problem in subdomain_problems(driver.lower()):
            yield invalid(path / "driver", driver, problem)
    if source.get("nodePublishSecretRef") is not None:
        secret = part(source, "nodePublishSecretRef")
        yield from _required(secret, path / "nodePublishSecretRef", "name")


def _nfs(source: Part, path: FieldPath) -> Iterator[FieldError]:
    where = text(source, "path")
    yield from _required(source, path, "server", "path")
    if not where.startswith("/"):
        yield invalid(path / "path", where, "must be an absolute path")


def _image(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "reference")
    policy = text(source, "pullPolicy")
    if policy and policy not in PULL_POLICIES:
        yield not_supported(path / "pullPolicy", policy, PULL_POLICIES)


def _ephemeral(source: Part, path: FieldPath) -> Iterator[FieldError]:
    where = path / "volumeClaimTemplate"
    if source.get("volumeClaimTemplate") is None:
        yield required(where)
        return
    template = part(source, "volumeClaimTemplate")
    if text(part(template, "metadata"), "name"):
        yield forbidden(where / "metadata" / "name", "cannot be set")
    spec = part(template, "spec")
    if not spec.get("accessModes"):
        yield required(where / "spec" / "accessModes", "at least 1 access mode is required")
    if not part(part(spec, "resources"), "requests").get("storage"):
        yield required(where / "spec" / "resources" @ "storage")


def _git_repo(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "repository")
    if text(source, "directory"):
        yield from validate_descending_path(text(source, "directory"), path / "directory")


def _iscsi(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "targetPortal", "iqn")
    name, lun = text(source, "iqn"), source.get("lun") or 0
    pattern = next((_ISCSI_NAMES[kind] for kind in _ISCSI_NAMES if name.startswith(kind)), None)
    if name and pattern is None:
        rule = "must be valid format starting with iqn, eui, or naa"
        yield invalid(path / "iqn", name, rule)
    elif pattern is not None and not pattern.search(name):
        yield invalid(path / "iqn", name, "must be valid format")
    if not 0 <= lun <= MAX_LUN:
        yield invalid(path / "lun", lun, f"must be between 0 and {MAX_LUN}, inclusive")


MAX_LUN: Final = 255
_ISCSI_NAMES: Final = {
    "iqn": re.compile(r"^iqn\.\d{4}-\d{2}\.([A-Za-z0-9-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def _fibre_channel(source: Part, path: FieldPath) -> Iterator[FieldError]:
    names, wide = source.get("targetWWNs"), source.get("wwids")
    rule = "must specify either targetWWNs or wwids, but not both"
    if not names and not wide:
        yield required(path / "targetWWNs", rule)
    elif names and wide:
        yield invalid(path / "targetWWNs", names, rule)
    lun: Any = source.get("lun")
    if names and lun is None:
        yield required(path / "lun", "lun is required if targetWWNs is specified")
    elif names and not 0 <= lun <= MAX_LUN:
        yield invalid(path / "lun", lun, f"must be between 0 and {MAX_LUN}, inclusive")


def _azure_disk(source: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _required(source, path, "diskName", "diskURI")
    for field, allowed in _AZURE_DISKS.items():
        value = source.get(field)
        if value is not None and value not in allowed:
            yield not_supported(path / field, value, allowed)
    address = text(source, "diskURI")
    if source.get("kind") == "Managed":
        if not address.startswith("/subscriptions/"):
            yield not_supported(path / "diskURI", address, (_MANAGED_DISK,))
    elif not address.startswith("https"):
        yield not_supported(path / "diskURI", address, (_BLOB_DISK,))


_AZURE_DISKS: Final = {
    "cachingMode": ("None", "ReadOnly", "ReadWrite"),
    "kind": ("Dedicated", "Managed", "Shared"),
}
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"


def _quobyte(source: Part, path: FieldPath) -> Iterator[FieldError]:
    if not text(source, "registry"):
        rule = "must be a host:port pair or multiple pairs separated by commas"
        yield required(path / "registry", rule)
    yield from _required(source, path, "volume")


def _flocker(source: Part, path: FieldPath) -> Iterator[FieldError]:
    if not text(source, "datasetName") and not text(source, "datasetUUID"):
        yield required(path, "one of datasetName and datasetUUID is required")


def _needs(*fields: str) -> Callable[[Part, FieldPath], Iterator[FieldError]]:
    return lambda source, path: _required(source, path, *fields)


_SOURCES: Final[dict[str, Callable[[Part, FieldPath], Iterator[FieldError]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "secret": _files("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _claim,
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": _downward_api,
    "fc": _fibre_channel,
    "flexVolume": _needs("driver"),
    "configMap": _files("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _needs("volumeName"),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""In the order of Kubernetes' checks."""
