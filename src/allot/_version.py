"""The version of allot, where every module can import it without the public names of `allot`."""

VERSION = "0.1.0"
