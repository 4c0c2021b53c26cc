"""Imports that wait until they are needed: `regard --help` does not wait for torch.

A package with lazy exports imports each public name when it is first used; a deferred function
imports its module when it is first called.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that imports its public names when they are first used."""

    def __getattr__(self, name: str) -> Any:
        reference = self.__dict__["__exports__"].get(name)
        if reference is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, _, attribute = reference.partition(":")
        found = import_module(module)
        value = getattr(found, attribute) if attribute else found
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a submodule does not replace the public name that it is called like.

        Python sets `regard.attention.attend` to the module when it imports it, but this is the
        name of the function.
        """
        exported = self.__dict__["__exports__"].get(name, "")
        if isinstance(value, ModuleType) and ":" in exported:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["__exports__"]})


def export_lazily(package: str, exports: Mapping[str, str]) -> None:
    """Let a package import its public names when they are first used.

    Type checkers do not see these names: the package imports them `if TYPE_CHECKING` too.

    Args:
        package: its name, `__name__`.
        exports: for each public name a reference "package.module:attribute", or a module.
    """
    module = sys.modules[package]
    module.__dict__["__exports__"] = dict(exports)
    module.__class__ = LazyPackage


def deferred(reference: str) -> Callable[..., Any]:
    """A function by its reference "package.module:function", imported when it is first called.

    >>> deferred("math:sqrt")(9.0)
    3.0
    """
    module, _, name = reference.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **options)

    call.__name__ = call.__qualname__ = name
    call.__dict__["reference"] = reference
    call.__doc__ = f"`{name}` of {module}, imported when it is called."
    return call
