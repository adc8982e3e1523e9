"""Packages whose public names are imported when they are first used (PEP 562).

`import allot` loads this module: it imports nothing itself, not even `typing`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a package. `homes` has the module of each name, as `module` or `module:name there`.

    A name whose home is the package and itself, such as `allot.client`, is that submodule.
    """

    def __getattr__(name: str) -> object:  # noqa: N807 - what PEP 562 calls it
        from importlib import import_module

        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = home.partition(":")
        loaded = import_module(module)
        return loaded if module == f"{package}.{name}" else getattr(loaded, other or name)

    return __getattr__
