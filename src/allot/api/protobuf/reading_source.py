"""Lines of generated code that read parts of a protobuf message.

In a generated function `b` is the data, `p` the next offset, `e` the end of the message, `t` the tag, `n` a length, `q` the
end of a part, and `v` the value that was read.
"""

from __future__ import annotations

from allot.api.protobuf.source import GeneratedSource


class ReadingSource(GeneratedSource):
    """The source of a function that reads a message."""

    def next_tag(self, at_end: str = "t = -1") -> None:
        """Reads the next tag into t; outside of inner loops, the end may be a `break`."""
        with self.block("if p < e:"):
            self.line("t = b[p]")
            self.line("p += 1")
            self.long_varint("t", "p")
        with self.block("else:"):
            self.line(at_end)

    def length(self, start: str = "p", end: str = "q", within: str = "") -> None:
        """Reads a length: afterwards the content goes from `start` to `end`.

        With `within`, the end is checked before reading. Otherwise the enclosing message detects truncated data.
        """
        self.line(f"n = b[{start}]")
        self.line(f"{start} += 1")
        self.long_varint("n", start)
        self.line(f"{end} = {start} + n")
        if within:
            with self.block(f"if {end} > {within}:"):
                self.line("raise too_short()")

    def long_varint(self, value: str, start: str) -> None:
        """Reads the further bytes of a tag or length; most often one more."""
        with self.block(f"if {value} > 127:"):
            self.line(f"x = b[{start}]")
            with self.block("if x < 128:"):
                self.line(f"{value} = {value} & 127 | x << 7")
                self.line(f"{start} += 1")
            with self.block("else:"):
                self.line(f"{value}, {start} = varint(b, {start} - 1)")

    def string(self) -> None:
        """Reads a string into v. Go writes empty ones, too."""
        self.line("n = b[p]")
        self.line("p += 1")
        with self.block("if n:"):
            self.long_varint("n", "p")
            self.line("q = p + n")
            self.line("v = b[p:q].decode()")
            self.line("p = q")
        with self.block("else:"):
            self.line("v = ''")

    def number(self, type_: str, variable: str = "p") -> None:
        """Reads a number into v."""
        if type_ == "double":
            self.line(f"v, {variable} = double(b, {variable})")
            return
        self.line(f"v = b[{variable}]")
        self.line(f"{variable} += 1")
        with self.block("if v > 127:"):
            reader = "int32" if type_ == "int32" else "int64"
            self.line(f"v, {variable} = {reader}(b, {variable} - 1)")
        if type_ == "bool":
            self.line("v = v != 0")
