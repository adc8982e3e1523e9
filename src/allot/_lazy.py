"""Packages whose public names are imported when they are first used (PEP 562), and modules that are loaded then.

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


def load_when_used(name: str) -> None:
    """Have `import name` cost nothing until one of the module's names is used.

    importlib's LazyLoader does not help here: the second import of a module loads it.
    """
    import sys
    from types import ModuleType

    if name in sys.modules:
        return
    stand_in = ModuleType(name)

    def load(attribute: str) -> object:
        from importlib import import_module

        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        loaded = import_module(name)
        vars(stand_in).update(vars(loaded))  # for modules that have imported it
        return getattr(loaded, attribute)

    vars(stand_in)["__getattr__"] = load
    sys.modules[name] = stand_in
