"""Writes the tables in src/allot/api/protobuf/tables from a Kubernetes program, such as kube-apiserver.

    python scripts/protobuf_tables.py PATH/TO/kube-apiserver

Go programs describe their types for `reflect`: every struct with its fields, and the tags that name
them in JSON and number them in protobuf. Nothing else says at once which fields are pointers, which
are left out of JSON when they are empty, and which protobuf number they have.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

API = "k8s.io/api/"
SPECIAL = {
    "k8s.io/apimachinery/pkg/apis/meta/v1": "meta.v1",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": "apiextensions.v1",
    "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1": "apiregistration.v1",
}
PACKAGES = (
    "admissionregistration.v1", "apidiscovery.v2", "apidiscovery.v2beta1", "apiextensions.v1", "apiregistration.v1", "apps.v1", "authentication.v1",
    "authorization.v1", "autoscaling.v1", "autoscaling.v2", "batch.v1", "certificates.v1", "coordination.v1",
    "core.v1", "discovery.v1", "events.v1", "flowcontrol.v1", "meta.v1", "networking.v1", "node.v1", "policy.v1",
    "rbac.v1", "resource.v1", "resource.v1alpha3", "resource.v1beta1", "resource.v1beta2", "scheduling.v1",
    "scheduling.v1alpha3", "storage.v1",
)  # fmt: skip
SCALARS = {
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "time",
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "microtime",
    "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "fields",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "intstr",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "raw",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "raw",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "schema-or-schemas",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
}
STRING_LISTS = ("ExtraValue", "AttestationValue", "Verbs")
"""Lists of strings that have a type, and with it a protobuf message, of their own."""
KINDS = [
    "invalid",
    "bool",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintptr",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "array",
    "chan",
    "func",
    "interface",
    "map",
    "ptr",
    "slice",
    "string",
    "struct",
    "unsafeptr",
]


class Field(NamedTuple):
    """A field of a Go struct."""

    name: str
    tag: str
    embedded: bool
    type: int


class GoProgram:
    """The types in an ELF file, as Go 1.26 lays them out. A type is known by its address."""

    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        self._sections = dict(self._read_sections())
        self._base = self._sections[".rodata"][0]

    def pointed_structs(self) -> Iterator[int]:
        """All structs that the program has pointers to."""
        _, start, size = self._sections[".typelink"]
        for (offset,) in struct.iter_unpack("<I", self._bytes[start : start + size]):
            pointer = self._base + offset
            if self.kind(pointer) == "ptr" and self.kind(self.item(pointer)) == "struct":
                yield self.item(pointer)

    def kind(self, type_: int) -> str:
        return KINDS[self._bytes[self._offset(type_) + 23] & 31]

    def item(self, type_: int) -> int:
        """What a pointer points at, or a list holds."""
        return self._word(type_ + 48)

    def value(self, type_: int) -> int:
        """What a map holds."""
        return self._word(type_ + 56)

    def name(self, type_: int) -> str:
        """As Go prints it: `v1.Pod`, `map[string]v1.ExtraValue`."""
        has_star = self._bytes[self._offset(type_) + 20] & 2
        return self._name(self._base + self._int32(type_ + 40))[0][1 if has_star else 0 :]

    def full_name(self, type_: int) -> str:
        """Of a struct, with its package: `k8s.io/api/core/v1.Pod`."""
        if not self._bytes[self._offset(type_) + 20] & 1:
            return ""
        package = self._int32(type_ + 80)
        return f"{self._name(self._base + package)[0]}.{self.name(type_).rpartition('.')[2]}"

    def fields(self, type_: int) -> Iterator[Field]:
        first, count = self._word(type_ + 56), self._word(type_ + 64)
        for address in range(first, first + 24 * count, 24):
            name, tag, embedded = self._name(self._word(address))
            yield Field(name, tag, embedded, self._word(address + 8))

    def _read_sections(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        data = self._bytes
        (table,) = struct.unpack_from("<Q", data, 0x28)
        count, names = struct.unpack_from("<HH", data, 0x3C)
        headers = [struct.unpack_from("<IIQQQQ", data, table + 64 * i) for i in range(count)]
        for header in headers:
            start = headers[names][4] + header[0]
            name = data[start : data.index(b"\0", start)].decode()
            yield name, (header[3], header[4], header[5])

    def _offset(self, address: int) -> int:
        for start, offset, size in self._sections.values():
            if start and start <= address < start + size:
                return address - start + offset
        raise ValueError(f"no section holds address {address:#x}")

    def _word(self, address: int) -> int:
        (word,) = struct.unpack_from("<Q", self._bytes, self._offset(address))
        return int(word)

    def _int32(self, address: int) -> int:
        (number,) = struct.unpack_from("<i", self._bytes, self._offset(address))
        return int(number)

    def _name(self, address: int) -> tuple[str, str, bool]:
        offset = self._offset(address)
        flags = self._bytes[offset]
        name, offset = self._text(offset + 1)
        tag = self._text(offset)[0] if flags & 2 else ""
        return name, tag, bool(flags & 8)

    def _text(self, offset: int) -> tuple[str, int]:
        length = shift = 0
        while True:
            byte = self._bytes[offset]
            offset += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return self._bytes[offset : offset + length].decode(), offset + length


def package_of(full_name: str) -> str:
    """`core.v1` of `k8s.io/api/core/v1.Pod`; empty for packages that have no protobuf."""
    path = full_name.rpartition(".")[0]
    return path[len(API) :].replace("/", ".") if path.startswith(API) else SPECIAL.get(path, "")


class Tables:
    """Lines of the tables, by package and message."""

    def __init__(self, program: GoProgram) -> None:
        self._program = program
        self.messages: dict[str, dict[str, list[str]]] = {package: {} for package in PACKAGES}

    def add(self, type_: int, *, referenced: bool = False) -> None:
        """Note a struct and what it holds. Without numbers it is no message, unless another one holds it."""
        full_name = self._program.full_name(type_)
        package, name = package_of(full_name), full_name.rpartition(".")[2]
        if package not in self.messages or name in self.messages[package] or full_name in SCALARS:
            return
        lines = self.messages[package][name] = [name]  # known before its fields, which may hold it
        numbered: dict[int, str] = {}
        is_kind = False
        for field in self._program.fields(type_):
            is_kind = is_kind or field.name == "TypeMeta"
            number = re.search(r'protobuf:"[a-z0-9]+,(\d+)', field.tag)
            if number is not None and 'json:"' in field.tag:
                numbered[int(number[1])] = self._line(field, package)
        if not numbered and not referenced:
            del self.messages[package][name]
            return
        if is_kind:
            lines[0] += " kind"
        lines += (f"  {number} {numbered[number]}" for number in sorted(numbered))

    def _line(self, field: Field, package: str) -> str:
        found = re.search(r'json:"([^",]*)([^"]*)"', field.tag)
        assert found, field
        name, options = found[1], found[2]
        inline = field.embedded and not name
        omitted = "omitzero" in options or ("omitempty" in options and not self._is_struct(field))
        return (
            f"{'-' if inline else name} {self._type(field.type, package)}{'?' if omitted else ''}"
        )

    def _is_struct(self, field: Field) -> bool:
        return self._program.kind(field.type) == "struct"

    def _type(self, type_: int, package: str) -> str:
        program = self._program
        match program.kind(type_):
            case "ptr":
                return f"*{self._type(program.item(type_), package)}"
            case "slice" if program.name(type_).endswith(STRING_LISTS):
                return "strings"
            case "slice" if program.kind(program.item(type_)) == "uint8":
                return "bytes"
            case "slice":
                return f"[]{self._type(program.item(type_), package)}"
            case "map":
                return f"{{}}{self._type(program.value(type_), package)}"
            case "struct":
                return self._message(type_, package)
            case "float64":
                return "double"
            case kind:
                return kind

    def _message(self, type_: int, package: str) -> str:
        full_name = self._program.full_name(type_)
        if full_name in SCALARS:
            return SCALARS[full_name]
        self.add(type_, referenced=True)
        name, home = full_name.rpartition(".")[2], package_of(full_name)
        return name if home == package else f"{home}.{name}"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = GoProgram(Path(sys.argv[1]))
    tables = Tables(program)
    for type_ in program.pointed_structs():
        tables.add(type_)
    folder = Path(__file__).parents[1] / "src/allot/api/protobuf/tables"
    for package, messages in tables.messages.items():
        blocks = ["\n".join(messages[name]) for name in sorted(messages)]
        text = (
            '"""Messages of %s; written by scripts/protobuf_tables.py."""\n\nTABLE = """\n%s\n"""\n'
        )
        name = package.replace(".", "_")
        (folder / f"{name}.py").write_text(text % (package, "\n\n".join(blocks)))


if __name__ == "__main__":
    main()
