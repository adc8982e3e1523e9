"""The version of allot, where every module can import it without the public names of `allot`."""

from typing import Final

VERSION: Final = "0.1.0"
